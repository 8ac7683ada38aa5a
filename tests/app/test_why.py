"""Why a job waits, in sentences."""

import asyncio
import datetime
from collections.abc import Iterator

import pytest

from runwick import Job, JobNotFound, PerResource, Runwick
from runwick.contracts.limits import LimitKind, RateRecord, ScopeRecord
from runwick.contracts.waiting import AHEAD_MAX, WaitCode, WaitReason
from runwick.management.reasons import reason_text
from tests.app.running import succeed
from tests.management.test_service import OPS

AT_MS = 1_750_000_000_000
SHOWN = "2025-06-15 15:06:40 UTC"
SCOPE = ScopeRecord(
    id=bytes(16), kind=LimitKind.RESOURCE, key="a", capacity=2, in_use=2, waiting=True, revision=1, fence=0
)
RATE = RateRecord(
    id=bytes(16),
    kind=LimitKind.JOB_TYPE,
    key="order.pack",
    max_executions=24,
    window_ms=1_500,
    granted=90,
    in_window=24,
    waiting=True,
)


class Pack(Job):
    number: int = 0


@pytest.fixture
def rw() -> Iterator[Runwick]:
    rw = Runwick("shop", store="memory://")
    rw.job("order.pack", queue="orders", per_resource=(PerResource(lambda job: "scale", 1),))(Pack)
    yield rw
    rw.close()


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (
            WaitReason(code=WaitCode.NOT_DUE, until_ms=AT_MS),
            f"It is not due yet: its start, or its next try, is at {SHOWN}.",
        ),
        (WaitReason(code=WaitCode.NO_POOL), "No living worker serves its queue."),
        (
            WaitReason(code=WaitCode.NO_DECODER),
            "Workers serve its queue, but none of them can decode its name and version.",
        ),
        (
            WaitReason(code=WaitCode.NO_DECODER, untold=True),
            "A worker of an older release serves its queue and does not tell what it decodes; none of the others can.",
        ),
        (
            WaitReason(code=WaitCode.SCOPE_FULL, limit=SCOPE, ahead=0),
            "The limit of resource a is full, with 2 of 2 running; it is the first of its priority in the "
            "limit's line.",
        ),
        (
            WaitReason(code=WaitCode.SCOPE_FULL, limit=SCOPE),
            "The limit of resource a is full, with 2 of 2 running; the next claim will see that.",
        ),
        (
            WaitReason(code=WaitCode.RATE_FULL, limit=RATE, until_ms=AT_MS),
            "The rate limit of job-type order.pack is full, with 24 of 24 begun within 1.5 s; it has been promised a "
            f"place at {SHOWN}.",
        ),
        (
            WaitReason(code=WaitCode.RATE_FULL, limit=RATE, ahead=AHEAD_MAX),
            "The rate limit of job-type order.pack is full, with 24 of 24 begun within 1.5 s; it waits in the limit's "
            "line, behind 1,000 or more.",
        ),
        (WaitReason(code=WaitCode.NEXT, ahead=0), "Nothing holds it: it is the next of its lane."),
        (WaitReason(code=WaitCode.NEXT, ahead=7), "Nothing holds it but the jobs before it in its lane, 7."),
    ],
)
def test_each_reason_is_a_sentence(reason: WaitReason, text: str) -> None:
    assert reason_text(reason) == text


@pytest.mark.parametrize("code", list(WaitCode))
def test_there_is_a_sentence_for_every_code(code: WaitCode) -> None:
    limits: dict[WaitCode, ScopeRecord | RateRecord] = {WaitCode.SCOPE_FULL: SCOPE, WaitCode.RATE_FULL: RATE}
    text = reason_text(WaitReason(code=code, limit=limits.get(code)))
    assert text.endswith(".")
    assert "{" not in text


def test_all_reasons_of_one_moment(rw: Runwick) -> None:
    receipt = rw.dispatch(Pack(), not_before=datetime.timedelta(hours=1))
    rw.queues.pause("orders", OPS, expected_revision=0)
    why = rw.why(receipt)
    assert [reason.code for reason in why.reasons] == [WaitCode.NOT_DUE, WaitCode.QUEUE_PAUSED, WaitCode.NO_POOL]
    assert why.reasons[0].until == rw.get(receipt).due_at
    assert why.text == " ".join(reason.text for reason in why.reasons)
    assert asyncio.run(rw.why_async(receipt)).reasons == why.reasons


def test_a_full_limit_is_named(rw: Runwick) -> None:
    rw.dispatch(Pack())
    scope = rw.capacity.scopes("resource")[0]
    assert (scope.key, scope.in_use) == ("scale", 0)
    assert all(reason.limit is None for reason in rw.why(rw.dispatch(Pack())).reasons)


def test_what_has_ended_does_not_wait(rw: Runwick) -> None:
    receipt = rw.dispatch(Pack())
    succeed(rw)
    why = rw.why(receipt)
    assert (why.reasons, why.text) == ((), "It does not wait: it has succeeded.")


def test_what_is_not_there_is_not_found(rw: Runwick) -> None:
    with pytest.raises(JobNotFound):
        rw.why("0199c0de-0000-7000-8000-00000000000a")
    with pytest.raises(JobNotFound):
        asyncio.run(rw.why_async("0199c0de-0000-7000-8000-00000000000a"))
