"""Why a job waits: every reason there is, and all that hold at once."""

from typing import Any

import pytest

from runwick.contracts.activity import Report
from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import RateRecord, ScopeRecord
from runwick.contracts.states import JobState
from runwick.contracts.waiting import WaitCode, WaitReason
from tests.conformance.ground import (
    APPLICATION,
    BUILD,
    HIGH,
    KINDS,
    LARGE,
    LEASE_MS,
    LOW,
    MEDIUM,
    RECOVERY_MS,
    SEND,
    Bench,
    resource,
    window,
)


def work(bench: Bench, **changes: Any) -> None:
    """A worker that lives and tells of itself."""
    changes = {"kinds": sorted(KINDS), **changes}
    presence = bench.presence(**changes)
    bench.run(bench.store.renew(Report(presence=presence), [], LEASE_MS, RECOVERY_MS))


def test_the_next_job_of_a_living_worker_waits_for_nothing_but_those_in_front(bench: Bench) -> None:
    work(bench)
    first, second = bench.dispatch(2)
    bench.dispatch(lane=HIGH)
    for job_id, ahead in ((first, 0), (second, 1)):
        report = bench.why(job_id)
        assert (report.job_id, report.state, report.at_ms) == (job_id, JobState.PENDING, bench.clock.now_ms())
        assert list(report.reasons) == [WaitReason(code=WaitCode.NEXT, ahead=ahead)]


def test_no_more_than_a_thousand_in_front_are_counted(bench: Bench) -> None:
    work(bench)
    for _ in range(10):
        bench.dispatch(100)
    bench.clock.advance_ms(1)
    last, behind = bench.dispatch(2)
    assert [bench.why(job_id).reasons[0].ahead for job_id in (last, behind)] == [1_000, 1_000]


def test_what_runs_or_has_ended_waits_for_nothing(bench: Bench) -> None:
    running, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    for attempt, state in ((running, JobState.RUNNING), (reserved, JobState.RESERVED)):
        report = bench.why(attempt.job_id)
        assert (report.state, list(report.reasons)) == (state, [])
    bench.succeed(running)
    assert (bench.why(running.job_id).state, bench.reasons(running.job_id)) == (JobState.SUCCEEDED, [])


def test_there_is_no_such_job(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    assert bench.run(bench.store.why(APPLICATION, bench.ids.ordered())) is None
    assert bench.run(bench.store.why("office", job_id)) is None


def test_not_due(bench: Bench) -> None:
    work(bench)
    (job_id,) = bench.dispatch(delay_ms=5_000)
    due_ms = bench.clock.now_ms() + 5_000
    assert list(bench.why(job_id).reasons) == [WaitReason(code=WaitCode.NOT_DUE, until_ms=due_ms)]
    bench.clock.advance_ms(5_000)
    assert bench.reasons(job_id) == [WaitCode.NEXT]


def test_between_two_tries(bench: Bench) -> None:
    work(bench)
    attempt = bench.claimed()
    bench.retry(attempt, delay_ms=700)
    report = bench.why(attempt.job_id)
    assert (report.state, bench.reasons(attempt.job_id)) == (JobState.RETRYING, [WaitCode.NOT_DUE])


def test_expired(bench: Bench) -> None:
    work(bench)
    (job_id,) = bench.dispatch(expires_in_ms=10)
    assert bench.reasons(job_id) == [WaitCode.NEXT]
    bench.clock.advance_ms(10)
    assert bench.reasons(job_id) == [WaitCode.EXPIRED]


@pytest.mark.parametrize("mode", [Admission.DRAIN, Admission.MAINTENANCE])
def test_admission_closed(bench: Bench, mode: Admission) -> None:
    work(bench)
    (job_id,) = bench.dispatch()
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    bench.administration.set_admission(mode, APPLICATION)
    assert bench.reasons(job_id) == [WaitCode.ADMISSION_CLOSED]


def test_queue_paused(bench: Bench) -> None:
    work(bench)
    (job_id,) = bench.dispatch()
    bench.pause()
    assert bench.reasons(job_id) == [WaitCode.QUEUE_PAUSED]
    bench.resume()
    assert bench.reasons(job_id) == [WaitCode.NEXT]


def test_no_pool(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    assert list(bench.why(job_id).reasons) == [WaitReason(code=WaitCode.NO_POOL)]
    work(bench, queues=["mails"])
    assert bench.reasons(job_id) == [WaitCode.NO_POOL]
    bench.worker = bench.ids.ordered()
    work(bench, application="office")
    assert bench.reasons(job_id) == [WaitCode.NO_POOL]
    bench.worker = bench.ids.ordered()
    work(bench, queues=["mails", "reports"])
    assert bench.reasons(job_id) == [WaitCode.NEXT]
    bench.run(bench.store.depart(bench.presence()))
    assert bench.reasons(job_id) == [WaitCode.NO_POOL]


def test_a_worker_that_was_not_seen_for_long_serves_nobody(bench: Bench) -> None:
    work(bench)
    (job_id,) = bench.dispatch()
    bench.clock.advance_ms(WORKER_ALIVE_MS - 1)
    assert bench.reasons(job_id) == [WaitCode.NEXT]
    bench.clock.advance_ms(1)
    assert bench.reasons(job_id) == [WaitCode.NO_POOL]


def test_no_decoder(bench: Bench) -> None:
    (job_id,) = bench.dispatch(kind=Kind("reports.build", 2))
    work(bench)
    assert list(bench.why(job_id).reasons) == [WaitReason(code=WaitCode.NO_DECODER)]
    # What it told stays told while it tells nothing new.
    bench.renew()
    assert list(bench.why(job_id).reasons) == [WaitReason(code=WaitCode.NO_DECODER)]
    bench.worker = bench.ids.ordered()
    bench.renew()
    assert list(bench.why(job_id).reasons) == [WaitReason(code=WaitCode.NO_DECODER, untold=True)]
    work(bench, kinds=[Kind("reports.build", 2)])
    assert bench.reasons(job_id) == [WaitCode.NEXT]


def test_a_decoder_in_another_queue_does_not_help(bench: Bench) -> None:
    work(bench, kinds=[SEND])
    (job_id,) = bench.dispatch(kind=BUILD)
    bench.worker = bench.ids.ordered()
    work(bench, queues=["mails"], kinds=[BUILD])
    assert bench.reasons(job_id) == [WaitCode.NO_DECODER]


def test_workers_are_shown_with_what_they_decode(bench: Bench) -> None:
    bench.renew()
    (record,) = bench.run(bench.store.workers(APPLICATION))
    assert record.presence.kinds is None
    work(bench)
    bench.renew()
    (record,) = bench.run(bench.store.workers(APPLICATION))
    assert record.presence.kinds == sorted(KINDS)


def test_scope_full(bench: Bench) -> None:
    work(bench)
    bench.claimed(scopes=(resource("printer"),))
    first, second = bench.dispatch(2, scopes=(resource("printer"),))
    unseen = bench.why(first).reasons
    assert [(reason.code, reason.ahead) for reason in unseen] == [(WaitCode.SCOPE_FULL, None)]
    bench.dispatch(lane=HIGH, scopes=(resource("printer"),))
    bench.claim()
    for job_id, ahead in ((first, 0), (second, 1)):
        (reason,) = bench.why(job_id).reasons
        assert (reason.code, reason.ahead, reason.until_ms) == (WaitCode.SCOPE_FULL, ahead, None)
        assert reason.limit == bench.scope("printer")
        assert isinstance(reason.limit, ScopeRecord)
        assert reason.limit.waiting


def test_rate_full(bench: Bench) -> None:
    work(bench)
    bench.succeed(bench.claimed(rates=(window("provider", 1),)))
    promised, parked = bench.dispatch(2, rates=(window("provider", 1),))
    (reason,) = bench.why(promised).reasons
    assert (reason.code, reason.until_ms, reason.ahead) == (WaitCode.RATE_FULL, None, None)
    bench.claim()
    (reason,) = bench.why(promised).reasons
    due_ms = bench.clock.now_ms() + 1_000
    assert (reason.code, reason.until_ms, reason.ahead) == (WaitCode.RATE_FULL, due_ms, None)
    assert reason.limit == bench.rate("provider")
    assert isinstance(reason.limit, RateRecord)
    assert reason.limit.in_window == 1
    (reason,) = bench.why(parked).reasons
    assert (reason.code, reason.until_ms, reason.ahead) == (WaitCode.RATE_FULL, None, 0)
    bench.clock.advance_ms(1_000)
    assert bench.reasons(promised) == [WaitCode.NEXT]


def test_several_at_once(bench: Bench) -> None:
    bench.claimed(scopes=(resource("printer"),), rates=(window("provider", 1),))
    (job_id,) = bench.dispatch(
        lane=LOW, scopes=(resource("printer"),), rates=(window("provider", 1),), expires_in_ms=5, delay_ms=4
    )
    bench.clock.advance_ms(4)
    bench.claim()
    bench.clock.advance_ms(1)
    bench.pause()
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    assert bench.reasons(job_id) == [
        WaitCode.EXPIRED,
        WaitCode.ADMISSION_CLOSED,
        WaitCode.QUEUE_PAUSED,
        WaitCode.NO_POOL,
        WaitCode.SCOPE_FULL,
        WaitCode.RATE_FULL,
    ]


def test_those_in_a_line_are_not_in_front_of_those_in_the_lane(bench: Bench) -> None:
    work(bench)
    bench.claimed(scopes=(resource("printer"),))
    bench.dispatch(kind=SEND, scopes=(resource("printer"),))
    (job_id,) = bench.dispatch()
    bench.dispatch(lane=Lane("mails", MEDIUM.priority))
    assert bench.why(job_id).reasons[0].ahead == 1
    assert bench.claim(kinds=frozenset({SEND}), free=1).parked == 1
    assert bench.why(job_id).reasons[0].ahead == 0
