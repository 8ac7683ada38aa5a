"""Every option at every entry: whichever way a job is dispatched, the same command reaches the store."""

import asyncio
import datetime
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from runwick import (
    BatchItem,
    BatchReceipt,
    DispatchOptions,
    DispatchUniqueness,
    DispatchValidationError,
    DuplicateMatch,
    ItemFailure,
    Job,
    PerResource,
    Prepared,
    PreparedBatch,
    Receipt,
    ReceiptDisposition,
    RollingWindow,
    RollingWindowPerResource,
    Runwick,
    UniquenessConflict,
    UniqueWithinWindow,
)
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import COMMAND_LIFETIME_MAX_MS, Command
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.dispatch.fingerprint import fingerprint
from tests.dispatch.recorder import NOW_MS, recording

HOUR = datetime.timedelta(hours=1)
MS = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Sync(Job):
    invoice: int


def by_invoice(job: Any) -> str:
    return f"invoice:{job.invoice}"


def limited(declare: Callable[..., Any]) -> Any:
    """What declares a job with everything that a dispatch prepares."""
    return declare(
        max_concurrent=5,
        per_resource=(PerResource(by_invoice, 1),),
        rolling_window=RollingWindow(100, HOUR),
        rolling_window_per_resource=(RollingWindowPerResource(by_invoice, 10, HOUR),),
        unique_while_active=by_invoice,
        unique_within_window=UniqueWithinWindow(by_invoice, HOUR),
    )


rw = Runwick("shop", store="memory://")
rw.queue("bulk")
rw.queue("capped", max_concurrent=3)


class Free(Job):
    invoice: int


rw.job("invoice.free")(Free)
limited(lambda **settings: rw.job("invoice.sync", **settings))(Sync)


@rw.task("invoice.task")
def free_task(invoice: int) -> None: ...


def limited_function(invoice: int) -> None: ...


limited_task = limited(lambda **settings: rw.task("invoice.limited-task", **settings))(limited_function)


def sent_again(prepared: Prepared | PreparedBatch) -> Any:
    """Kept somewhere and read back before it is sent."""
    return rw.dispatch_prepared(rw.import_prepared(prepared.export()))


ENTRIES: dict[str, Callable[[Job, dict[str, Any]], object]] = {
    "dispatch": lambda job, options: rw.dispatch(job, **options),
    "dispatch_async": lambda job, options: asyncio.run(rw.dispatch_async(job, **options)),
    "dispatch_many": lambda job, options: rw.dispatch_many([BatchItem(job, DispatchOptions(**options))]),
    "dispatch_many_async": lambda job, options: asyncio.run(
        rw.dispatch_many_async([BatchItem(job, DispatchOptions(**options))])
    ),
    "prepare": lambda job, options: rw.dispatch_prepared(rw.prepare(job, **options)),
    "prepare, asynchronously sent": lambda job, options: asyncio.run(
        rw.dispatch_prepared_async(rw.prepare(job, **options))
    ),
    "prepare, exported": lambda job, options: sent_again(rw.prepare(job, **options)),
    "prepare_many": lambda job, options: rw.dispatch_prepared(
        rw.prepare_many([BatchItem(job, DispatchOptions(**options))])
    ),
    "prepare_many, exported": lambda job, options: sent_again(
        rw.prepare_many([BatchItem(job, DispatchOptions(**options))])
    ),
}
JOBS: dict[str, Callable[[], Job]] = {"record": lambda: Free(7), "task": lambda: free_task.job(7)}

WINDOW_KEY = {"window_key": "w", "window_ms": 3_600_000}
OPTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    ("queue", "bulk", {"lane": Lane("bulk", Priority.MEDIUM)}),
    (
        "queue",
        "capped",
        {"lane": Lane("capped", Priority.MEDIUM), "scopes": (ScopeNeed(LimitKind.QUEUE, "capped", 3),)},
    ),
    ("priority", "high", {"lane": Lane("default", Priority.HIGH)}),
    ("priority", "low", {"lane": Lane("default", Priority.LOW)}),
    ("not_before", EPOCH + 5 * MS, {"not_before_ms": 5}),
    ("not_before", EPOCH, {"not_before_ms": 0}),
    ("not_before", 5 * MS, {"delay_ms": 5}),
    ("not_before", 0 * MS, {"delay_ms": 0}),
    ("metadata", {"channel": "web"}, {"metadata": b'{"channel":"web"}'}),
    ("tenant", "acme", {"tenant": "acme"}),
    ("tenant", "0", {"tenant": "0"}),
    ("expires_at", EPOCH + 5 * MS, {"expires_at_ms": 5}),
    ("expires_at", 5 * MS, {"expires_in_ms": 5}),
    ("uniqueness", DispatchUniqueness(active_key="0"), {"active_key": "0"}),
    ("uniqueness", DispatchUniqueness(window_key="w", window=HOUR), WINDOW_KEY),
    ("uniqueness", DispatchUniqueness("a", "w", HOUR), {"active_key": "a", **WINDOW_KEY}),
]


def sent(entry: str, job: Job, **options: Any) -> Command:
    """The command that reached the store, without what names it alone."""
    with recording(rw) as recorder:
        ENTRIES[entry](job, options)
    [[command]] = recorder.sent
    return msgspec.structs.replace(command, operation_id=b"", job_id=b"")


def expected(kind: str, **changes: Any) -> Command:
    command = Command(
        operation_id=b"",
        job_id=b"",
        application="shop",
        kind=Kind(kind, 1),
        lane=Lane("default", Priority.MEDIUM),
        policy=JobPolicy(),
        payload=b'{"invoice":7}',
        deadline_ms=NOW_MS + COMMAND_LIFETIME_MAX_MS,
    )
    command = msgspec.structs.replace(command, **changes)
    if command.window_key is not None:
        command = msgspec.structs.replace(command, fingerprint=fingerprint(command))
    return command


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("option", "value", "changes"), OPTIONS, ids=lambda value: "")
@pytest.mark.parametrize(("what", "kind"), [("record", "invoice.free"), ("task", "invoice.task")])
def test_every_option_at_every_entry_f100(
    what: str, kind: str, option: str, value: Any, changes: dict[str, Any], entry: str
) -> None:
    assert sent(entry, JOBS[what](), **{option: value}) == expected(kind, **changes)


def test_the_table_knows_every_option_f100() -> None:
    assert {option for option, _, _ in OPTIONS} == set(DispatchOptions.__struct_fields__)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("job", "kind"),
    [(lambda: Sync(7), "invoice.sync"), (lambda: limited_task.job(7), "invoice.limited-task")],
    ids=["record", "task"],
)
def test_everything_declared_at_every_entry_f100(job: Callable[[], Job], kind: str, entry: str) -> None:
    assert sent(entry, job(), queue="capped") == expected(
        kind,
        lane=Lane("capped", Priority.MEDIUM),
        active_key="invoice:7",
        window_key="invoice:7",
        window_ms=3_600_000,
        scopes=(
            ScopeNeed(LimitKind.QUEUE, "capped", 3),
            ScopeNeed(LimitKind.JOB_TYPE, kind, 5),
            ScopeNeed(LimitKind.RESOURCE, "invoice:7", 1),
        ),
        rates=(
            RateNeed(LimitKind.JOB_TYPE, kind, 100, 3_600_000),
            RateNeed(LimitKind.RESOURCE, "invoice:7", 10, 3_600_000),
        ),
    )


def test_a_task_that_dispatches_itself_is_no_exception_f100() -> None:
    with recording(rw) as recorder:
        limited_task.dispatch(7)
        asyncio.run(limited_task.dispatch_async(invoice=7))
    for [command] in recorder.sent:
        assert msgspec.structs.replace(command, operation_id=b"", job_id=b"") == sent("dispatch", limited_task.job(7))


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"uniqueness": DispatchUniqueness(active_key="")}, "invalid_key"),
        ({"uniqueness": DispatchUniqueness(window_key="w")}, "invalid_time"),
        ({"uniqueness": DispatchUniqueness("other")}, "uniqueness_key_mismatch"),
        ({"not_before": HOUR}, "invalid_time"),
        ({"uniqueness": False}, "invalid_argument"),
    ],
    ids=repr,
)
def test_what_is_refused_is_refused_at_every_entry_f100(options: dict[str, Any], code: str, entry: str) -> None:
    with recording(rw) as recorder:
        with pytest.raises(DispatchValidationError) as caught:
            ENTRIES[entry](Sync(7), options)
        assert (caught.value.code, recorder.sent) == (code, [])


@pytest.mark.parametrize("value", [0, "", False, None, 5], ids=repr)
@pytest.mark.parametrize("option", DispatchOptions.__struct_fields__)
def test_an_empty_option_is_refused_and_never_a_default_f101(option: str, value: Any) -> None:
    options: Any = {option: value}
    with recording(rw) as recorder:
        if value is None and option not in ("queue", "priority"):
            assert rw.dispatch(Free(7), **options) is not None
            [[command]] = recorder.sent
            assert msgspec.structs.replace(command, operation_id=b"", job_id=b"") == expected("invoice.free")
            return
        with pytest.raises(DispatchValidationError) as caught:
            rw.dispatch(Free(7), **options)
        assert option.partition("_")[0] in caught.value.message
        assert recorder.sent == []


BATCHES: dict[str, Callable[[list[Job], bool], Any]] = {
    "dispatch_many": lambda jobs, on: rw.dispatch_many(jobs, continue_on_conflict=on),
    "dispatch_many_async": lambda jobs, on: asyncio.run(rw.dispatch_many_async(jobs, continue_on_conflict=on)),
    "prepare_many": lambda jobs, on: rw.dispatch_prepared(rw.prepare_many(jobs, continue_on_conflict=on)),
    "prepare_many, asynchronously sent": lambda jobs, on: asyncio.run(
        rw.dispatch_prepared_async(rw.prepare_many(jobs, continue_on_conflict=on))
    ),
    "prepare_many, exported": lambda jobs, on: sent_again(rw.prepare_many(jobs, continue_on_conflict=on)),
}
EXISTING = "0199c0de-0000-7000-8000-000000000001"
CREATED = Receipt(b"j" * 16, b"o" * 16, ReceiptDisposition.CREATED, "recorder")
REUSED = Receipt(b"j" * 16, b"p" * 16, ReceiptDisposition.REUSED, "recorder", DuplicateMatch.WINDOW, True)
FAILED = ItemFailure(1, "uniqueness_conflict", "the key is another's", EXISTING)


@pytest.mark.parametrize("entry", BATCHES)
def test_a_batch_says_which_items_failed_alone_f100(entry: str) -> None:
    with recording(rw) as recorder:
        recorder.answers = [CREATED, FAILED, REUSED]
        batch: BatchReceipt = BATCHES[entry]([Free(1), Free(2), Free(3)], True)
        assert recorder.goes_on == [True]
    assert [(item.ordinal, item.receipt, item.failure) for item in batch.items] == [
        (0, CREATED, None),
        (1, None, FAILED),
        (2, REUSED, None),
    ]
    assert batch.receipts == [CREATED, REUSED]


@pytest.mark.parametrize("entry", [*BATCHES, *ENTRIES])
def test_a_conflict_is_raised_as_it_is_and_nothing_is_sent_again_f100(entry: str) -> None:
    conflict = UniquenessConflict("uniqueness_conflict", "another's", conflicting_job_id=EXISTING, ordinal=0)
    with recording(rw) as recorder:
        recorder.error = conflict
        with pytest.raises(UniquenessConflict) as caught:
            BATCHES[entry]([Free(1)], False) if entry in BATCHES else ENTRIES[entry](Free(1), {})
        assert recorder.goes_on == [False]
    assert caught.value is conflict
    assert caught.value.disposition == "known_not_applied"


def test_a_single_dispatch_may_find_a_job() -> None:
    with recording(rw) as recorder:
        recorder.answers = [REUSED]
        for receipt in (rw.dispatch(Free(1)), asyncio.run(rw.dispatch_async(Free(1)))):
            assert (receipt.disposition, receipt.duplicate_match, receipt.policy_drift) == ("reused", "window", True)


@pytest.mark.parametrize("value", [0, "", None, 1, "yes"], ids=repr)
@pytest.mark.parametrize("entry", BATCHES)
def test_going_on_is_yes_or_no_f101(entry: str, value: Any) -> None:
    with recording(rw) as recorder:
        with pytest.raises(DispatchValidationError) as caught:
            BATCHES[entry]([Free(1)], value)
        assert (caught.value.code, recorder.sent) == ("invalid_argument", [])
    assert caught.value.message == f"continue_on_conflict is {value!r}; give True or False"
