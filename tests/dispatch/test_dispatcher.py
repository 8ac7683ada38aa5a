"""Dispatching into a real store: what was confirmed is there, what was refused is not."""

import asyncio
import datetime
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick import (
    BatchItem,
    ConfigurationError,
    DispatchOptions,
    DispatchOutcomeUnknown,
    DispatchValidationError,
    InvalidArgument,
    JobState,
    LocalCapacityExceeded,
    Prepared,
    Priority,
    ProducerOptions,
    Receipt,
    ResolutionStatus,
    Runwick,
)
from runwick.contracts.dispatching import ANSWERS_KEPT_MS, COMMAND_LIFETIME_MAX_MS
from runwick.contracts.identity import id_text
from runwick.runtime.ambient import SystemClock
from tests.dispatch.jobs import Report, application, stored, when_applied

DEADLINE_S = 20.0
PROFILES = {
    "sqlite": "sqlite.wal-full",
    "postgresql": "postgres.synchronous-commit",
    "redis": "redis.aof-always",
}


def test_a_confirmed_dispatch_is_in_the_store(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    assert receipt.disposition == "created"
    assert receipt.confirmed_profile == PROFILES[rw.store_url.partition(":")[0]]
    assert rw.get(receipt).state is JobState.PENDING
    assert stored(rw) == 1


def test_every_dispatch_is_a_job_of_its_own(rw: Runwick) -> None:
    first, second = rw.dispatch(Report("May")), rw.dispatch(Report("May"))
    assert first.job_id != second.job_id
    assert first.operation_id != second.operation_id


def test_both_ways_of_dispatching_do_the_same(rw: Runwick) -> None:
    async def dispatch() -> tuple[Receipt, int]:
        receipt = await rw.dispatch_async(Report("May"), priority="low")
        batch = await rw.dispatch_many_async([Report("June"), Report("July")])
        return receipt, len(batch.items)

    receipt, number = asyncio.run(dispatch())
    blocking = rw.dispatch(Report("May"), priority="low")
    assert number == len(rw.dispatch_many([Report("June"), Report("July")]).items)
    views = [rw.get(each) for each in (receipt, blocking)]
    assert {(view.name, view.queue, view.priority, view.state) for view in views} == {
        ("reports.build", "reports", Priority.LOW, JobState.PENDING)
    }
    assert stored(rw) == 6


def test_a_batch_is_one_receipt_per_item(rw: Runwick) -> None:
    batch = rw.dispatch_many([Report("a"), BatchItem(Report("b"), DispatchOptions(priority="high"))])
    assert [item.ordinal for item in batch.items] == [0, 1]
    assert [rw.get(receipt).priority for receipt in batch.receipts] == [Priority.MEDIUM, Priority.HIGH]
    assert stored(rw) == 2


def test_an_empty_batch_is_an_empty_receipt(rw: Runwick) -> None:
    assert list(rw.dispatch_many([]).items) == []
    assert list(asyncio.run(rw.dispatch_many_async(iter(()))).items) == []


def test_a_refused_dispatch_writes_nothing(rw: Runwick) -> None:
    with pytest.raises(DispatchValidationError, match="invalid_text"):
        rw.dispatch(Report("\0"))
    with pytest.raises(DispatchValidationError, match="unknown_queue"):
        rw.dispatch(Report("May"), queue="nowhere")
    with pytest.raises(DispatchValidationError, match="invalid_text"):
        asyncio.run(rw.dispatch_async(Report("\0")))
    with pytest.raises(TypeError, match="que"):
        rw.dispatch(Report("May"), que="reports")  # type: ignore[call-arg]
    assert stored(rw) == 0


def test_one_invalid_item_refuses_the_whole_batch(rw: Runwick) -> None:
    with pytest.raises(DispatchValidationError) as caught:
        rw.dispatch_many([Report("fine"), Report("\0"), Report("fine")])
    assert [failure.ordinal for failure in caught.value.item_failures] == [1]
    assert stored(rw) == 0


def test_blocking_on_an_event_loop_works_and_warns_once_per_place(rw: Runwick) -> None:
    async def dispatch_three() -> None:
        for _ in range(2):
            rw.dispatch(Report("May"))
        rw.dispatch_many([Report("June")])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        asyncio.run(dispatch_three())
    assert [warning.category for warning in caught] == [RuntimeWarning, RuntimeWarning]
    assert {warning.filename for warning in caught} == {__file__}
    assert len({warning.lineno for warning in caught}) == 2
    assert "await dispatch_async(…)" in str(caught[0].message)
    assert stored(rw) == 3


def test_a_warning_that_is_an_error_comes_before_the_write(rw: Runwick) -> None:
    async def dispatch() -> None:
        with pytest.raises(RuntimeWarning):
            rw.dispatch(Report("May"))

    asyncio.run(dispatch())
    assert stored(rw) == 0


@pytest.mark.parametrize("items", [None, 5, Report("one")], ids=lambda items: type(items).__name__)
def test_a_batch_that_is_none_is_refused(rw: Runwick, items: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"an iterable of jobs, this is {type(items).__name__}") as refused:
        rw.dispatch_many(items)
    assert refused.value.code == "invalid_argument"
    assert stored(rw) == 0


def test_a_prepared_dispatch_is_one_job_however_often_it_is_sent(rw: Runwick) -> None:
    prepared = rw.prepare(Report("May"), priority="high")
    assert stored(rw) == 0
    first = rw.dispatch_prepared(prepared)
    assert (first.job_id, first.operation_id) == (prepared.job_id, prepared.operation_id)
    read = rw.import_prepared(prepared.export())
    assert [rw.dispatch_prepared(read), asyncio.run(rw.dispatch_prepared_async(prepared))] == [first, first]
    assert rw.get(first).priority is Priority.HIGH
    assert stored(rw) == 1


def test_a_prepared_batch_is_one_batch_however_often_it_is_sent(rw: Runwick) -> None:
    prepared = rw.prepare_many([Report("May"), BatchItem(Report("June"), DispatchOptions(priority="low"))])
    first = rw.dispatch_prepared(prepared)
    assert [receipt.operation_id for receipt in first.receipts] == prepared.operation_ids
    assert rw.dispatch_prepared(prepared) == first
    assert rw.dispatch_prepared(rw.prepare_many([])).receipts == []
    assert stored(rw) == 2


def test_threads_that_send_the_same_request_make_one_job(rw: Runwick) -> None:
    prepared, receipts = rw.prepare(Report("May")), list[Receipt]()
    threads = [threading.Thread(target=lambda: receipts.append(rw.dispatch_prepared(prepared))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert {receipt.job_id for receipt in receipts} == {prepared.job_id}
    assert (len(receipts), stored(rw)) == (8, 1)


def test_a_prepared_dispatch_is_good_for_its_lifetime_on_its_store(store_url: str) -> None:
    rw = application(store_url, producer=ProducerOptions(command_lifetime=datetime.timedelta(seconds=90)))
    assert rw.prepare(Report("May")).command.store_id is None  # nothing was asked yet
    rw.dispatch(Report("May"))
    before_ms = rw.store.now_ms()
    prepared = rw.prepare(Report("May"))
    after_ms = rw.store.now_ms()
    assert before_ms <= prepared.command.deadline_ms - 90_000 <= after_ms
    assert prepared.command.store_id == rw.store.store_id is not None
    assert prepared.deadline.timestamp() * 1000 == pytest.approx(prepared.command.deadline_ms)
    rw.close()


@pytest.mark.parametrize("prepared", [None, "0199c0de-0000-7000-8000-000000000000", Report("May")], ids=repr)
def test_what_was_not_prepared_is_not_sent(rw: Runwick, prepared: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"this is {type(prepared).__name__}; give what prepare"):
        rw.dispatch_prepared(prepared)


def test_a_request_of_another_application_is_not_sent(rw: Runwick) -> None:
    other = Runwick("office", store=rw.store_url)
    with pytest.raises(DispatchValidationError, match='prepared by application "shop", this is "office"') as refused:
        other.dispatch_prepared(rw.prepare(Report("May")))
    assert refused.value.code == "invalid_prepared"
    assert stored(rw) == 0


def test_an_operation_is_resolved(rw: Runwick) -> None:
    prepared = rw.prepare(Report("May"))
    assert rw.resolve(prepared.operation_id).status is ResolutionStatus.NOT_OBSERVED
    receipt = rw.dispatch_prepared(prepared)
    for resolution in (rw.resolve(receipt.operation_id), asyncio.run(rw.resolve_async(prepared.operation_id))):
        assert (resolution.status, resolution.receipt) == (ResolutionStatus.CONFIRMED, receipt)
    batch = rw.dispatch_many([Report("June"), Report("July")])
    for each in batch.receipts:
        assert rw.resolve(each.operation_id).receipt == each
    with pytest.raises(InvalidArgument, match="invalid_id"):
        rw.resolve("May")


def test_an_operation_of_another_application_is_not_observed(rw: Runwick) -> None:
    other = Runwick("office", store=rw.store_url)
    assert other.resolve(rw.dispatch(Report("May")).operation_id).status is ResolutionStatus.NOT_OBSERVED
    other.close()


@pytest.mark.parametrize(
    ("seconds", "status"), [(-60, ResolutionStatus.NOT_OBSERVED), (60, ResolutionStatus.EXPIRED_UNKNOWN)]
)
def test_an_old_operation_has_no_definite_answer(rw: Runwick, seconds: int, status: ResolutionStatus) -> None:
    made_ms = rw.clock.now_ms() - COMMAND_LIFETIME_MAX_MS - ANSWERS_KEPT_MS - seconds * 1000
    operation_id = id_text(made_ms.to_bytes(6) + rw.ids.ordered()[6:])
    assert rw.resolve(operation_id).status is status


@pytest.fixture
def one_at_a_time(store_url: str) -> Iterator[Runwick]:
    """Has dispatched one job, so that the next one is a single statement."""
    app = application(store_url, producer=ProducerOptions(max_concurrent_calls=1, max_waiting_operations=0))
    app.dispatch(Report("April"))
    yield app
    app.close()


def fail() -> None:
    raise OSError("the disk said no")


def test_an_answer_that_is_lost_after_the_commit(one_at_a_time: Runwick) -> None:
    rw = one_at_a_time
    with when_applied(rw, fail), pytest.raises(DispatchOutcomeUnknown) as caught:
        rw.dispatch(Report("May"))
    assert stored(rw) == 2
    assert isinstance(caught.value.prepared, Prepared)
    receipt = rw.dispatch_prepared(caught.value.prepared)
    assert rw.resolve(receipt.operation_id).receipt == receipt
    assert stored(rw) == 2


def test_an_answer_that_is_lost_once_is_asked_for_again(one_at_a_time: Runwick) -> None:
    rw, failures = one_at_a_time, [fail]
    with when_applied(rw, lambda: failures and failures.pop()()):
        receipt = rw.dispatch(Report("May"))
    assert rw.get(receipt).state is JobState.PENDING
    failures.append(fail)
    with when_applied(rw, lambda: failures and failures.pop()()):
        batch = asyncio.run(rw.dispatch_many_async([Report("June"), Report("July")]))
    assert failures == []
    assert stored(rw) == 2 + len(batch.items)


def test_more_than_the_process_may_have_under_way_is_refused_and_reads_are_not(one_at_a_time: Runwick) -> None:
    rw, there, go_on = one_at_a_time, threading.Event(), threading.Event()
    receipt = rw.dispatch(Report("May"))

    def stop() -> None:
        if threading.current_thread() is busy:
            there.set()
            assert go_on.wait(DEADLINE_S)

    busy = threading.Thread(target=rw.dispatch, args=[Report("June")])
    with when_applied(rw, stop):
        busy.start()
        assert there.wait(DEADLINE_S)
        with pytest.raises(LocalCapacityExceeded, match="1 are under way and 0 wait"):
            rw.dispatch(Report("July"))
        with pytest.raises(LocalCapacityExceeded):
            asyncio.run(rw.dispatch_many_async([Report("July")]))
        assert rw.get(receipt).state is JobState.PENDING
        assert rw.resolve(receipt.operation_id).receipt == receipt
        assert rw.dispatch_many([]).receipts == []
        go_on.set()
        busy.join(DEADLINE_S)
    assert stored(rw) == 3


def test_limits_out_of_bounds_are_refused_at_first_use(tmp_path: Path) -> None:
    rw = application(f"sqlite:///{tmp_path}/jobs.db", producer=ProducerOptions(max_concurrent_calls=0))
    with pytest.raises(ConfigurationError, match="max_concurrent_calls"):
        rw.dispatch(Report("May"))


class WrongClock(SystemClock):
    """This host's, wrong by so much."""

    def __init__(self, behind_ms: int) -> None:
        self._behind_ms = behind_ms

    def now_ms(self) -> int:
        return super().now_ms() - self._behind_ms


@pytest.mark.parametrize("store_url", ["postgres", "redis"], indirect=True)  # whose clock is another host's
@pytest.mark.parametrize("behind_s", [600, 200_000, -3_600])
def test_a_process_with_a_wrong_clock_dispatches_all_the_same(store_url: str, behind_s: int) -> None:
    rw = application(store_url, clock=WrongClock(behind_s * 1000))
    receipt = rw.dispatch(Report("May"))
    assert rw.resolve(receipt.operation_id).receipt == receipt
    assert [item.ordinal for item in asyncio.run(rw.dispatch_many_async([Report("June")])).items] == [0]
    right_ms = SystemClock().now_ms() + COMMAND_LIFETIME_MAX_MS
    assert abs(rw.prepare(Report("July")).command.deadline_ms - right_ms) < 60_000
    assert stored(rw) == 2
    rw.close()
