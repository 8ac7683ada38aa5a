"""Claim: which jobs a plan takes, in which order, and what a taken job looks like."""

import random

import pytest

from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, Kind
from runwick.contracts.states import JobState
from tests.conformance.ground import BUILD, HIGH, LEASE_MS, LONE, LOW, MEDIUM, SEND, Bench, ids_of, unlike


def test_a_claim_begins_and_charges_what_it_hands_over(bench: Bench) -> None:
    attempt = bench.claimed(metadata=b'{"a":"b"}')
    assert attempt.begun
    assert (attempt.number, attempt.execution, attempt.generation) == (1, 1, 1)
    assert (attempt.crashes, attempt.unstarted) == (0, 0)
    assert (attempt.kind, attempt.lane) == (BUILD, MEDIUM)
    assert attempt.created_at_ms == bench.clock.now_ms()
    assert attempt.policy.max_executions == 3
    job = bench.job(attempt.job_id)
    assert (job.state, job.revision, job.executions, job.due_at_ms) == (JobState.RUNNING, 2, 1, None)


def test_lanes_are_taken_in_the_order_of_the_plan(bench: Bench) -> None:
    (low,) = bench.dispatch(lane=LOW)
    (medium,) = bench.dispatch(lane=MEDIUM)
    (high,) = bench.dispatch(lane=HIGH)
    assert ids_of(bench.claim(free=2).attempts) == [high, medium]
    assert ids_of(bench.claim(lanes=(LOW,)).attempts) == [low]


def test_within_a_lane_the_due_time_decides_then_the_id(bench: Bench) -> None:
    now_ms = bench.clock.now_ms()
    second = [bench.command(not_before_ms=now_ms + 20, kind=kind) for kind in (SEND, BUILD, SEND, BUILD)]
    first = [bench.command(not_before_ms=now_ms + 10, kind=kind) for kind in (BUILD, SEND)]
    bench.run(bench.store.dispatch(second[::-1] + first[::-1]))
    bench.clock.advance_ms(20)
    assert ids_of(bench.claim().attempts) == [command.job_id for command in first + second]


@pytest.mark.parametrize("wanted", [1, 7, 40, 128])
def test_many_kinds_in_one_lane_come_in_one_order(bench: Bench, wanted: int) -> None:
    chance = random.Random(wanted)
    kinds = [Kind(f"kind-{number}", 1) for number in range(6)]
    now_ms = bench.clock.now_ms()
    commands = [
        bench.command(kind=chance.choice(kinds[: chance.randint(1, 6)]), not_before_ms=now_ms + chance.randrange(50))
        for _ in range(200)
    ]
    bench.run(bench.store.dispatch(commands[:100]))
    bench.run(bench.store.dispatch(commands[100:]))
    bench.clock.advance_ms(50)
    decodable = frozenset(kinds[:5])
    expected = sorted(
        (command for command in commands if command.kind in decodable),
        key=lambda command: (command.not_before_ms, command.job_id),
    )
    taken = bench.claim(kinds=decodable, free=wanted).attempts
    assert ids_of(taken) == [command.job_id for command in expected[:wanted]]


def test_what_cannot_be_decoded_never_stands_in_front(bench: Bench) -> None:
    for _ in range(15):
        bench.dispatch(100, kind=Kind("reports.build", 2))
    bench.clock.advance_ms(1)
    (job_id,) = bench.dispatch()
    claim = bench.claim(free=1)
    assert ids_of(claim.attempts) == [job_id]
    empty = bench.claim(free=1)
    assert (empty.attempts, empty.next_due_in_ms) == ([], None)


def test_an_empty_claim_says_when_the_next_job_is_due(bench: Bench) -> None:
    assert bench.claim() == bench.claim(application="nobody")
    assert bench.claim().next_due_in_ms is None
    bench.dispatch(delay_ms=9_000)
    bench.dispatch(delay_ms=4_000, lane=LOW)
    bench.dispatch(delay_ms=1_000, kind=Kind("other", 1))
    assert (bench.claim().attempts, bench.claim().next_due_in_ms) == ([], 4_000)
    bench.clock.advance_ms(3_999)
    assert (bench.claim().attempts, bench.claim().next_due_in_ms) == ([], 1)
    bench.clock.advance_ms(1)
    assert len(bench.claim().attempts) == 1
    assert bench.claim().next_due_in_ms == 5_000


def test_two_claims_never_share_a_job(bench: Bench) -> None:
    bench.dispatch(10)
    first, second = bench.claim(free=6).attempts, bench.claim(free=6).attempts
    assert (len(first), len(second)) == (6, 4)
    assert not {*ids_of(first)} & {*ids_of(second)}
    every = [*first, *second]
    assert len({attempt.attempt_id for attempt in every}) == 10


def test_after_the_free_ones_only_jobs_that_may_run_ahead(bench: Bench) -> None:
    job_ids = bench.dispatch(6)
    claim = bench.claim(free=1, ahead=3)
    assert ids_of(claim.attempts) == job_ids[:4]
    assert all(attempt.runs_ahead for attempt in claim.attempts)
    assert not claim.stopped_at_lone


def test_a_job_that_may_not_run_ahead_ends_the_claim_where_it_stands(bench: Bench) -> None:
    ahead = bench.dispatch(2)
    (lone,) = bench.dispatch(policy=LONE)
    bench.dispatch(1)
    bench.dispatch(1, lane=LOW)
    claim = bench.claim(free=1, ahead=10)
    assert ids_of(claim.attempts) == ahead
    assert claim.stopped_at_lone
    nothing = bench.claim(free=0, ahead=10)
    assert (nothing.attempts, nothing.stopped_at_lone, nothing.next_due_in_ms) == ([], True, 0)
    free = bench.claim(free=1, ahead=10)
    assert ids_of(free.attempts)[0] == lone
    assert not free.attempts[0].runs_ahead
    assert (len(free.attempts), free.stopped_at_lone) == (3, False)


def test_the_last_execution_does_not_run_ahead(bench: Bench) -> None:
    attempt = bench.claimed()
    assert attempt.runs_ahead
    bench.retry(attempt, 0)
    (second,) = bench.claim(free=0, ahead=1).attempts
    assert (second.execution, second.runs_ahead) == (2, True)
    bench.retry(second, 0)
    assert bench.claim(free=0, ahead=1).attempts == []
    (third,) = bench.claim(free=1).attempts
    assert (third.execution, third.runs_ahead) == (3, False)


def test_a_claim_ends_when_its_payloads_reach_the_plans_size_but_takes_one(bench: Bench) -> None:
    job_ids = bench.dispatch(3, payload=b'"' + b"x" * 998 + b'"')
    assert ids_of(bench.claim(payload_bytes=2_000).attempts) == job_ids[:2]
    assert ids_of(bench.claim(payload_bytes=10).attempts) == job_ids[2:]


def test_a_claim_takes_no_more_than_its_bound(bench: Bench) -> None:
    bench.dispatch(CLAIM_MAX_ATTEMPTS + 2)
    assert len(bench.claim(free=500, ahead=500).attempts) == CLAIM_MAX_ATTEMPTS
    assert len(bench.claim(free=500).attempts) == 2


def test_a_plan_sent_again_gets_what_it_got_and_nothing_more(bench: Bench) -> None:
    bench.dispatch(2, lane=LOW, kind=SEND)
    bench.dispatch(2, lane=HIGH)
    bench.dispatch(3, lane=MEDIUM)
    plan = bench.plan(free=5)
    claim = bench.run(bench.store.claim(plan))
    again = bench.run(bench.store.claim(plan))
    assert again.attempts == claim.attempts
    assert {bench.job(attempt.job_id).revision for attempt in claim.attempts} == {2}
    bench.succeed(claim.attempts[0])
    assert bench.run(bench.store.claim(plan)).attempts == claim.attempts[1:]
    bench.release(*claim.attempts)
    done = bench.run(bench.store.claim(plan))
    assert (done.attempts, done.next_due_in_ms) == ([], 0)
    assert len(bench.claim().attempts) == 6


def test_an_empty_plan_sent_again_may_find_something(bench: Bench) -> None:
    plan = bench.plan()
    assert bench.run(bench.store.claim(plan)).attempts == []
    bench.dispatch(1)
    assert len(bench.run(bench.store.claim(plan)).attempts) == 1


def test_a_job_past_its_expiry_is_closed_and_not_claimed(bench: Bench) -> None:
    (expired,) = bench.dispatch(expires_in_ms=1_000)
    (later,) = bench.dispatch(expires_at_ms=bench.clock.now_ms() + 1_001)
    bench.clock.advance_ms(1_000)
    assert ids_of(bench.claim().attempts) == [later]
    job = bench.job(expired)
    assert (job.state, job.code, job.ended_at_ms) == (JobState.FAILED, "expired", bench.clock.now_ms())
    assert (job.revision, job.executions, list(job.attempts)) == (2, 0, [])


def test_a_claim_that_finds_only_expired_jobs_asks_to_be_repeated(bench: Bench) -> None:
    bench.dispatch(3, expires_in_ms=5)
    bench.clock.advance_ms(5)
    claim = bench.claim(free=2)
    assert (claim.attempts, claim.next_due_in_ms) == ([], 0)
    assert bench.claim(free=2).attempts == []
    assert bench.claim(free=2).next_due_in_ms is None


def test_a_planned_retry_moves_the_expiry_on(bench: Bench) -> None:
    attempt = bench.claimed(expires_in_ms=1_000)
    bench.clock.advance_ms(900)
    bench.retry(attempt, 5_000)
    bench.clock.advance_ms(5_999)
    (second,) = bench.claim().attempts
    assert second.execution == 2
    bench.retry(second, 5_000)
    bench.clock.advance_ms(6_000)
    assert bench.claim().attempts == []
    job = bench.job(attempt.job_id)
    assert (job.state, job.code, len(job.attempts)) == (JobState.FAILED, "expired", 2)


def test_a_lease_ends_by_the_stores_clock(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS - 1)
    assert bench.recover() == []
    bench.clock.advance_ms(1)
    (expired,) = bench.recover()
    assert expired == unlike(attempt, payload=None)


def test_what_is_due_far_later_is_handed_out_once_and_not_before(bench: Bench) -> None:
    """F029."""
    (job_id,) = bench.dispatch(delay_ms=3 * LEASE_MS)
    for _ in range(3):
        for bench.worker in [bench.ids.ordered() for _ in range(3)]:
            assert bench.claim().attempts == []
        assert bench.recover() == []
        bench.clock.advance_ms(LEASE_MS)
    (attempt,) = bench.claim().attempts
    assert bench.claim().attempts == []
    assert (attempt.job_id, attempt.number, attempt.execution) == (job_id, 1, 1)
