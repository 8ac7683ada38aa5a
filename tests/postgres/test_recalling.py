"""When limits that are owed calls are asked again, and when nobody asks any more."""

import threading
from collections.abc import Callable, Iterator

import pytest

from runwick.stores.postgres import recalling
from runwick.stores.postgres.recalling import Recaller
from tests.postgres.asking import eventually

LIMIT, OTHER = b"l" * 16, b"o" * 16
Answer = tuple[int, int | None]


class Store:
    """What the store would answer; at the end it is not idle any more."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[bytes, int]] = []

    def call(self, limit: bytes, owed: int) -> Answer:
        self.asked.append((limit, owed))
        answer = self.answers.pop(0) if self.answers else (owed, None)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def made() -> Iterator[Callable[[Store], Recaller]]:
    recallers: list[Recaller] = []

    def make(store: Store) -> Recaller:
        recallers.append(Recaller(store.call))
        return recallers[-1]

    yield make
    for recaller in recallers:
        recaller.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "runwick-postgres-recaller"]


def test_it_asks_again_until_all_is_made_up_for(made: Callable[[Store], Recaller]) -> None:
    store = Store((0, 5), RuntimeError("no connection"), (2, 3), (1, 2))
    recaller = made(store)
    recaller.owe({LIMIT: 5})
    eventually(lambda: len(store.asked) == 5, "it is asked as long as it is idle")
    assert [owed for _, owed in store.asked] == [5, 5, 5, 3, 2]
    recaller.owe({OTHER: 1})
    eventually(lambda: store.asked[5:], "and its thread lives on")
    assert store.asked[5:] == [(OTHER, 1)]


def test_what_comes_together_is_asked_for_at_once(made: Callable[[Store], Recaller]) -> None:
    store = Store()
    recaller = made(store)
    recaller.owe({LIMIT: 1, OTHER: 0})
    recaller.owe({LIMIT: 2})
    eventually(lambda: len(store.asked) == 2, "both are asked")
    assert sorted(store.asked) == [(LIMIT, 3), (OTHER, 0)]


def test_it_is_left_to_the_pass_where_nobody_can_be_called_for_long(
    made: Callable[[Store], Recaller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recalling, "_LAST_S", 0.02)
    store = Store(*[(0, 1)] * 9)
    recaller = made(store)
    recaller.owe({LIMIT: 1})
    eventually(lambda: len(store.asked) == 3, "5, 10 and 20 ms")
    recaller.owe({OTHER: 1})
    eventually(lambda: len(store.asked) == 6, "what comes later is asked for as ever")
    assert [limit for limit, _ in store.asked] == [LIMIT] * 3 + [OTHER] * 3


def test_what_is_owed_at_the_end_is_nobodys_and_what_comes_then_is_made_up_for(
    made: Callable[[Store], Recaller],
) -> None:
    came, goes_on = threading.Event(), threading.Event()

    class Slow(Store):
        def call(self, limit: bytes, owed: int) -> Answer:
            came.set()
            assert goes_on.wait(30)
            return super().call(limit, owed)

    store = Slow()
    recaller = made(store)
    recaller.owe({LIMIT: 1})
    assert came.wait(30)
    recaller.owe({OTHER: 1})
    threading.Timer(0.01, goes_on.set).start()
    recaller.close()
    assert store.asked == [(LIMIT, 1)]
    recaller.owe({LIMIT: 2})
    eventually(lambda: store.asked[1:], "it begins anew")
    assert store.asked[1:] == [(LIMIT, 2)]


def test_an_executor_makes_up_for_it_beside_its_next_acts(
    made: Callable[[Store], Recaller], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recalling, "in_executor", lambda: True)
    store = Store((0, 1))
    recaller = made(store)
    before = threading.active_count()
    recaller.owe({LIMIT: 1})
    assert threading.active_count() == before

    def acts() -> bool:
        recaller.make_up()
        return len(store.asked) == 2

    eventually(acts, "it is asked again")
