"""Every way in which a dispatch can end, and what is in the store then."""

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from runwick import (
    AdmissionClosed,
    BatchReceipt,
    CommandExpired,
    DispatchOutcomeUnknown,
    OutcomeUnknown,
    Prepared,
    PreparedBatch,
    Receipt,
    Runwick,
    RunwickError,
    StoreHistoryBroken,
    StoreUnavailable,
)
from runwick.contracts.dispatching import ANSWERS_KEPT_MS, COMMAND_LIFETIME_MAX_MS
from runwick.contracts.errors import Disposition
from tests.ambient import FakeClock
from tests.dispatch.jobs import Report, application, job_ids, stored
from tests.dispatch.unreliable import Call, failing


def unavailable() -> Exception:
    return StoreUnavailable("store_unavailable", "no answer, nothing was sent")


def lost() -> Exception:
    return OutcomeUnknown("outcome_unknown", "the answer was lost")


REFUSALS: list[Callable[[], Exception]] = [
    unavailable,
    lambda: AdmissionClosed("admission_closed", "drained"),
    lambda: StoreHistoryBroken("store_identity_mismatch", "another store"),
]
DOUBTS: list[Callable[[], Exception]] = [
    lost,
    lambda: OSError("a pipe broke"),
    lambda: sqlite3.OperationalError("a fault that nobody foresaw"),
]
CALLS = [
    Call(),
    *(Call(before=refusal) for refusal in REFUSALS),
    *(Call(before=doubt) for doubt in DOUBTS),
    *(Call(after=doubt) for doubt in DOUBTS),
]

ONE = [Report("May")]
TWO = [Report("May"), Report("June")]

Way = Callable[[Runwick, list[Report]], list[str]]


def blocking(rw: Runwick, jobs: list[Report]) -> list[str]:
    if len(jobs) == 1:
        return ids_of(rw.dispatch(*jobs))
    return ids_of(rw.dispatch_many(jobs))


def awaiting(rw: Runwick, jobs: list[Report]) -> list[str]:
    if len(jobs) == 1:
        return ids_of(asyncio.run(rw.dispatch_async(*jobs)))
    return ids_of(asyncio.run(rw.dispatch_many_async(jobs)))


def prepared_first(rw: Runwick, jobs: list[Report]) -> list[str]:
    request = rw.import_prepared(prepared(rw, jobs).export())
    answered = ids_of(rw.dispatch_prepared(request))
    assert answered == job_ids(request)
    return answered


def prepared_first_awaiting(rw: Runwick, jobs: list[Report]) -> list[str]:
    async def dispatch() -> list[str]:
        return ids_of(await rw.dispatch_prepared_async(prepared(rw, jobs)))

    return asyncio.run(dispatch())


def prepared(rw: Runwick, jobs: list[Report]) -> Prepared | PreparedBatch:
    return rw.prepare(*jobs) if len(jobs) == 1 else rw.prepare_many(jobs)


WAYS = [blocking, awaiting, prepared_first, prepared_first_awaiting]


def ids_of(receipt: Receipt | BatchReceipt) -> list[str]:
    return [each.job_id for each in ([receipt] if isinstance(receipt, Receipt) else receipt.receipts)]


@pytest.fixture
def memory() -> Iterator[Runwick]:
    app = application("memory://")
    yield app
    app.close()


@pytest.mark.parametrize("jobs", [ONE, TWO], ids=["one", "batch"])
@pytest.mark.parametrize("way", WAYS)
def test_every_failure_is_known_or_can_be_settled(way: Way, jobs: list[Report]) -> None:
    for first, second in itertools.product(CALLS, CALLS):
        rw = application("memory://")
        with failing(rw, first, second):
            try:
                answered: list[str] | RunwickError = way(rw, jobs)
            except RunwickError as error:
                answered = error
        if isinstance(answered, list):
            assert [rw.get(job_id).job_id for job_id in answered] == answered
            assert stored(rw) == len(jobs)
        elif answered.disposition is Disposition.KNOWN_NOT_APPLIED:
            assert first.before in REFUSALS
            assert stored(rw) == 0
        else:
            assert isinstance(answered, DispatchOutcomeUnknown)
            assert_it_can_be_settled(rw, answered, len(jobs))


def assert_it_can_be_settled(rw: Runwick, unknown: DispatchOutcomeUnknown, jobs: int) -> None:
    assert unknown.code == "outcome_unknown"
    assert stored(rw) in (0, jobs)
    request = unknown.prepared
    assert request is not None
    for _ in range(2):  # however often
        assert ids_of(rw.dispatch_prepared(request)) == job_ids(request)
        assert stored(rw) == jobs


@pytest.mark.parametrize("way", [blocking, awaiting])
def test_a_lost_answer_is_asked_for_once_more_at_once(memory: Runwick, way: Way) -> None:
    for call in (Call(before=lost), Call(after=lost)):
        before = stored(memory)
        with failing(memory, call) as store:
            [job_id] = way(memory, ONE)
        assert store.asked == ["dispatch", "dispatch"]
        assert memory.get(job_id).job_id == job_id
        assert stored(memory) == before + 1


def test_an_unknown_outcome_says_which_and_what_to_do(memory: Runwick) -> None:
    with failing(memory, Call(after=lost), Call(before=unavailable)), pytest.raises(DispatchOutcomeUnknown) as caught:
        memory.dispatch(Report("May"))
    unknown = caught.value
    assert isinstance(unknown.prepared, Prepared)
    assert unknown.operation_id == unknown.prepared.operation_id
    assert unknown.message == (
        f"operation {unknown.operation_id} may or may not have been applied (outcome_unknown: the answer was lost; "
        "sent again: store_unavailable: no answer, nothing was sent). Sending the prepared request again with "
        "rw.dispatch_prepared is safe, rw.resolve asks; a new dispatch could make a second job"
    )
    assert isinstance(unknown.__cause__, OutcomeUnknown)
    resolution = memory.resolve(unknown.operation_id)
    assert resolution.status == "confirmed"
    assert resolution.receipt == memory.dispatch_prepared(unknown.prepared)


def test_the_text_of_a_foreign_error_is_not_told(memory: Runwick) -> None:
    secret = Call(before=lambda: OSError("postgresql://root:secret@db"))
    with (
        failing(memory, secret, secret),
        pytest.raises(DispatchOutcomeUnknown, match="OSError; sent again: OS") as caught,
    ):
        memory.dispatch(Report("May"))
    assert "secret" not in str(caught.value)


def test_an_unknown_batch_names_its_first_operation(memory: Runwick) -> None:
    call = Call(before=lost)
    with failing(memory, call, call), pytest.raises(DispatchOutcomeUnknown, match="and 1 more of its batch") as caught:
        memory.dispatch_many(TWO)
    assert isinstance(caught.value.prepared, PreparedBatch)
    assert caught.value.operation_id is None


class Interrupted(BaseException):
    """Raised in the middle of a call, as by Ctrl-C."""


def test_a_call_that_is_broken_off_tells_what_it_left_behind(memory: Runwick) -> None:
    for calls in ([Call(after=Interrupted)], [Call(before=lost), Call(after=Interrupted)]):
        before = stored(memory)
        with failing(memory, *calls), pytest.raises(Interrupted) as caught:
            memory.dispatch(Report("May"))
        unknown = caught.value.__cause__
        assert isinstance(unknown, DispatchOutcomeUnknown)
        assert unknown.code == "cancelled_after_send"
        assert isinstance(unknown.prepared, Prepared)
        memory.dispatch_prepared(unknown.prepared)
        assert stored(memory) == before + 1


@pytest.mark.parametrize("behind_ms", [COMMAND_LIFETIME_MAX_MS + 1, COMMAND_LIFETIME_MAX_MS + ANSWERS_KEPT_MS + 1])
@pytest.mark.parametrize("way", [blocking, awaiting])
@pytest.mark.parametrize("jobs", [ONE, TWO], ids=["one", "batch"])
def test_a_wrong_clock_is_corrected_by_the_first_contact(
    memory: Runwick, behind_ms: int, way: Way, jobs: list[Report]
) -> None:
    with failing(memory, behind_ms=behind_ms) as store:
        job_ids = way(memory, jobs)
    assert store.asked == ["dispatch", "dispatch"]
    assert stored(memory) == len(job_ids) == len(jobs)


def test_a_clock_that_stays_wrong_is_told() -> None:
    clock = FakeClock()
    rw = application("memory://", clock=clock)
    with failing(rw) as store:
        store.now_ms = lambda: clock.now_ms() - COMMAND_LIFETIME_MAX_MS - 1  # type: ignore[method-assign]
        with pytest.raises(CommandExpired, match="1 ms after its deadline"):
            rw.dispatch(Report("May"))
    assert store.asked == ["dispatch", "dispatch"]
    assert stored(rw) == 0


def test_a_prepared_dispatch_is_never_prepared_anew() -> None:
    clock = FakeClock()
    rw = application("memory://", clock=clock)
    requests: list[Prepared | PreparedBatch] = [rw.prepare(Report("May")), rw.prepare_many(TWO)]
    clock.advance_ms(COMMAND_LIFETIME_MAX_MS + 1)
    for request in requests:
        with pytest.raises(CommandExpired) as expired:
            rw.dispatch_prepared(request)
        assert expired.value.code == "command_expired"
        assert expired.value.disposition is Disposition.KNOWN_NOT_APPLIED
    clock.advance_ms(ANSWERS_KEPT_MS)
    for request in requests:
        with pytest.raises(DispatchOutcomeUnknown, match="expired_unknown") as unknown:
            rw.dispatch_prepared(request)
        assert unknown.value.code == "expired_unknown"
        assert unknown.value.prepared is request
    assert stored(rw) == 0
