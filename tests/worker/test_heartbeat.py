import asyncio
import datetime
from collections.abc import Generator
from typing import Any

import pytest

from runwick.config.options import WorkerOptions
from runwick.contracts.attempts import ClaimPlan, LaneTurn
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown
from runwick.contracts.limits import Tended
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.stores import Act
from runwick.telemetry import events
from runwick.worker.timings import RECOVERY_LIMIT, TEND_LIMIT
from tests.worker.ground import APPLICATION, IMPATIENT, KIND, LANE, Ground
from tests.worker.store import EVERY, never


def test_a_renewal_keeps_the_lease_and_re_arms_the_deadline() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    for _ in range(10):
        ground.clock.advance_ms(15_000)
        asyncio.run(ground.heartbeat.run_once())
        ground.recovery.due()
        asyncio.run(ground.recovery.run_once())
    assert ground.said == []
    assert ground.job(receipt).state == "running"
    assert ground.backend.stopped_runs == []


def test_while_something_is_held_it_calls_at_least_every_900_ms_and_renews_no_sooner() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    pauses = [asyncio.run(ground.heartbeat.run_once())]
    for _ in range(16):
        ground.clock.advance_ms(900)
        pauses.append(asyncio.run(ground.heartbeat.run_once()))
    assert pauses[:16] == pytest.approx([0.9] * 16)
    assert ground.store.renewals == [1, *[0] * 16], "the next renewal comes after 15 s"
    ground.backend.end(ground.backend.held[0])
    asyncio.run(ground.finalizer.run_once())
    ground.clock.advance_ms(900)
    assert asyncio.run(ground.heartbeat.run_once()) == pytest.approx(5.0), "nothing is held: the next scan"


def test_a_safety_poll_that_is_shorter_is_the_pause_between_its_calls() -> None:
    options = WorkerOptions(safety_poll_interval=datetime.timedelta(milliseconds=200))
    ground = Ground(free=1, options=options)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    assert asyncio.run(ground.heartbeat.run_once()) == pytest.approx(0.2)


def test_a_claim_after_an_idle_time_has_it_called_soon_but_not_at_once() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)

    async def scenario() -> None:
        await ground.heartbeat.run_once()
        ground.clock.advance_ms(3_000)
        await ground.claimer.run_once()
        assert await ground.heartbeat.wake.sleep(None), "it sleeps for longer otherwise"
        assert await ground.heartbeat.run_once() == pytest.approx(0.9)

    asyncio.run(scenario())
    assert ground.store.calls == ["renew", "claim"]


def test_a_hint_at_requests_hastens_the_next_call_and_no_stream_of_hints_makes_a_stream_of_calls() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    asyncio.run(ground.heartbeat.run_once())
    for _ in range(5):
        ground.heartbeat.requested()
        assert asyncio.run(ground.heartbeat.run_once()) == pytest.approx(0.25)
    ground.clock.advance_ms(251)
    asyncio.run(ground.heartbeat.run_once())
    assert ground.store.calls == ["claim", "renew", "renew"]


def test_backends_hear_of_the_deadlines_of_what_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground(free=1)
    monkeypatch.setattr("runwick.worker.pools.time.monotonic", lambda: ground.clock.steady_s() + 7_000)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    begun_s = ground.clock.steady_s()
    assert ground.backend.deadlines_s[attempt.attempt_id] == pytest.approx(7_000 + begun_s + 50)
    ground.clock.advance_ms(15_000)
    ground.store.meanwhile["renew"] = lambda: ground.clock.advance_ms(2_000)
    asyncio.run(ground.heartbeat.run_once())
    assert ground.backend.deadlines_s[attempt.attempt_id] == pytest.approx(7_000 + begun_s + 65), (
        "from the start of the call"
    )


def test_a_lease_that_was_not_renewed_is_lost_before_the_store_gives_it_away() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    ground.clock.advance_ms(49_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == []
    ground.clock.advance_ms(1_000)
    assert asyncio.run(ground.watchdog.run_once()) == 1.0
    (attempt,) = ground.backend.held
    assert ground.backend.asked == [(attempt, CancellationCause.LEASE_LOST, 2.5)], "a quarter of the margin"


def test_a_lease_that_the_store_gave_away_is_stopped_here() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.heartbeat.run_once())
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.clock.advance_ms(61_000)
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.heartbeat.run_once())
    assert ground.backend.asked == [(attempt, CancellationCause.LEASE_LOST, 0.0)]
    assert [type(event) for event in ground.said] == [events.Recovered, events.LeaseLost]


def test_of_several_workers_one_is_let_through_to_recover() -> None:
    ground = Ground()
    due: list[str] = []
    first, second = ground.heartbeat, Ground().heartbeat
    second._store = ground.store
    first._recovery_due = lambda: due.append("first")
    second._recovery_due = lambda: due.append("second")
    asyncio.run(first.run_once())
    asyncio.run(second.run_once())
    assert due == ["first"]


def test_a_job_that_was_claimed_again_while_a_renewal_was_under_way_keeps_its_new_lease() -> None:
    ground = Ground(free=1)
    ground.dispatch(1, max_executions=5)
    asyncio.run(ground.claimer.run_once())
    (first,) = ground.backend.held

    async def scenario() -> None:
        reached, answered = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            reached.set()
            await answered.wait()

        # The renewal reaches the store after the settlement, so that it finds the lease gone.
        ground.store.reaches_late["renew"] = slow
        renewal = asyncio.create_task(ground.heartbeat.run_once())
        await reached.wait()
        ground.backend.end(first, Outcome(OutcomeKind.INTERRUPTED, "worker_stopping"))
        await ground.finalizer.run_once()
        await ground.claimer.run_once()
        answered.set()
        await renewal

    asyncio.run(scenario())
    (second,) = ground.backend.held
    assert (second.job, ground.backend.stopped_runs, ground.said) == (first.job, [], [])


def test_it_scans_between_renewals_without_renewing() -> None:
    ground = Ground(free=1)
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(5_000)
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(1_000)
    asyncio.run(ground.heartbeat.run_once())
    assert ground.store.calls == ["renew", "renew"]


def test_a_lease_is_lost_in_time_while_a_renewal_hangs() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)

    async def hang(asked: asyncio.Event) -> None:
        asked.set()
        await never()

    async def scenario() -> None:
        await ground.claimer.run_once()
        asked = asyncio.Event()

        ground.store.holds_up["renew"] = lambda: hang(asked)
        renewal = asyncio.create_task(ground.heartbeat.run_once())
        await asked.wait()
        ground.clock.advance_ms(50_000)
        await ground.watchdog.run_once()
        assert not renewal.done()
        assert ground.backend.stopped_runs == ground.backend.held
        renewal.cancel()

    asyncio.run(scenario())


def test_a_renewal_without_an_answer_is_given_up_and_repeated_soon() -> None:
    ground = Ground(free=1, options=IMPATIENT)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    ground.store.holds_up["renew"] = never
    pauses = []
    for _ in range(5):
        with pytest.raises(OutcomeUnknown):
            asyncio.run(ground.heartbeat.run_once())
        pauses.append(ground.heartbeat.pause_after_failure_s)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    ground.store.holds_up.clear()
    asyncio.run(ground.heartbeat.run_once())
    assert [type(event) for event in ground.said] == [events.StoreCallFailed, events.StoreCallAnswered]
    ground.clock.advance_ms(49_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == []


def test_a_locked_lease_keeps_its_deadline_and_is_renewed_again_soon_without_the_others() -> None:
    ground = Ground(free=2)
    ground.dispatch(2)
    asyncio.run(ground.claimer.run_once())
    locked, other = ground.backend.held
    ground.store.locked.add(locked.job)
    pauses = [asyncio.run(ground.heartbeat.run_once())]
    for _ in range(4):
        ground.clock.advance_ms(1_000)
        pauses.append(asyncio.run(ground.heartbeat.run_once()))
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 0.9])
    ground.store.locked.clear()
    ground.clock.advance_ms(1_000)
    pause_s = asyncio.run(ground.heartbeat.run_once())
    assert pause_s == pytest.approx(0.9), "then it beats as ever while something is held"
    ground.clock.advance_ms(46_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == [other], "the other one was not renewed again"


def test_a_locked_lease_is_lost_when_nothing_unlocks_it_in_time() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.store.locked.add(attempt.job)
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(50_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == [attempt]


def test_a_renewal_that_is_confirmed_after_the_deadline_saves_nothing() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.clock.advance_ms(49_000)
    ground.store.meanwhile["renew"] = lambda: ground.clock.advance_ms(2_000)
    asyncio.run(ground.heartbeat.run_once())
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == [attempt]
    ground.backend.end(attempt)
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "renew"]
    assert ground.job(receipt).state == "running"


def test_renewals_refused_in_maintenance_end_in_lost_leases_and_nothing_is_written() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.store.fails[EVERY] = AdmissionClosed("admission_closed", "under maintenance")
    for _ in range(5):
        with pytest.raises(AdmissionClosed):
            asyncio.run(ground.heartbeat.run_once())
        ground.clock.advance_ms(10_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backend.stopped_runs == [attempt]
    ground.backend.end(attempt)
    asyncio.run(ground.finalizer.run_once())
    assert "settle" not in ground.store.calls
    assert [type(event) for event in ground.said] == [events.StoreCallFailed, events.LeaseLost]


def test_a_recovery_pass_that_fails_stays_due() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    ground.clock.advance_ms(61_000)
    asyncio.run(ground.heartbeat.run_once())
    ground.store.faults["recover"] = [OutcomeUnknown("outcome_unknown", "the answer was lost")]
    with pytest.raises(OutcomeUnknown):
        asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.recovery.run_once())
    assert ground.job(receipt).state == "retrying"


def test_a_pass_closes_what_expired_while_it_waited_when_no_lease_is_left_to_close() -> None:
    ground = Ground()
    expiring = ground.dispatch(3, expires_at_ms=ground.clock.now_ms() + 1_000)
    (staying,) = ground.dispatch(1)
    ground.clock.advance_ms(1_000)
    ground.recovery.due()
    assert asyncio.run(ground.recovery.run_once()) is None
    assert ground.store.calls == ["recover", "expire", "tend"]
    assert ground.states([*expiring, staying]) == ["failed"] * 3 + ["pending"]
    assert ground.said == [events.Expired(3)]


def test_a_full_pass_is_followed_at_once_by_the_next() -> None:
    ground = Ground()
    receipts = ground.dispatch(RECOVERY_LIMIT + 1, expires_at_ms=ground.clock.now_ms() + 1_000)
    ground.clock.advance_ms(1_000)
    ground.recovery.due()
    assert asyncio.run(ground.recovery.run_once()) == 0.0
    assert asyncio.run(ground.recovery.run_once()) is None
    assert ground.states(receipts) == ["failed"] * len(receipts)


def test_what_a_dead_predecessor_left_is_closed_at_once_and_nothing_else() -> None:
    ground = Ground(free=200)
    receipts = ground.dispatch(RECOVERY_LIMIT + 2, max_executions=5)
    predecessor = ground.ids.ordered()
    for count in (RECOVERY_LIMIT, 1):
        plan = ClaimPlan(
            application=APPLICATION,
            worker=predecessor,
            claim_token=ground.ids.secret(),
            turns=[LaneTurn(LANE, count)],
            kinds=frozenset({KIND}),
            free=count,
            ahead=0,
            payload_bytes=1 << 24,
            lease_ms=60_000,
        )
        ground.store.run(ground.store.claim(plan))
    asyncio.run(ground.claimer.run_once())
    assert asyncio.run(ground.recovery.inherit(predecessor)) == RECOVERY_LIMIT + 1
    assert ground.store.calls == ["claim", "recover", "recover"]
    states = ground.states(receipts)
    assert (states.count("retrying"), states.count("running")) == (RECOVERY_LIMIT + 1, 1)
    assert {attempt.code for receipt in receipts for attempt in ground.job(receipt).attempts} == {"worker_died"}
    assert ground.said == [events.PredecessorRecovered(predecessor, RECOVERY_LIMIT + 1)]
    assert asyncio.run(ground.recovery.inherit(predecessor)) == 0


def test_a_pass_looks_through_all_limits_with_a_line_by_and_by() -> None:
    ground = Ground()
    answers = [Tended(3, 0, b"a" * 16), Tended(0, 1, b"b" * 16), Tended(0, 0, None)]
    asked: list[tuple[bytes | None, int]] = []

    def tend(application: str, after: bytes | None, limit: int) -> Act[Tended]:
        asked.append((after, limit))

        def steps() -> Generator[Any, Any, Tended]:
            return answers[len(asked) - 1]
            yield

        return Act("tend", steps)

    ground.store.tend = tend  # type: ignore[method-assign]
    ground.recovery.due()
    sleeps = [asyncio.run(ground.recovery.run_once()) for _ in range(4)]
    assert sleeps == [0.0, 0.0, None, None]
    assert asked == [(None, TEND_LIMIT), (b"a" * 16, TEND_LIMIT), (b"b" * 16, TEND_LIMIT)]
    assert ground.said == [events.LinesMoved(3), events.LimitsMended(1)]


def test_a_look_at_the_limits_that_fails_goes_on_where_it_was() -> None:
    ground = Ground()
    ground.store.faults["tend"] = [OutcomeUnknown("outcome_unknown", "the answer was lost")]
    ground.recovery.due()
    with pytest.raises(OutcomeUnknown):
        asyncio.run(ground.recovery.run_once())
    assert asyncio.run(ground.recovery.run_once()) is None
    assert ground.store.calls.count("tend") == 2
