"""Dispatching into a real store: what was confirmed is there, what was refused is not."""

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick import (
    BatchItem,
    DispatchOptions,
    DispatchValidationError,
    InvalidArgument,
    Job,
    JobState,
    Priority,
    Receipt,
    Runwick,
)
from runwick.contracts.attempts import Lane


class Report(Job):
    title: str


@pytest.fixture
def rw(tmp_path: Path) -> Iterator[Runwick]:
    app = Runwick("shop", store=f"sqlite:///{tmp_path}/jobs.db")
    app.job("reports.build", queue="reports")(Report)
    app.migrate()
    yield app
    app.close()


def stored(rw: Runwick) -> int:
    """How many jobs are in the store."""
    lanes = [Lane(queue, priority) for queue in rw.catalog.queues for priority in Priority]
    outlook = rw.store.run(rw.store.outlook("shop", lanes, frozenset(rw.catalog.jobs)))
    return outlook.due + outlook.later + outlook.leased + outlook.undecodable


def test_a_confirmed_dispatch_is_in_the_store(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    assert (receipt.disposition, receipt.confirmed_profile) == ("created", "sqlite.wal-full")
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
    assert [rw.get(item.receipt).priority for item in batch.items] == [Priority.MEDIUM, Priority.HIGH]
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
