import asyncio
import contextlib
from collections import Counter

import pytest

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES, Lane
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown, RunwickError, StoreUnavailable
from runwick.contracts.limits import PASSED_MAX, LimitKind, RateNeed, ScopeNeed
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import Priority
from runwick.telemetry import events
from tests.worker.ground import IMPATIENT, KIND, LANE, OTHER_LANE, Ground
from tests.worker.store import never


def test_it_claims_as_much_as_there_is_room_for() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(5)
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == 2
    assert sorted(ground.states(receipts)) == ["pending"] * 3 + ["running"] * 2


def test_it_claims_ahead_only_what_may_run_ahead() -> None:
    ground = Ground(free=1, ahead=10)
    ground.dispatch(3, max_executions=5)
    ground.dispatch(1, max_executions=1)
    ground.dispatch(3, max_executions=5)
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == 3, "the job with one execution waits for a free executor, and all behind it wait"


def test_a_job_that_may_not_run_ahead_is_not_asked_for_again_until_an_executor_is_free() -> None:
    ground = Ground(free=1, ahead=10)
    ground.dispatch(1, max_executions=5)
    (lone,) = ground.dispatch(1, max_executions=1)

    async def scenario() -> None:
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        assert ground.store.calls == ["claim"]
        ground.backend.end(ground.backend.held[0])
        await ground.claimer.run_once()

    asyncio.run(scenario())
    assert [attempt.job_id for attempt in ground.backend.held] == [lone.job]


def test_without_room_it_sleeps_until_woken_and_asks_nobody() -> None:
    ground = Ground(free=0)
    ground.dispatch(1)
    assert asyncio.run(ground.claimer.run_once()) is None
    assert ground.store.calls == []


def test_room_that_makes_no_claim_worthwhile_wakes_nobody() -> None:
    ground = Ground(free=0)

    async def scenario() -> list[bool]:
        woken = []
        await ground.claimer.wake.sleep(0)
        for slots in (0, 1):
            await ground.claimer.run_once()
            ground.backend.slots = slots
            ground.claimer.look_for_work()
            woken.append(await ground.claimer.wake.sleep(0))
        return woken

    assert asyncio.run(scenario()) == [False, True]


def test_an_empty_claim_is_repeated_once_after_the_hint_is_armed() -> None:
    ground = Ground()

    async def scenario() -> tuple[float | None, float | None]:
        return await ground.claimer.run_once(), await ground.claimer.run_once()

    first, second = asyncio.run(scenario())
    assert first == 0.0
    assert second is not None
    assert 1.0 <= second <= 1.1, "then it sleeps for the safety poll and a little more"


def test_a_lone_job_costs_one_claim_that_finds_it_and_one_that_finds_nothing() -> None:
    ground = Ground(free=2)

    async def scenario() -> list[float | None]:
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        ground.dispatch(1)
        return [await ground.claimer.run_once(), await ground.claimer.run_once()]

    found, empty = asyncio.run(scenario())
    assert (found, len(ground.backend.held)) == (0.0, 1)
    assert empty is not None
    assert empty >= 1.0, "the hint is armed still, so nothing can have come unheard"
    assert ground.store.calls.count("claim") == 4


def test_it_sleeps_until_the_next_due_row_but_never_less_than_50_ms() -> None:
    ground = Ground()
    receipts = ground.dispatch(1)
    ground.store.run(ground.store.job("reports", receipts[0].job))

    async def scenario() -> float | None:
        await ground.claimer.run_once()
        ground.backend.slots = 3
        await ground.claimer.run_once()
        return await ground.claimer.run_once()

    assert asyncio.run(scenario()) == pytest.approx(1.05)


def test_a_large_payload_is_begun_when_it_is_handed_over() -> None:
    ground = Ground()
    payload = b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}'
    (receipt,) = ground.dispatch(1, payload=payload)
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "begin"]
    assert ground.backend.held[0].payload == payload
    assert (ground.job(receipt).state, ground.job(receipt).executions) == ("running", 1)


LOST = OutcomeUnknown("outcome_unknown", "the answer was lost")
AWAY = StoreUnavailable("store_unavailable", "away")
DRAINED = AdmissionClosed("admission_closed", "the application is being drained")


def failed_round(ground: Ground) -> float:
    """Let a round fail; answers the pause that follows it."""
    with pytest.raises(RunwickError):
        asyncio.run(ground.claimer.run_once())
    return ground.claimer.pause_after_failure_s


def test_a_lost_answer_is_asked_for_again_with_the_same_token() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(2)
    ground.store.faults_after["claim"] = [LOST]
    assert failed_round(ground) == pytest.approx(0.1)
    assert ground.claimer.is_claiming, "nobody holds yet what it took"
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "claim"]
    assert ground.states(receipts) == ["running", "running"]
    assert [attempt.number for attempt in ground.backend.held] == [1, 1]


def test_an_answer_that_never_comes_is_a_lost_one() -> None:
    ground = Ground(free=1, options=IMPATIENT)
    (receipt,) = ground.dispatch(1)
    ground.store.holds_up["claim"] = never
    failed_round(ground)
    del ground.store.holds_up["claim"]
    asyncio.run(ground.claimer.run_once())
    assert [attempt.job_id for attempt in ground.backend.held] == [receipt.job]
    assert ground.job(receipt).executions == 1


def test_a_lost_claim_survives_an_outage_and_costs_no_execution() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(2)
    ground.store.faults_after["claim"] = [LOST]
    pauses = [failed_round(ground)]
    ground.store.fails["claim"] = AWAY
    for _ in range(5):
        ground.clock.advance_ms(5_000)
        pauses.append(failed_round(ground))
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    ground.store.fails.clear()
    asyncio.run(ground.claimer.run_once())
    assert ground.backend.held == [], "it took longer than the budget: too much of the lease is gone"
    asyncio.run(ground.releaser.run_once())
    assert [ground.job(receipt).executions for receipt in receipts] == [0, 0]
    asyncio.run(ground.claimer.run_once())
    assert len(ground.backend.held) == 2


def test_a_lost_claim_is_forgotten_when_its_lease_has_run_out() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    ground.store.faults_after["claim"] = [LOST]
    failed_round(ground)
    ground.store.fails["claim"] = AWAY
    ground.clock.advance_ms(61_000)
    assert failed_round(ground) == pytest.approx(1.0)
    assert not ground.claimer.is_claiming
    ground.store.fails.clear()
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.claimer.run_once())
    assert [attempt.job_id for attempt in ground.backend.held] == [receipt.job]
    assert [attempt.outcome for attempt in ground.job(receipt).attempts] == ["abandoned"]


def test_a_late_answer_has_its_leases_renewed_at_once() -> None:
    ground = Ground(free=1)
    ground.dispatch(1)
    asyncio.run(ground.heartbeat.run_once())
    ground.store.meanwhile["claim"] = lambda: ground.clock.advance_ms(6_000)
    asyncio.run(ground.claimer.run_once())
    asyncio.run(ground.heartbeat.run_once())
    ground.clock.advance_ms(46_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.store.calls == ["renew", "claim", "renew"]
    assert ground.said == []


def test_a_claim_that_is_not_admitted_is_told_once_and_then_polled_quietly() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    ground.store.fails["claim"] = DRAINED
    assert asyncio.run(ground.claimer.run_once()) == pytest.approx(1.0)
    ground.clock.advance_ms(400)
    assert asyncio.run(ground.claimer.run_once()) == pytest.approx(0.6), "no wake-up shortens the poll"
    for _ in range(3):
        ground.clock.advance_ms(1_000)
        asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim"] * 4
    assert ground.said == [events.ClaimsRefused("the application is being drained")]
    ground.store.fails.clear()
    ground.clock.advance_ms(1_000)
    asyncio.run(ground.claimer.run_once())
    assert [attempt.job_id for attempt in ground.backend.held] == [receipt.job]
    assert [type(event) for event in ground.said] == [events.ClaimsRefused, events.ClaimsAdmitted]
    assert ground.said[1].seconds == pytest.approx(4.4)


def test_an_outage_while_claims_are_not_admitted_is_told_beside_it() -> None:
    ground = Ground(free=1)
    ground.store.faults["claim"] = [DRAINED, AWAY, DRAINED]
    for _ in range(4):
        with contextlib.suppress(StoreUnavailable):
            asyncio.run(ground.claimer.run_once())
        ground.clock.advance_ms(1_000)
    assert [type(event) for event in ground.said] == [
        events.ClaimsRefused,
        events.StoreCallFailed,
        events.StoreCallAnswered,
        events.ClaimsAdmitted,
    ]


def test_what_could_not_begin_goes_back_and_nothing_of_its_claim_stays_behind() -> None:
    ground = Ground(free=3)
    payload = b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}'
    receipts = ground.dispatch(3, payload=payload)
    ground.store.faults["begin"] = [DRAINED]
    asyncio.run(ground.claimer.run_once())
    ground.store.fails["claim"] = DRAINED
    ground.clock.advance_ms(1_000)
    asyncio.run(ground.claimer.run_once())
    assert ground.said == [events.ClaimsRefused("the application is being drained")]
    asyncio.run(ground.releaser.run_once())
    assert ground.states(receipts) == ["pending"] * 3
    assert (ground.backend.held, len(ground.registry)) == ([], 0)
    assert ground.heard(events.LeaseLost) == []


def test_a_begin_without_an_answer_is_sent_again() -> None:
    ground = Ground(free=1)
    payload = b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}'
    (receipt,) = ground.dispatch(1, payload=payload)
    ground.store.faults_after["begin"] = [LOST]
    ground.store.faults["begin"] = [AWAY]
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "begin", "begin", "begin"]
    assert ground.backend.held[0].payload == payload
    assert ground.job(receipt).executions == 1


def test_an_attempt_whose_lease_was_lost_while_its_payload_was_read_is_not_run() -> None:
    ground = Ground(free=1)
    ground.dispatch(1, payload=b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}')

    def watch() -> None:
        ground.clock.advance_ms(50_000)
        ground.watchdog._lose(ground.registry.past_deadline(ground.clock.steady_s()), "no renewal was confirmed", 0.0)

    ground.store.meanwhile["begin"] = watch
    asyncio.run(ground.claimer.run_once())
    assert ground.backend.held == []
    assert len(ground.registry) == 0, "its ticket is free"
    assert [type(event) for event in ground.said] == [events.LeaseLost]


def test_without_tickets_nothing_is_claimed_until_settlements_have_returned_some() -> None:
    ground = Ground(free=1, ahead=1_000)
    ground.dispatch(700, max_executions=3)

    async def scenario() -> None:
        while await ground.claimer.run_once() is not None:
            pass
        assert len(ground.registry) == len(ground.backend.held) == 513, "one that runs, and 512 beyond it"
        for attempt in ground.backend.held[:100]:
            ground.backend.end(attempt)
        ground.claimer.wake._rung = False
        assert await ground.claimer.run_once() is None, "they are not settled yet"
        ground.claimer.wake._rung = False
        await ground.finalizer.run_once()
        assert ground.claimer.wake._rung, "who lacks tickets is told"
        await ground.claimer.run_once()
        assert len(ground.registry) == 513

    asyncio.run(scenario())


def test_a_claim_that_was_refused_raises_and_holds_nothing() -> None:
    ground = Ground()
    ground.dispatch(1)
    ground.store.faults["claim"] = [AWAY]
    assert failed_round(ground) == pytest.approx(1.0)
    assert (len(ground.registry), ground.claimer.is_claiming) == (0, False)


def test_a_retry_that_is_due_soon_wakes_whoever_may_take_it_at_that_moment() -> None:
    ground = Ground(free=1, lanes=((LANE,), (OTHER_LANE,)))
    ground.dispatch(1, max_executions=5, retry_initial_ms=1, retry_max_ms=1)

    async def scenario() -> None:
        await ground.claimer.run_once()
        ground.backend.end(ground.backend.held[0], Outcome(OutcomeKind.FAILED, "handler_failed"))
        await ground.finalizer.run_once()
        for claimer in ground.claimers:
            claimer.wake._rung = False
        async with asyncio.timeout(20):
            assert await ground.claimer.wake.sleep(None)
        assert not ground.claimers[1].wake._rung, "it serves another queue"

    asyncio.run(scenario())


def test_a_retry_that_is_due_later_than_the_next_poll_is_left_to_it() -> None:
    ground = Ground()

    async def scenario() -> None:
        ground.claimer.due_in(LANE, 60_000)
        assert not ground.claimer._alarms._timers
        for _ in range(3):
            ground.claimer.due_in(LANE, 1_000)
        assert 1 <= len(ground.claimer._alarms._timers) <= 3, "one for each millisecond"
        ground.claimer.stop()
        assert not ground.claimer._alarms._timers
        ground.claimer.due_in(LANE, 1)
        assert not ground.claimer._alarms._timers, "it claims nothing more"

    asyncio.run(scenario())


@pytest.mark.parametrize("ended", ["cancel_requested", "expired"])
def test_a_reserved_job_that_is_cancelled_or_has_expired_is_not_begun(ended: str) -> None:
    ground = Ground(free=1)
    payload = b'{"text":"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"}'
    (receipt,) = ground.dispatch(1, payload=payload, expires_at_ms=ground.clock.now_ms() + 1_000)

    def meanwhile() -> None:
        if ended == "expired":
            ground.clock.advance_ms(1_000)
        else:
            ground.control(receipt)

    ground.store.meanwhile["claim"] = meanwhile
    asyncio.run(ground.claimer.run_once())
    assert ground.store.calls == ["claim", "begin"]
    assert (ground.backend.held, len(ground.registry)) == ([], 0)
    record = ground.job(receipt)
    assert (record.executions, record.attempts) == (0, [])
    (event,) = ground.said
    assert (type(event), event.code) == (events.EndedUnbegun, ended)
    assert (ground.tally.cancelled, ground.tally.failed) == ((0, 1) if ended == "expired" else (1, 0))


def test_what_arrives_after_the_stop_goes_straight_back() -> None:
    ground = Ground()
    (receipt,) = ground.dispatch(1)

    async def scenario() -> None:
        ground.store.meanwhile["claim"] = ground.claimer.stop
        await ground.claimer.run_once()
        await ground.releaser.run_once()

    asyncio.run(scenario())
    assert ground.backend.held == []
    record = ground.job(receipt)
    assert (record.state, record.executions, record.attempts) == ("pending", 0, [])


def test_too_little_of_a_lease_starts_no_handler() -> None:
    ground = Ground()
    (receipt,) = ground.dispatch(1)
    ground.store.meanwhile["claim"] = lambda: ground.clock.advance_ms(36_000)

    async def scenario() -> None:
        await ground.claimer.run_once()
        await ground.releaser.run_once()

    asyncio.run(scenario())
    assert ground.backend.held == []
    assert ground.job(receipt).state == "pending"


def test_a_lane_that_has_more_is_asked_again_before_the_claimer_sleeps() -> None:
    ground = Ground(free=4)
    full, empty = Lane("reports", Priority.HIGH), Lane("reports", Priority.MEDIUM)
    ground.dispatch(20, lane=full)
    ground.dispatch(2, lane=empty)

    async def scenario() -> None:
        for expected in (4, 8, 12, 16, 20, 22):
            while len(ground.backend.held) < min(ground.backend.slots, expected):
                assert await ground.claimer.run_once() == 0.0
            ground.backend.slots += 4

    asyncio.run(scenario())
    assert len(ground.backend.held) == 22


def test_one_batch_is_shared_out_among_the_lanes_and_handed_over_by_rank() -> None:
    ground = Ground(free=10)
    lanes = [Lane("reports", priority) for priority in Priority]
    for lane in reversed(lanes):
        ground.dispatch(100, lane=lane)

    async def scenario() -> None:
        for _ in range(20):
            before = len(ground.backend.held)
            await ground.claimer.run_once()
            taken = [attempt.lane.priority for attempt in ground.backend.held[before:]]
            assert taken == sorted(taken, key=[*Priority].index)
            ground.backend.slots += 10

    asyncio.run(scenario())
    counts = Counter(attempt.lane for attempt in ground.backend.held[50:150])
    assert [counts[lane] for lane in lanes] == pytest.approx([60, 30, 10], abs=4)


def test_queues_share_by_the_weights_of_their_pool() -> None:
    ground = Ground(free=8, lanes=((LANE, OTHER_LANE),), weights={OTHER_LANE.queue: 3})
    ground.dispatch(200)
    ground.dispatch(200, lane=OTHER_LANE)

    async def scenario() -> None:
        for _ in range(20):
            await ground.claimer.run_once()
            ground.backend.slots += 8

    asyncio.run(scenario())
    counts = Counter(attempt.lane for attempt in ground.backend.held[-80:])
    assert counts[OTHER_LANE] == pytest.approx(60, abs=4)


def test_what_full_limits_keep_out_is_told_once_a_claim_and_those_behind_it_are_taken() -> None:
    ground = Ground(free=4)
    one_at_a_time = (ScopeNeed(LimitKind.RESOURCE, "scale", 1),)
    ground.dispatch(5, scopes=one_at_a_time)
    free = ground.dispatch(2)

    async def scenario() -> None:
        for _ in range(4):
            await ground.claimer.run_once()

    asyncio.run(scenario())
    assert ground.states(free) == ["running"] * 2
    assert len(ground.backend.held) == 3
    assert ground.heard(events.MovedAside) == [events.MovedAside(parked=4, deferred=0)]
    assert (ground.tally.parked, ground.tally.deferred) == (4, 0)


def test_a_claim_that_moved_aside_all_it_may_is_followed_at_once() -> None:
    ground = Ground(free=1)
    held = (ScopeNeed(LimitKind.RESOURCE, "scale", 1),)
    ground.dispatch(1, scopes=held)
    ground.dispatch(PASSED_MAX + 20, scopes=held)
    (free,) = ground.dispatch(1)

    async def scenario() -> list[float | None]:
        await ground.claimer.run_once()
        ground.backend.slots = 2
        sleeps = []
        while ground.states([free]) == ["pending"]:
            assert not ground.claimer.found_nothing
            sleeps.append(await ground.claimer.run_once())
        return sleeps

    assert set(asyncio.run(scenario())) == {0.0}
    assert ground.tally.parked == PASSED_MAX + 20


def test_a_promised_job_is_claimed_at_its_very_moment_and_no_sooner() -> None:
    ground = Ground(free=2)
    window = (RateNeed(LimitKind.JOB_TYPE, KIND.name, 1, 1_000),)
    ground.dispatch(2, rates=window)

    async def scenario() -> None:
        began_s = asyncio.get_running_loop().time()
        await ground.claimer.run_once()
        await ground.claimer.run_once()
        assert ground.heard(events.MovedAside) == [events.MovedAside(parked=0, deferred=1)]
        assert len(ground.backend.held) == 1
        await ground.claimer.wake.sleep(0)
        async with asyncio.timeout(20):
            await ground.claimer.wake.sleep(None)
        assert asyncio.get_running_loop().time() - began_s >= 1.0
        ground.clock.advance_ms(1_000)
        await ground.claimer.run_once()

    asyncio.run(scenario())
    assert len(ground.backend.held) == 2


def test_a_claim_whose_answer_is_lost_is_counted_once() -> None:
    ground = Ground(free=2)
    ground.dispatch(2)
    ground.store.faults_after["claim"] = [OutcomeUnknown("outcome_unknown", "lost")]
    heard: list[object] = []
    turns = ground.claimer._turns
    took = turns.took
    ground.claimer._turns.took = lambda *args, **more: heard.append(args[1]) or took(*args, **more)  # type: ignore[method-assign, func-returns-value]

    async def scenario() -> None:
        with pytest.raises(OutcomeUnknown):
            await ground.claimer.run_once()
        await ground.claimer.run_once()

    asyncio.run(scenario())
    assert heard == [{LANE: 2}]


def test_a_pause_between_claim_and_begin_holds_nothing_up() -> None:
    ground = Ground(free=2)
    receipts = ground.dispatch(2, payload=b'"' + b"x" * PAYLOAD_INLINE_MAX_BYTES + b'"')
    ground.store.meanwhile["claim"] = lambda: ground.pause(LANE.queue)

    async def scenario() -> None:
        await ground.claimer.run_once()
        del ground.store.meanwhile["claim"]
        (waiting,) = ground.dispatch(1)
        ground.backend.slots = 3
        while not ground.claimer.found_nothing:
            await ground.claimer.run_once()
        assert ground.states([*receipts, waiting]) == ["running", "running", "pending"]
        assert all(attempt.begun for attempt in ground.backend.held)

    asyncio.run(scenario())
