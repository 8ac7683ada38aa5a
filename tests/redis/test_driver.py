"""What the driver promises: an honest answer to "was it written?", whatever happens, and no loop that waits."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown, SettlementRejected, StoreError, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.runtime import crossings, place
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.driver import Driver
from runwick.stores.redis.library import Library
from scripts.servers.redis import RedisServer
from tests.postgres.asking import PATIENCE_S, eventually
from tests.redis.asking import execute, visitor, writes_paused
from tests.redis.places import APPLICATION, MARKS, a_driver, add, clients, doing, end_clients, names, waiting
from tests.sqlite.processes import Child, Peer, open_files


@pytest.fixture
def url(empty_redis: str) -> str:
    return empty_redis


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url)
    yield driver
    driver.close()


class Running:
    """A call on a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.error = error

    def ended(self) -> BaseException | None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.error


def hooked(crossing: str, times: int, error: Exception) -> Callable[[], None]:
    """Raise `error` at the next so many crossings; returns what ends that."""
    left = [error] * times

    def hook() -> None:
        if left:
            raise left.pop()

    return crossings.on(crossing, hook)


def test_an_act_is_its_calls_in_turn_and_its_answer_comes_back(driver: Driver) -> None:
    assert driver.run(doing(("names", ()), ("add", ("a",)))) == 1
    assert driver.run(names()) == ["a"]


@pytest.mark.parametrize(
    "value",
    [0, -1, (1 << 53) - 1, "", "text \0 with ÄÖ \U0001f600", "x" * 70_000, True, None, [1, "two", ["three"]], 0.5],
)
def test_values_travel_both_ways(driver: Driver, value: object) -> None:
    assert driver.run(doing(("echo", (value,)), reads_only=True)) == value


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 65_535, 65_536])
def test_bytes_travel_to_the_function(driver: Driver, url: str, size: int) -> None:
    value = bytes(number % 251 for number in range(size))
    driver.run(doing(("add", (packed.binary(value),))))
    assert execute(url, "LRANGE", f"rw:{{{APPLICATION}}}:marks", 0, -1) == [value]
    assert packed.optional_binary(None) is None
    assert packed.optional_binary(value) == packed.binary(value)


def test_blocking_and_asynchronous_callers_run_the_same_acts(driver: Driver) -> None:
    async def both() -> list[str]:
        await asyncio.gather(*(driver.run_async(add(f"async {number}")) for number in range(20)))
        driver.run(add("blocking"))
        with pytest.raises(redis.exceptions.ResponseError, match="on @user_function"):
            await driver.run_async(doing(("mistake", ())))
        return await driver.run_async(names())

    assert set(asyncio.run(both())) == {"blocking", *(f"async {number}" for number in range(20))}


def test_without_a_server_it_is_unavailable_and_nothing_was_sent() -> None:
    driver = a_driver("redis://127.0.0.1:1/3")
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/3 gives no connection \(.*refused") as refused:
        driver.run(add("never"))
    assert refused.value.code == "store_unavailable"
    driver.close()


def test_a_socket_takes_the_same_acts(redis_server: RedisServer, url: str) -> None:
    driver = a_driver(redis_server.socket_url(int(url.rpartition("/")[2])))
    assert driver.run(add("through a socket")) == 1
    driver.close()


def test_a_connection_that_died_while_it_was_idle_is_replaced_and_nobody_notices(driver: Driver, url: str) -> None:
    for number in range(3):
        driver.run(add(f"mark {number}"))
        assert end_clients(url) == 1
    assert len(driver.run(names())) == 3


def test_f060_a_connection_that_is_lost_in_the_middle_leaves_a_write_unknown(driver: Driver, url: str) -> None:
    driver.run(add("before"))
    with writes_paused(url):
        running = Running(lambda: driver.run(add("lost")))
        eventually(waiting(url), "the command waits")
        end_clients(url)
        error = running.ended()
    assert isinstance(error, OutcomeUnknown)
    assert error.code == "outcome_unknown"
    assert "the answer to add was lost" in error.message
    assert driver.run(names()) == ["before"], "nobody has sent it again"


def test_an_answer_that_is_lost_after_it_was_applied_leaves_it_unknown_and_it_is_there_once(driver: Driver) -> None:
    remove = hooked("redis.answered", 2, ConnectionError("gone"))
    try:
        with pytest.raises(OutcomeUnknown, match="the answer to add was lost"):
            driver.run(add("perhaps"))
        with pytest.raises(OutcomeUnknown):
            asyncio.run(driver.run_async(add("perhaps too")))
    finally:
        remove()
    assert driver.run(names()) == ["perhaps", "perhaps too"]


def test_a_read_or_a_preparation_whose_answer_is_lost_is_unavailable(driver: Driver) -> None:
    remove = hooked("redis.answered", 2, ConnectionError("gone"))
    try:
        with pytest.raises(StoreUnavailable, match="did not answer names"):
            driver.run(names())
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            driver.run(doing(("names", ()), ("add", ("never",))))
    finally:
        remove()
    assert driver.run(names()) == []


def test_a_failure_before_anything_is_sent_is_unavailable(driver: Driver) -> None:
    remove = hooked("redis.sending", 1, redis.exceptions.ConnectionError("reset"))
    try:
        with pytest.raises(StoreUnavailable, match="was not sent"):
            driver.run(add("never"))
    finally:
        remove()
    assert driver.run(names()) == []


def test_a_server_that_stands_still_leaves_a_write_unknown_and_its_connection_is_dropped(url: str) -> None:
    driver = a_driver(url, limit_ms=300)
    driver.run(add("before"))
    (stuck,) = clients(url)
    with writes_paused(url):
        with pytest.raises(OutcomeUnknown, match="no answer in 300 ms"):
            driver.run(add("perhaps"))
        assert driver.run(names()) == ["before"], "through another connection"
        eventually(lambda: stuck not in clients(url), "the old connection ends")
    assert driver.run(names()) in (["before"], ["before", "perhaps"])
    driver.close()


def test_f071_a_vanished_function_is_loaded_once_and_the_call_sent_again(driver: Driver, url: str) -> None:
    driver.run(add("first"))
    execute(url, "FUNCTION", "FLUSH")
    assert driver.run(add("second")) == 2
    assert driver.run(names()) == ["first", "second"]


def test_functions_that_vanish_again_at_once_are_unavailable(
    driver: Driver, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(add("first"))
    execute(url, "FUNCTION", "FLUSH")
    monkeypatch.setattr(Library, "load", lambda library, ask: None)
    with pytest.raises(StoreUnavailable, match="found its function gone again"):
        driver.run(add("never"))
    monkeypatch.undo()
    assert driver.run(names()) == ["first"]


def test_functions_whose_loading_is_not_answered_have_applied_nothing(
    driver: Driver, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.run(add("first"))
    execute(url, "FUNCTION", "FLUSH")

    def load(library: Library, ask: Callable[..., Any]) -> None:
        end_clients(url)
        ask("FUNCTION", "LOAD", library.text)

    monkeypatch.setattr(Library, "load", load)
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        driver.run(add("never"))
    monkeypatch.undo()
    assert driver.run(add("second")) == 2


def test_callers_at_once_who_miss_the_functions_all_find_them(url: str) -> None:
    drivers = [a_driver(url) for _ in range(4)]
    for each in drivers:
        each.run(names())
    execute(url, "FUNCTION", "FLUSH")
    callers = [Running(lambda own=each: own.run(add("mark"))) for each in drivers]  # type: ignore[misc]
    assert [caller.ended() for caller in callers] == [None] * 4
    assert len(drivers[0].run(names())) == 4
    for each in drivers:
        each.close()


def test_two_releases_have_their_functions_side_by_side(url: str) -> None:
    library = Library(MARKS.text.partition("\n")[2].partition("\n")[2] + "\n-- another release\n")
    assert library.name != MARKS.name
    old, new = a_driver(url), a_driver(url, library=library)
    assert [old.run(add("old")), new.run(add("new")), old.run(add("old"))] == [1, 2, 3]
    old.close()
    new.close()


GATE = [
    ("RWCLOSED drain", AdmissionClosed, "admission_closed", "is being drained"),
    ("RWCLOSED maintenance", AdmissionClosed, "admission_closed", "is under maintenance"),
    ("RWCAPABILITY time_travel", StoreError, "capability_unknown", '"time_travel"'),
    ("RWREVISION 9", StoreError, "store_revision_mismatch", "the store is newer"),
    ("RWREVISION 0", StoreError, "store_revision_mismatch", "the store is older"),
]


@pytest.mark.parametrize(("answer", "kind", "code", "said"), GATE)
def test_what_the_gate_refuses_is_said_in_everybodys_words(
    driver: Driver, answer: str, kind: type[StoreError], code: str, said: str
) -> None:
    with pytest.raises(kind, match=said) as refused:
        driver.run(doing(("refuse", (answer,)), name="claim"))
    assert refused.value.code == code


def test_a_mistake_of_ours_is_raised_as_it_is(driver: Driver, url: str) -> None:
    execute(url, "HSET", f"rw:{{{APPLICATION}}}:meta", "writes", 1)
    for function in ("mistake", "wreck"):
        with pytest.raises(redis.exceptions.ResponseError, match="on @user_function"):
            driver.run(doing((function, ())))
    with pytest.raises(redis.exceptions.ResponseError, match="on @user_function"):
        driver.run(doing(("fail", ("OOM in the middle",))))
    with pytest.raises(TypeError):
        driver.run(doing(("add", (object(),))))
    assert driver.run(names()) == []


@pytest.mark.parametrize("value", ["surrogate \ud800", 1 << 70])
def test_a_settlement_whose_content_cannot_be_packed_is_rejected(driver: Driver, value: object) -> None:
    with pytest.raises(SettlementRejected) as refused:
        driver.run(doing(("add", (value,)), name="settle"))
    assert refused.value.code == "settlement_rejected"
    with pytest.raises((OverflowError, ValueError)):
        driver.run(doing(("add", (value,)), name="other"))


def test_what_an_act_raises_itself_reaches_its_caller(driver: Driver) -> None:
    def course() -> Calls[None]:
        yield Call("names", APPLICATION, packed.arguments())
        raise KeyError("its own")

    with pytest.raises(KeyError, match="its own"):
        driver.run(Act("own", course))


def test_what_a_signal_handler_raises_in_the_middle_costs_the_connection(driver: Driver, url: str) -> None:
    """As the one that stops a handler does."""

    class Stopped(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stopped

    def interrupt() -> None:
        eventually(waiting(url), "it waits")
        os.kill(os.getpid(), signal.SIGUSR1)

    driver.run(add("before"))
    (before,) = clients(url)
    previous = signal.signal(signal.SIGUSR1, stop)
    try:
        with writes_paused(url):
            interrupting = Running(interrupt)
            with pytest.raises(Stopped):
                driver.run(add("perhaps"))
            interrupting.ended()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert driver.run(names())[0] == "before"
    eventually(lambda: before not in clients(url), "the connection ends")


def test_a_caller_that_is_cancelled_in_the_queue_has_sent_nothing(driver: Driver, url: str) -> None:
    async def cancel_the_second() -> None:
        await driver.run_async(add("zeroth", act="settle"))
        with writes_paused(url):
            first = asyncio.create_task(driver.run_async(add("first", act="release")))
            await asyncio.to_thread(eventually, waiting(url), "the first waits")
            second = asyncio.create_task(driver.run_async(add("second", act="settle")))
            await driver.run_async(names())
            second.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await second
            assert cancelled.value.__cause__ is None
        await first
        await driver.run_async(add("third", act="settle"))

    asyncio.run(cancel_the_second())
    assert driver.run(names()) == ["zeroth", "first", "third"]


def test_a_caller_that_is_cancelled_under_way_hears_that_the_outcome_is_unknown(driver: Driver, url: str) -> None:
    async def cancel() -> None:
        await driver.run_async(add("first", act="claim"))
        with writes_paused(url):
            task = asyncio.create_task(driver.run_async(add("second", act="claim")))
            await asyncio.to_thread(eventually, waiting(url), "it waits")
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await task
            assert isinstance(cancelled.value.__cause__, OutcomeUnknown)
            assert cancelled.value.__cause__.code == "cancelled_after_send"
        await driver.run_async(add("third", act="claim"))

    asyncio.run(cancel())
    assert driver.run(names()) == ["first", "second", "third"]


def test_the_stores_time_is_known_without_asking(driver: Driver, url: str) -> None:
    driver.run(names())
    seconds, microseconds = execute(url, "TIME")
    assert abs(driver.now_ms() - seconds * 1000 - microseconds // 1000) < 5_000


def test_closing_leaves_no_thread_and_no_descriptor_and_the_next_use_opens_again(driver: Driver, url: str) -> None:
    def everything() -> tuple[set[str], list[str]]:
        return {thread.name for thread in threading.enumerate()}, open_files()

    before = everything()
    for mark in ("first", "again"):
        asyncio.run(driver.run_async(add(mark, act="claim")))
        asyncio.run(driver.run_async(names()))
        driver.wake_on_work(lambda: None)
        assert everything() != before
        driver.close()
        assert everything() == before
        eventually(lambda: not clients(url), "its connections end")
    assert driver.run(names()) == ["first", "again"]


def test_an_interpreter_that_never_closed_its_store_ends_by_itself(driver: Driver, url: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from tests.redis.places import a_driver, add\n"
        "driver = a_driver(sys.argv[1])\n"
        "driver.run(add('blocking'))\n"
        "asyncio.run(driver.run_async(add('async')))\n"
        "driver.wake_on_work(lambda: None)\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=Path(__file__).parents[2])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert driver.run(names()) == ["blocking", "async"]


def test_an_executor_has_one_connection_and_no_thread(url: str) -> None:
    def live(peer: Peer) -> None:
        place.enter_executor()
        driver = a_driver(url)
        driver.run(add("blocking"))
        asyncio.run(driver.run_async(add("async", act="claim")))
        peer.say([thread.name for thread in threading.enumerate()])
        peer.say(len(clients(url)))
        driver.close()

    with Child(live) as child:
        assert child.hear() == ["MainThread"]
        assert child.hear() == 1
    driver = a_driver(url)
    assert driver.run(names()) == ["blocking", "async"]
    driver.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[RedisServer]:
    """One whose settings and role a test may change."""
    with RedisServer(settings={"busy-reply-threshold": "20"}) as server:
        yield server


@pytest.fixture
def own(own_server: RedisServer) -> Iterator[Driver]:
    """A driver that has begun on a server of its own."""
    url = own_server.url(1)
    execute(url, "FLUSHALL")
    execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
    driver = a_driver(url)
    driver.run(add("before"))
    yield driver
    driver.close()


def refused_by_server(driver: Driver, said: str) -> None:
    with pytest.raises(StoreUnavailable, match=said) as refused:
        driver.run(add("never"))
    assert "nothing was written" in refused.value.message


def test_a_busy_server_has_not_applied_it(own_server: RedisServer, own: Driver) -> None:
    url = own_server.url(1)
    endless = Running(lambda: own.run(doing(("spin", ()), reads_only=True)))

    def is_busy() -> bool:
        try:
            own_server.execute("PING")
        except redis.exceptions.ResponseError as error:
            return str(error).startswith("BUSY")
        return False

    eventually(is_busy, "the function runs for long")
    own_server.execute("FUNCTION", "STATS")
    with pytest.raises(StoreUnavailable, match="BUSY"):
        own.run(add("never"))
    own_server.execute("FUNCTION", "KILL")
    assert endless.ended() is not None
    assert own.run(names()) == ["before"]
    assert clients(url)


def test_a_server_that_became_a_replica_has_not_applied_it(own_server: RedisServer, own: Driver) -> None:
    own_server.execute("REPLICAOF", "127.0.0.1", "1")
    try:
        refused_by_server(own, "READONLY")
    finally:
        own_server.execute("REPLICAOF", "NO", "ONE")
    assert own.run(add("after")) == 2


def test_a_server_without_memory_has_not_applied_it_and_reads_go_on(own_server: RedisServer, own: Driver) -> None:
    own_server.execute("CONFIG", "SET", "maxmemory", 1)
    try:
        refused_by_server(own, "OOM")
        assert own.run(names()) == ["before"]
    finally:
        own_server.execute("CONFIG", "SET", "maxmemory", 0)
    assert own.run(add("after")) == 2


def test_a_server_that_cannot_save_has_not_applied_it(own_server: RedisServer, own: Driver) -> None:
    data = own_server.folder / "data"
    mode = data.stat().st_mode
    own_server.execute("CONFIG", "SET", "save", "3600 1")
    data.chmod(0o500)
    try:
        own_server.execute("BGSAVE")
        eventually(lambda: b"rdb_last_bgsave_status:err" in own_server_info(own_server), "saving fails")
        refused_by_server(own, "MISCONF")
    finally:
        data.chmod(mode)
        own_server.execute("CONFIG", "SET", "save", "")
    assert own.run(add("after")) == 2


def own_server_info(server: RedisServer) -> bytes:
    told: Any = execute(server.url(), "INFO", "persistence")
    return told if isinstance(told, bytes) else "\n".join(f"{name}:{value}" for name, value in told.items()).encode()


def test_a_user_who_may_not_call_functions_has_not_applied_it(url: str) -> None:
    with visitor(url, "+@all", "-fcall") as narrow:
        driver = a_driver(narrow)
        with pytest.raises(StoreUnavailable, match=r"not allowed to this user \(NOPERM"):
            driver.run(add("never"))
        driver.close()


def test_a_wrong_password_is_unavailable_and_not_repeated(url: str) -> None:
    driver = a_driver(url.replace("redis://:", "redis://:wrong-"))
    with pytest.raises(StoreUnavailable, match="gives no connection") as refused:
        driver.run(add("never"))
    assert "wrong-" not in str(refused.value)
    driver.close()
