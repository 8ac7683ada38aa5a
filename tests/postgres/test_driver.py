"""What the driver promises: an honest answer to "was it written?", whatever happens, and no loop that waits."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runwick.contracts.errors import OutcomeUnknown, SettlementRejected, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.runtime import crossings, place
from runwick.stores.postgres.driver import Driver
from runwick.stores.steps import Step
from tests.postgres.asking import PATIENCE_S, eventually, execute
from tests.postgres.places import a_driver, add, doing, end_sessions, marked, names, preparing, sessions, waiting
from tests.sqlite.processes import Child, Peer, open_files


@pytest.fixture
def url(database: str) -> str:
    return marked(database)


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url)
    yield driver
    driver.close()


class Holder:
    """Somebody's transaction that holds the name "contested", so that whoever adds it waits."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)
        self._connection.execute("INSERT INTO runwick.mark (name) VALUES ('contested')")

    def __enter__(self) -> "Holder":
        return self

    def let_go(self) -> None:
        self._connection.rollback()

    def __exit__(self, *_: object) -> None:
        self._connection.close()


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


def test_an_act_is_its_steps_in_turn_and_its_answer_comes_back(driver: Driver) -> None:
    def course() -> Generator[Step, Any, int]:
        first = yield Step("add", (["a", "b"],))
        rows = yield Step("names")
        return len(first) + 10 * len(rows)

    assert driver.run(Act("both", course)) == 22
    assert driver.run(names()) == {"a", "b"}


def test_ids_come_back_as_raw_bytes_and_other_values_as_usual(driver: Driver) -> None:
    ((raw, array),) = driver.run(doing(Step("id"), reads_only=True))
    assert raw == driver.store_id
    assert array == [raw]
    assert driver.run(doing(Step("add_number", ("x", 1)))) == []


def test_blocking_and_asynchronous_callers_run_the_same_acts(driver: Driver) -> None:
    async def both() -> set[str]:
        await asyncio.gather(*(driver.run_async(add(f"async {number}")) for number in range(20)))
        driver.run(add("blocking"))
        with pytest.raises(psycopg.errors.SyntaxError):
            await driver.run_async(doing(Step("mistake")))
        return await driver.run_async(names())

    assert asyncio.run(both()) == {"blocking", *(f"async {number}" for number in range(20))}


def test_without_a_server_it_is_unavailable_and_nothing_was_sent() -> None:
    driver = a_driver("postgresql://nobody@127.0.0.1:1/shop")
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1/shop gives no connection \(.*refused") as refused:
        driver.run(add("never"))
    assert refused.value.code == "store_unavailable"


def test_a_connection_that_died_while_it_was_idle_is_replaced_and_nobody_notices(driver: Driver, url: str) -> None:
    for number in range(3):
        driver.run(add(f"name {number}"))
        assert end_sessions(url) == 1
    assert len(driver.run(names())) == 3


def test_a_connection_that_is_lost_in_the_middle_leaves_a_write_unknown(driver: Driver, url: str) -> None:
    with Holder(url):
        running = Running(lambda: driver.run(add("contested", "other")))
        eventually(waiting(url), "the statement waits")
        end_sessions(url)
        error = running.ended()
    assert isinstance(error, OutcomeUnknown)
    assert error.code == "outcome_unknown"
    assert "the answer to add was lost" in error.message
    assert driver.run(names()) == set()


def test_a_connection_that_is_lost_in_the_middle_of_a_read_is_unavailable(driver: Driver, url: str) -> None:
    running = Running(lambda: driver.run(doing(Step("sleep", (PATIENCE_S,)), reads_only=True)))
    eventually(lambda: execute(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), "it sleeps")
    end_sessions(url)
    assert isinstance(running.ended(), StoreUnavailable)


def test_a_statement_that_waits_too_long_is_stopped_by_the_server_and_nothing_was_written(url: str) -> None:
    driver = a_driver(url, limit_ms=300)
    with Holder(url) as holder:
        with pytest.raises(StoreUnavailable, match=r"add on .* was stopped, .*; nothing was written"):
            driver.run(add("contested"))
        holder.let_go()
    assert driver.run(names()) == set()
    driver.close()


def test_a_server_that_stands_still_leaves_a_write_unknown_and_its_connection_is_dropped(url: str) -> None:
    driver = a_driver(url, limit_ms=300)
    driver.run(add("before"))
    (stopped,) = sessions(url)
    os.kill(stopped, signal.SIGSTOP)
    try:
        with pytest.raises(OutcomeUnknown, match="no answer in 300 ms"):
            driver.run(add("perhaps"))
        assert driver.run(names()) == {"before"}, "through another connection"
    finally:
        os.kill(stopped, signal.SIGCONT)
    eventually(lambda: stopped not in sessions(url), "the old session ends")
    assert driver.run(names()) in ({"before"}, {"before", "perhaps"})
    driver.close()


def test_an_answer_that_is_lost_after_the_commit_leaves_it_unknown(driver: Driver) -> None:
    remove = hooked("postgres.answered", 2, ConnectionError("gone"))
    try:
        with pytest.raises(OutcomeUnknown, match="the answer to add was lost"):
            driver.run(add("perhaps"))
        with pytest.raises(OutcomeUnknown):
            asyncio.run(driver.run_async(add("perhaps too")))
    finally:
        remove()
    assert driver.run(names()) == {"perhaps", "perhaps too"}


@pytest.mark.parametrize("error", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected])
def test_an_act_that_collides_with_others_is_run_again_at_once(driver: Driver, error: type[Exception]) -> None:
    remove = hooked("postgres.sending", 2, error("collided"))
    try:
        driver.run(add("in the end"))
    finally:
        remove()
    assert driver.run(names()) == {"in the end"}


def test_an_act_that_collides_again_and_again_is_unavailable(driver: Driver) -> None:
    remove = hooked("postgres.sending", 3, psycopg.errors.SerializationFailure("collided"))
    try:
        with pytest.raises(StoreUnavailable, match="collided with other transactions"):
            driver.run(add("never"))
    finally:
        remove()
    assert driver.run(names()) == set()


def test_two_acts_that_lock_crosswise_both_succeed(url: str) -> None:
    execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET deadlock_timeout = '20ms'")
    driver = a_driver(url)
    orders = [("a", "b"), ("b", "a")]
    callers = [Running(lambda order=order: driver.run(doing(Step("crosswise", order)))) for order in orders]  # type: ignore[misc]
    assert [caller.ended() for caller in callers] == [None, None]
    assert driver.run(names()) == {"a", "b"}
    driver.close()
    asked = "SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database WHERE datname = current_database()"
    eventually(lambda: execute(url, asked)[0][1] >= 1, "the server counts its deadlock")


REFUSED = Step("fail", ("55P03",))


def test_a_refusal_after_a_step_that_was_applied_leaves_the_act_unknown(driver: Driver) -> None:
    with pytest.raises(OutcomeUnknown, match="in part or in full"):
        driver.run(doing(Step("add", (["first"],)), REFUSED))
    assert driver.run(names()) == {"first"}


def test_a_refusal_after_steps_that_only_prepare_is_a_refusal(driver: Driver) -> None:
    with pytest.raises(StoreUnavailable):
        driver.run(doing(preparing("names"), preparing("names"), REFUSED))


def test_a_refusal_in_the_course_of_a_read_is_a_refusal(driver: Driver) -> None:
    with pytest.raises(StoreUnavailable):
        driver.run(doing(Step("names"), REFUSED, reads_only=True))


UNSTORABLE = [
    ("add_number", ("negative", -1)),  # CHECK
    ("add_number", (None, 1)),  # NOT NULL
    ("add_number", ("large", 2**40)),  # a smallint that it does not fit in
    ("add_number", ("nul \0", 1)),
    ("add_number", ("surrogate \ud800", 1)),
]


@pytest.mark.parametrize(("statement", "parameters"), UNSTORABLE)
def test_a_settlement_of_unstorable_content_is_rejected(
    driver: Driver, statement: str, parameters: tuple[object, ...]
) -> None:
    with pytest.raises(SettlementRejected) as refused:
        driver.run(doing(Step(statement, parameters), name="settle"))
    assert refused.value.code == "settlement_rejected"
    assert driver.run(names()) == set()


@pytest.mark.parametrize("error", [ValueError("text holds a NUL character"), OverflowError("int too big to convert")])
def test_a_settlement_whose_content_cannot_even_be_packed_is_rejected(driver: Driver, error: Exception) -> None:
    def course() -> Generator[Step, Any, None]:
        yield preparing("names")
        raise error

    with pytest.raises(SettlementRejected):
        driver.run(Act("settle", course))
    with pytest.raises(type(error)):
        driver.run(Act("other", course))


def test_what_an_act_raises_itself_reaches_its_caller(driver: Driver) -> None:
    def course() -> Generator[Step, Any, None]:
        yield Step("names")
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

    (before,) = _opened(driver, url)
    previous = signal.signal(signal.SIGUSR1, stop)
    try:
        with Holder(url):
            interrupting = Running(interrupt)
            with pytest.raises(Stopped):
                driver.run(add("contested"))
            interrupting.ended()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert driver.run(names()) <= {"contested"}
    eventually(lambda: before not in sessions(url), "the session ends")


def _opened(driver: Driver, url: str) -> list[int]:
    driver.run(names())
    return sessions(url)


def test_a_mistake_of_ours_is_raised_as_it_is(driver: Driver) -> None:
    for step in (Step("mistake"), Step("nonsense"), Step("add", ([object()],))):
        with pytest.raises(psycopg.Error):
            driver.run(doing(step))
    assert driver.run(names()) == set()


def test_a_caller_that_is_cancelled_in_the_queue_has_sent_nothing(driver: Driver, url: str) -> None:
    async def cancel_the_second() -> None:
        first = asyncio.create_task(driver.run_async(add("contested", act="release")))
        await asyncio.to_thread(eventually, waiting(url), "the first waits")
        second = asyncio.create_task(driver.run_async(add("second", act="settle")))
        await driver.run_async(names())
        second.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await second
        assert cancelled.value.__cause__ is None
        holder.let_go()
        await first
        await driver.run_async(add("third", act="settle"))

    with Holder(url) as holder:
        asyncio.run(cancel_the_second())
    assert driver.run(names()) == {"contested", "third"}


def test_a_caller_that_is_cancelled_under_way_hears_that_the_outcome_is_unknown(driver: Driver, url: str) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(driver.run_async(add("contested", act="claim")))
        await asyncio.to_thread(eventually, waiting(url), "it waits")
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        assert isinstance(cancelled.value.__cause__, OutcomeUnknown)
        assert cancelled.value.__cause__.code == "cancelled_after_send"
        holder.let_go()
        await driver.run_async(add("next", act="claim"))

    with Holder(url) as holder:
        asyncio.run(cancel())
    assert driver.run(names()) == {"contested", "next"}


def test_closing_leaves_no_thread_and_no_descriptor_and_the_next_use_opens_again(driver: Driver, url: str) -> None:
    def everything() -> tuple[set[str], list[str]]:
        return {thread.name for thread in threading.enumerate()}, open_files()

    before = everything()
    for name in ("first", "again"):
        asyncio.run(driver.run_async(add(name, act="claim")))
        asyncio.run(driver.run_async(names()))
        driver.wake_on_work(lambda: None)
        driver.notify(1)
        assert everything() != before
        driver.close()
        assert everything() == before
        eventually(lambda: not sessions(url), "the server's sessions end")
    assert driver.run(names()) == {"first", "again"}


def test_an_interpreter_that_never_closed_its_store_ends_by_itself(driver: Driver, url: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from tests.postgres.places import a_driver, add\n"
        "driver = a_driver(sys.argv[1])\n"
        "driver.run(add('blocking'))\n"
        "asyncio.run(driver.run_async(add('async')))\n"
        "driver.wake_on_work(lambda: None)\n"
        "driver.notify(1)\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=Path(__file__).parents[2])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert driver.run(names()) == {"blocking", "async"}


def test_an_executor_has_one_connection_and_no_thread(url: str) -> None:
    def live(peer: Peer) -> None:
        place.enter_executor()
        driver = a_driver(url)
        driver.run(add("blocking"))
        asyncio.run(driver.run_async(add("async", act="claim")))
        driver.notify(1)
        peer.say([thread.name for thread in threading.enumerate()])
        peer.say(len(sessions(url)))
        driver.close()

    with Child(live) as child:
        assert child.hear() == ["MainThread"]
        assert child.hear() == 1
    driver = a_driver(url)
    assert driver.run(names()) == {"blocking", "async"}
    driver.close()
