"""What the driver promises: one transaction per act, an honest answer to "was it written?", no loop that waits."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick.contracts.errors import (
    OutcomeUnknown,
    SettlementRejected,
    StoreError,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.contracts.stores import Act
from runwick.runtime import crossings
from runwick.stores.sqlite.driver import Driver
from runwick.stores.steps import Step
from tests.sqlite.places import a_driver, add, add_pages, migrated, names
from tests.sqlite.processes import DEADLINE_S, Child, Peer, open_files


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = a_driver(migrated(tmp_path))
    yield driver
    driver.close()


def holding_the_lock(path: Path) -> Callable[[Peer], None]:
    """A process that is in a write transaction of its own until it hears something."""

    def work(peer: Peer) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        peer.say("locked")
        peer.hear()
        connection.execute("ROLLBACK")
        connection.close()
        peer.say("free")

    return work


def failing(error: Exception) -> Act[None]:
    def steps() -> Generator[Step, Any, None]:
        yield Step("intern_application", ("rolled back",))
        raise error

    return Act("failing", steps)


def test_an_act_is_one_transaction_and_its_answer_comes_back(driver: Driver) -> None:
    assert driver.run(add("a", "b")) == 2
    assert driver.run(names()) == {"a", "b"}
    with pytest.raises(KeyError):
        driver.run(failing(KeyError("mistake")))
    assert driver.run(names()) == {"a", "b"}
    assert driver.run(add("c")) == 1


def test_blocking_and_asynchronous_callers_run_the_same_acts(driver: Driver) -> None:
    async def both() -> set[str]:
        await asyncio.gather(*(driver.run_async(add(f"async {number}")) for number in range(20)))
        driver.run(add("blocking"))
        with pytest.raises(KeyError):
            await driver.run_async(failing(KeyError("mistake")))
        return await driver.run_async(names())

    assert asyncio.run(both()) == {"blocking", *(f"async {number}" for number in range(20))}


def test_a_many_step_answers_the_number_of_rows(driver: Driver) -> None:
    def steps(values: list[tuple[int, str, str, int]]) -> Generator[Step, Any, int]:
        changed: int = yield Step("migration_record", values, many=True)
        return changed

    rows = [(number, "later", "-", 0) for number in (-3, -2, -1)]
    assert driver.run(Act("record", lambda: steps(rows))) == 3
    assert driver.run(Act("record", lambda: steps([]))) == 0


def test_a_lock_that_stays_taken_is_unavailable_and_nothing_was_written(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    driver = a_driver(path, busy_timeout_ms=100)
    with Child(holding_the_lock(path)) as child:
        child.hear()
        with pytest.raises(StoreUnavailable, match="another process kept the write lock") as refused:
            driver.run(add("late"))
        assert refused.value.code == "store_unavailable"
        assert driver.run(names()) == set(), "reading needs no lock"
        child.say("let go")
        child.hear()
    assert driver.run(names()) == set()
    assert driver.run(add("now")) == 1
    driver.close()


def test_the_event_loop_never_waits_for_the_lock(driver: Driver) -> None:
    async def wait_for_the_other(child: Child) -> None:
        writing = asyncio.create_task(driver.run_async(add("patient")))
        for _ in range(50):
            await driver.run_async(names())
        assert not writing.done()
        child.say("let go")
        assert await writing == 1

    with Child(holding_the_lock(driver.path)) as child:
        child.hear()
        asyncio.run(wait_for_the_other(child))
        child.hear()


def test_a_caller_that_is_cancelled_in_the_queue_has_written_nothing(driver: Driver) -> None:
    async def cancel_the_second(child: Child) -> None:
        first = asyncio.create_task(driver.run_async(add("first")))
        second = asyncio.create_task(driver.run_async(add("second")))
        await driver.run_async(names())
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        child.say("let go")
        await first

    with Child(holding_the_lock(driver.path)) as child:
        child.hear()
        asyncio.run(cancel_the_second(child))
        child.hear()
    asyncio.run(driver.run_async(add("third")))
    assert driver.run(names()) == {"first", "third"}


def test_a_caller_that_is_cancelled_while_the_lock_is_waited_for_has_written_nothing(driver: Driver) -> None:
    async def cancel_it(child: Child) -> None:
        writing = asyncio.create_task(driver.run_async(add("withdrawn")))
        await driver.run_async(names())
        writing.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await writing
        assert cancelled.value.__cause__ is None
        child.say("let go")
        await driver.run_async(add("next"))

    with Child(holding_the_lock(driver.path)) as child:
        child.hear()
        asyncio.run(cancel_it(child))
        child.hear()
    assert driver.run(names()) == {"next"}


@pytest.mark.parametrize("number", [1, 2], ids=["alone", "with others"])
def test_a_caller_that_is_cancelled_once_it_has_begun_learns_that_it_may_be_applied(
    driver: Driver, number: int
) -> None:
    inside, cancelled = threading.Event(), threading.Event()

    def steps() -> Generator[Step, Any, None]:
        yield Step("intern_application", ("begun",))
        inside.set()
        assert cancelled.wait(DEADLINE_S)

    async def cancel_it(child: Child) -> None:
        others = [asyncio.create_task(driver.run_async(add(f"other {place}"))) for place in range(number - 1)]
        begun = asyncio.create_task(driver.run_async(Act("begun", steps)))
        await driver.run_async(names())
        child.say("let go")
        assert await asyncio.to_thread(inside.wait, DEADLINE_S)
        begun.cancel()
        with pytest.raises(asyncio.CancelledError) as stopped:
            await begun
        cause = stopped.value.__cause__
        assert isinstance(cause, OutcomeUnknown)
        assert cause.code == "cancelled_after_send"
        cancelled.set()
        await asyncio.gather(*others)
        await driver.run_async(add("last"))

    with Child(holding_the_lock(driver.path)) as child:
        child.hear()
        asyncio.run(cancel_it(child))
        child.hear()
    assert driver.run(names()) >= {"begun", "last"}


def test_an_error_after_the_commit_leaves_the_outcome_unknown(driver: Driver) -> None:
    def lose_the_answer() -> None:
        raise ConnectionError("gone")

    remove = crossings.on("sqlite.committed", lose_the_answer)
    try:
        with pytest.raises(OutcomeUnknown, match="commit of add was lost") as unknown:
            driver.run(add("perhaps"))
        with pytest.raises(OutcomeUnknown):
            asyncio.run(driver.run_async(add("perhaps too")))
    finally:
        remove()
    assert unknown.value.code == "outcome_unknown"
    assert driver.run(names()) == {"perhaps", "perhaps too"}


def test_a_full_disk_is_unavailable_and_nothing_was_written(driver: Driver) -> None:
    driver.run(add("before"))
    with driver._open().writing as connection:
        connection.execute("PRAGMA max_page_count = 1")  # SQLite keeps to what the file has already
    with pytest.raises(StoreUnavailable, match=r"disk of .* is full; nothing was written"):
        driver.run(add_pages("much", 500))
    assert driver.run(names()) == {"before"}


@pytest.mark.parametrize(
    "row",
    [
        (1, None, "-", 0),  # NOT NULL
        ("one", "name", "-", 0),  # the wrong type for a STRICT table
        (2**70, "name", "-", 0),  # an integer that SQLite cannot hold
        (2, "\ud800", "-", 0),  # a lone surrogate
    ],
)
def test_a_settlement_of_unstorable_content_is_rejected_whole(driver: Driver, row: tuple[object, ...]) -> None:
    def steps() -> Generator[Step, Any, None]:
        yield Step("intern_application", ("in the same batch",))
        yield Step("migration_record", row)

    with pytest.raises(SettlementRejected) as refused:
        driver.run(Act("settle", steps))
    assert refused.value.code == "settlement_rejected"
    assert driver.run(names()) == set()


def test_an_open_process_notices_that_the_store_was_migrated_on(driver: Driver) -> None:
    driver.run(add("old"))
    with sqlite3.connect(driver.path) as other:
        other.execute("INSERT INTO runwick_migration SELECT max(number) + 1, 'later', '-', 0 FROM runwick_migration")
    other.close()
    acts: list[Act[Any]] = [add("new"), names()]
    for act in acts:
        with pytest.raises(StoreRevisionMismatch, match="the store is newer"):
            driver.run(act)


@pytest.mark.parametrize("put_another", [False, True])
def test_an_open_process_notices_that_its_file_was_taken_away(
    driver: Driver, tmp_path: Path, put_another: bool
) -> None:
    driver.run(add("kept"))
    driver.path.rename(tmp_path / "moved.db")
    if put_another:
        migrated(tmp_path)
    with pytest.raises(StoreError, match="is gone or was replaced") as refused:
        driver.run(add("lost"))
    assert refused.value.code == "store_history_broken"


def test_closing_leaves_no_thread_and_no_descriptor_and_the_next_use_opens_again(driver: Driver) -> None:
    def everything() -> tuple[set[str], list[str]]:
        return {thread.name for thread in threading.enumerate()}, open_files()

    before = everything()
    for name in ("first", "again"):
        asyncio.run(driver.run_async(add(name)))
        asyncio.run(driver.run_async(names()))
        assert everything() != before
        driver.close()
        assert everything() == before
    assert driver.run(names()) == {"first", "again"}


def test_an_interpreter_that_never_closed_its_store_ends_by_itself(driver: Driver) -> None:
    script = (
        "import asyncio, sys, pathlib\n"
        "from tests.sqlite.places import a_driver, add\n"
        "driver = a_driver(pathlib.Path(sys.argv[1]))\n"
        "driver.run(add('blocking'))\n"
        "asyncio.run(driver.run_async(add('async')))\n"
    )
    command = [sys.executable, "-W", "error", "-c", script, str(driver.path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=Path(__file__).parents[2])
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert driver.run(names()) == {"blocking", "async"}
