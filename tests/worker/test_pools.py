"""Several pools in one worker: each has slots and tickets of its own, everything else is shared."""

import asyncio
from collections.abc import Sequence

import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.worker.engine import nothing_left
from runwick.worker.registry import Share
from runwick.worker.timings import HELD_MAX, PAYLOADS_MAX_BYTES
from tests.worker.ground import LANE, OTHER_LANE, Ground
from tests.worker.life import QUICK, Life, until

TWO = ((LANE,), (OTHER_LANE,))


def test_a_flooded_pool_takes_no_slot_of_another() -> None:
    life = Life(free=2, lanes=TWO, options=QUICK)
    flood = life.dispatch(50)
    mails = life.dispatch(3, lane=OTHER_LANE)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        await life.handed_over(2, pool=1)
        assert {attempt.lane for attempt in life.backends[0].held} == {LANE}
        assert {attempt.lane for attempt in life.backends[1].held} == {OTHER_LANE}
        life.backends[1].end(life.backends[1].held[0])
        await until(lambda: life.job(mails[2]).state == "running", "the third mail")
        assert len(life.backends[0].held) == 2, "the flood stands still, and its pool keeps what it has"
        for backend in life.backends:
            for attempt in list(backend.held):
                backend.end(attempt)
        await life.handed_over(2)
        life.worker.stop()
        await until(lambda: not life.backends[0].held, "the drain")

    life.live(script)
    assert life.states(mails) == ["succeeded"] * 3
    assert life.states(flood).count("succeeded") == 2


def test_two_pools_on_the_same_queue_share_its_jobs() -> None:
    life = Life(free=2, lanes=[[LANE], [LANE]], options=QUICK)
    receipts = life.dispatch(4)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        await life.handed_over(2, pool=1)
        held = [attempt.job_id for backend in life.backends for attempt in backend.held]
        assert sorted(held) == sorted(receipt.job for receipt in receipts), "each job is in one of them"
        for backend in life.backends:
            for attempt in list(backend.held):
                backend.end(attempt)

    life.live(script, nothing_left)
    assert life.states(receipts) == ["succeeded"] * 4


def test_one_call_settles_the_ends_of_all_pools() -> None:
    ground = Ground(free=1, lanes=TWO)
    receipts = [*ground.dispatch(1), *ground.dispatch(1, lane=OTHER_LANE)]
    for claimer in ground.claimers:
        asyncio.run(claimer.run_once())
    for backend in ground.backends:
        backend.end(backend.held[0])
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "claim", "settle"]
    assert ground.states(receipts) == ["succeeded", "succeeded"]


def test_an_end_waits_for_company_from_any_pool() -> None:
    ground = Ground(free=1, lanes=TWO)
    ground.dispatch(1)
    ground.dispatch(1, lane=OTHER_LANE)
    for claimer in ground.claimers:
        asyncio.run(claimer.run_once())
    ground.backends[1].expected_ms = 5.0
    ground.backends[0].end(ground.backends[0].held[0])
    pause_s = asyncio.run(ground.finalizer.run_once())
    assert pause_s is not None
    assert 0 < pause_s <= 0.02
    ground.backends[1].end(ground.backends[1].held[0])
    asyncio.run(ground.finalizer.run_once())
    assert ground.store.calls == ["claim", "claim", "settle"], "nothing else is expected: both go at once"


def shared_out(*sizes: int) -> list[Share]:
    """The shares of pools of these sizes."""
    shares = [Share() for _ in sizes]
    for share, size in zip(shares, sizes, strict=True):
        share.allow(size, sum(sizes))
    return shares


def test_each_pool_has_its_share_of_what_a_worker_may_hold() -> None:
    main, reports = shared_out(6, 2)
    assert (main.attempts_max, reports.attempts_max) == (6 + HELD_MAX * 6 // 8, 2 + HELD_MAX * 2 // 8)
    assert main.payloads_max_bytes + reports.payloads_max_bytes == PAYLOADS_MAX_BYTES
    assert [share.attempts_max for share in shared_out(1, 2_000)] == [2, 2_000 + 511], "at least one beyond its slots"
    (alone,) = shared_out(16)
    assert (alone.attempts_max, alone.payloads_max_bytes) == (16 + HELD_MAX, PAYLOADS_MAX_BYTES)


def test_a_pool_whose_results_cannot_be_written_leaves_the_other_its_tickets() -> None:
    ground = Ground(free=1, ahead=1_000, lanes=TWO)
    ground.dispatch(400)
    (mail,) = ground.dispatch(1, lane=OTHER_LANE)
    flooded, other = ground.claimers

    async def scenario() -> None:
        while await flooded.run_once() is not None:
            pass
        assert len(ground.registry) == 1 + HELD_MAX // 2
        for attempt in list(ground.backends[0].held):
            ground.backends[0].end(attempt)
        assert await flooded.run_once() is None, "all of its tickets wait for the finalizer"
        await other.run_once()

    asyncio.run(scenario())
    assert [attempt.job_id for attempt in ground.backends[1].held] == [mail.job]


def test_a_pool_of_large_payloads_leaves_the_other_its_room() -> None:
    ground = Ground(free=30, lanes=TWO)
    ground.dispatch(30, payload=b'{"text":"' + b"x" * 600_000 + b'"}')
    (mail,) = ground.dispatch(1, lane=OTHER_LANE)
    flooded, other = ground.claimers

    async def scenario() -> None:
        while await flooded.run_once() is not None:
            pass
        assert sum(attempt.payload_bytes for attempt in ground.backends[0].held) <= PAYLOADS_MAX_BYTES // 2 + 600_100
        assert len(ground.backends[0].held) == 14
        await other.run_once()
        ground.backends[0].end(ground.backends[0].held[0])
        await ground.finalizer.run_once()
        await flooded.run_once()
        assert len(ground.backends[0].held) == 14, "what was settled makes room"

    asyncio.run(scenario())
    assert [attempt.job_id for attempt in ground.backends[1].held] == [mail.job]


def test_presence_tells_the_queues_and_slots_of_all_pools() -> None:
    life = Life(free=3, lanes=[[LANE], [OTHER_LANE, LANE]])
    seen = life.worker._parts.presence
    assert (seen.queues, seen.executors) == (["mails", "reports"], 6)


def test_a_lost_lease_is_stopped_by_the_backend_that_runs_it() -> None:
    ground = Ground(free=1, lanes=TWO)
    ground.dispatch(1, lane=OTHER_LANE)
    asyncio.run(ground.claimers[1].run_once())
    ground.clock.advance_ms(50_000)
    asyncio.run(ground.watchdog.run_once())
    assert ground.backends[1].stopped_runs == ground.backends[1].held


def test_the_drain_gives_back_and_stops_the_runs_of_all_pools() -> None:
    life = Life(free=2, lanes=TWO, options=QUICK)
    receipts = [*life.dispatch(2), *life.dispatch(2, lane=OTHER_LANE)]

    async def script(life: Life) -> None:
        for number in range(2):
            await life.handed_over(2, pool=number)
        for backend in life.backends:
            backend.begun.add(backend.held[0].job)
        life.worker.stop_more_urgently()
        life.worker.stop_more_urgently()

    life.live(script)
    assert sorted(life.states(receipts)) == ["pending", "pending", "retrying", "retrying"]
    assert [backend.started for backend in life.backends] == [False, False]


def test_when_one_backend_gives_up_the_worker_stops_all_and_names_the_pool() -> None:
    life = Life(free=1, lanes=TWO, options=QUICK)
    receipts = [*life.dispatch(1), *life.dispatch(1, lane=OTHER_LANE)]

    async def script(life: Life) -> None:
        for number in range(2):
            await life.handed_over(1, pool=number)
        for backend in life.backends:
            backend.begun.add(backend.held[0].job)
        assert life.backends[1].sink is not None
        life.backends[1].sink.failed("no executor could be made")

    life.live(script)
    assert life.worker.failure == 'the backend of pool "pool-2" cannot go on: no executor could be made'
    assert life.states(receipts) == ["retrying", "retrying"]


def test_when_one_backend_cannot_be_started_none_is_left() -> None:
    life = Life(lanes=TWO)
    life.backends[1].refusal = ConfigurationError([Problem("boot_timeout", "pool", "it was not ready in time")])
    with pytest.raises(ConfigurationError):
        asyncio.run(life.worker.run())
    assert not life.backends[0].started
    assert life.store.calls == ["register", "scopes", "scopes", "rates"]


def test_a_claimer_that_fails_is_named_by_its_pool() -> None:
    assert [claimer.name for claimer in Ground(lanes=TWO).claimers] == [
        'claimer of pool "pool-1"',
        'claimer of pool "pool-2"',
    ]
    assert Ground().claimer.name == "claimer"


def test_a_run_that_nothing_can_stop_keeps_its_slot_and_lets_its_lease_run_out() -> None:
    ground = Ground(free=1)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    ground.sinks[0].gave_up([attempt])
    asyncio.run(ground.heartbeat.run_once())
    assert ground.registry.held() == [], "it is renewed no more"
    assert len(ground.registry) == 1
    ground.backend.end(attempt, Outcome(OutcomeKind.TIMED_OUT, "execution_timed_out"))
    asyncio.run(ground.finalizer.run_once())
    assert (ground.job(receipt).state, len(ground.registry)) == ("running", 0)
    assert "settle" not in ground.store.calls


def test_an_attempt_whose_job_was_claimed_again_here_gives_its_ticket_up() -> None:
    ground = Ground(free=2)
    (receipt,) = ground.dispatch(1, max_executions=5)
    asyncio.run(ground.claimer.run_once())
    (first,) = ground.backend.held
    ground.clock.advance_ms(61_000)
    asyncio.run(ground.watchdog.run_once())
    ground.recovery.due()
    asyncio.run(ground.recovery.run_once())
    asyncio.run(ground.claimer.run_once())
    second = _other(ground.backend.held, first)
    ground.backend.end(first)
    asyncio.run(ground.finalizer.run_once())
    assert len(ground.registry) == 1
    ground.backend.end(second)
    asyncio.run(ground.finalizer.run_once())
    assert (ground.job(receipt).state, len(ground.registry)) == ("succeeded", 0)
    assert ground.claimer._share.held == ground.claimer._share.payload_bytes == 0


def _other(held: Sequence[Attempt], first: Attempt) -> Attempt:
    (other,) = [attempt for attempt in held if attempt is not first]
    return other
