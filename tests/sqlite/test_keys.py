"""Uniqueness keys between processes: who comes second waits for the first one's transaction and goes by its outcome."""

import functools
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runwick.contracts.dispatching import Command, DuplicateMatch, ReceiptDisposition
from runwick.contracts.stores import Act
from runwick.stores.steps import Steps
from tests.conformance.ground import Bench, sqlite_bench
from tests.sqlite.processes import DEADLINE_S, Child, Peer

KEYS: dict[str, dict[str, Any]] = {
    "active": {"active_key": "invoice-7"},
    "window": {"window_key": "invoice-7", "window_ms": 60_000, "fingerprint": b"r" * 32},
}
KEYS["active_and_window"] = KEYS["active"] | KEYS["window"]


class TakenBackError(Exception):
    """The transaction of a dispatch is rolled back."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    yield bench
    bench.store.close()


def dispatch_slowly(bench: Bench, command: Command, peer: Peer) -> None:
    """Dispatch in a transaction (``BEGIN IMMEDIATE``) that stays open until the test says how it ends."""
    store = bench.another()

    def steps() -> Steps[None]:
        yield from store.dispatch([command]).steps()
        peer.say("held")
        if peer.hear() == "roll back":
            raise TakenBackError

    try:
        store.run(Act("dispatch", steps))
    except TakenBackError:
        pass
    finally:
        store.close()


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("ends", list(itertools.product(["commit", "roll back"], repeat=3)))
def test_f091_whoever_waits_for_a_key_gets_the_answer_of_whoever_had_it(
    bench: Bench, keys: str, ends: tuple[str, ...]
) -> None:
    """Three processes hold the key one after the other, each ending its own way; every time another dispatch waits."""
    first: bytes | None = None
    for end in ends:
        held, waiting = (bench.command(**KEYS[keys]) for _ in range(2))
        with Child(functools.partial(dispatch_slowly, bench, held)) as child:
            assert child.hear() == "held"
            with ThreadPoolExecutor(1) as threads:
                answer = threads.submit(bench.send, waiting)
                assert not answer.done()
                child.say(end)
                (receipt,) = answer.result(DEADLINE_S)
        is_new = first is None and end == "roll back"
        if first is None:
            first = held.job_id if end == "commit" else waiting.job_id
        assert receipt.job == first
        assert receipt.disposition is (ReceiptDisposition.CREATED if is_new else ReceiptDisposition.REUSED)
        assert receipt.duplicate_match is (DuplicateMatch.NONE if is_new else DuplicateMatch(keys))
    assert len(bench.claim().attempts) == 1
