"""Turns: how many of which lane one claim takes, and in which order."""

import pytest

from runwick.contracts.attempts import LaneTurn
from tests.conformance.ground import HIGH, LONE, LOW, MEDIUM, Bench, ids_of, turns_of


def test_a_turn_takes_at_most_its_share_and_the_next_ones_go_on(bench: Bench) -> None:
    high, medium, low = (bench.dispatch(5, lane=lane) for lane in (HIGH, MEDIUM, LOW))
    plan = bench.plan(turns=[LaneTurn(LOW, 1), LaneTurn(HIGH, 3), LaneTurn(MEDIUM, 2)])
    assert ids_of(bench.run(bench.store.claim(plan)).attempts) == low[:1] + high[:3] + medium[:2]


def test_the_claim_ends_where_it_has_enough_whatever_its_turns_allow(bench: Bench) -> None:
    high, medium, _ = (bench.dispatch(5, lane=lane) for lane in (HIGH, MEDIUM, LOW))
    claim = bench.claim(turns=turns_of(HIGH, MEDIUM, LOW, most=4), free=6)
    assert ids_of(claim.attempts) == high[:4] + medium[:2]


def test_a_lone_job_behind_its_turns_share_does_not_end_the_claim(bench: Bench) -> None:
    (first,) = bench.dispatch(lane=HIGH)
    bench.dispatch(2, lane=HIGH, policy=LONE)
    (other,) = bench.dispatch(lane=LOW)
    claim = bench.claim(turns=[LaneTurn(HIGH, 1), LaneTurn(LOW, 1)], free=1, ahead=5)
    assert (ids_of(claim.attempts), claim.stopped_at_lone) == ([first, other], False)


def test_a_turn_for_old_jobs_leaves_the_young_ones(bench: Bench) -> None:
    old = bench.dispatch(2, lane=LOW)
    bench.clock.advance_ms(1)
    young = bench.dispatch(2, lane=LOW)
    (high,) = bench.dispatch(lane=HIGH)
    bench.clock.advance_ms(59_999)
    turns = [LaneTurn(LOW, 128, waited_ms=60_000), LaneTurn(HIGH, 128)]
    assert ids_of(bench.claim(turns=turns).attempts) == [*old, high]
    assert bench.claim(turns=turns).attempts == []
    bench.clock.advance_ms(1)
    assert ids_of(bench.claim(turns=turns).attempts) == young


def test_what_is_due_but_too_young_for_its_turn_is_due_now(bench: Bench) -> None:
    """Another plan takes it at once."""
    bench.dispatch(lane=LOW)
    claim = bench.claim(turns=[LaneTurn(LOW, 1, waited_ms=60_000)])
    assert (claim.attempts, claim.next_due_in_ms) == ([], 0)


@pytest.mark.parametrize("wanted", [1, 7, 128])
def test_one_higher_among_a_thousand_equals_is_next_and_the_rest_keep_their_order(bench: Bench, wanted: int) -> None:
    """F103."""
    waiting = [job_id for _ in range(5) for job_id in bench.dispatch(100)]
    workers = [bench.worker, bench.ids.ordered()]
    taken = ids_of(bench.claim(free=wanted, worker=workers[0]).attempts)
    (urgent,) = bench.dispatch(lane=HIGH)
    waiting += [job_id for _ in range(5) for job_id in bench.dispatch(100)]
    second = ids_of(bench.claim(free=wanted, worker=workers[1]).attempts)
    assert second[0] == urgent
    taken += second[1:]
    for number in range(2):
        taken += ids_of(bench.claim(free=wanted, worker=workers[number]).attempts)
    assert taken == waiting[: 4 * wanted - 1]
