from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from runwick.contracts.attempts import Lane, LaneTurn
from runwick.contracts.policies import AGING_MS, LANE_WEIGHTS, LaneSelection
from runwick.contracts.states import Priority
from runwick.policy.lanes import Turns, in_rank_order, lanes_of
from tests.attempts import an_attempt

HIGH, MEDIUM, LOW = (Lane("mail", priority) for priority in Priority)
MUCH = 10**9


class Shop:
    """Lanes with so many jobs each, fresh and old ones, and a claim that does as a plan says."""

    def __init__(self, fresh: Mapping[Lane, int], old: Mapping[Lane, int] | None = None) -> None:
        self.fresh, self.old = Counter(fresh), Counter(old or {})

    def claim(self, plan: Iterable[LaneTurn], want: int) -> list[tuple[Lane, bool]]:
        taken: list[tuple[Lane, bool]] = []
        for turn in plan:
            most = min(turn.most, want - len(taken))
            old = min(most, self.old[turn.lane])
            fresh = 0 if turn.waited_ms else min(most - old, self.fresh[turn.lane])
            self.old[turn.lane] -= old
            self.fresh[turn.lane] -= fresh
            taken += [(turn.lane, True)] * old + [(turn.lane, False)] * fresh
        return taken


def one_round(turns: Turns, shop: Shop, want: int) -> list[tuple[Lane, bool]]:
    """Plan and claim until something came or nothing is there."""
    for _ in range(100):
        plan = turns.plan(want)
        assert len({turn.lane for turn in plan}) == len(plan), "a lane stands in a plan once"
        taken = shop.claim(plan, want)
        again = turns.took(plan, Counter(lane for lane, _ in taken), cut=len(taken) == want)
        if taken or not again:
            return taken
    raise AssertionError("it never comes to rest")


def taken_in(turns: Turns, shop: Shop, want: int, jobs: int) -> Counter[Lane]:
    counts: Counter[Lane] = Counter()
    while counts.total() < jobs:
        taken = one_round(turns, shop, want)
        assert taken, "there is work, and a claim found none"
        counts.update(lane for lane, _ in taken)
    return counts


def shares(queues: Mapping[str, int], weights: tuple[int, int, int], alive: Iterable[Lane]) -> dict[Lane, float]:
    of_lane = dict(zip(Priority, weights, strict=True))
    living = list(alive)
    among = {queue: sum(of_lane[lane.priority] for lane in living if lane.queue == queue) for queue in queues}
    total = sum(queues[queue] for queue in queues if among[queue])
    return {lane: queues[lane.queue] / total * of_lane[lane.priority] / among[lane.queue] for lane in living}


weight = st.integers(1, 1_000)
wants = st.sampled_from([1, 7, 128])


@pytest.mark.parametrize("want", [1, 7, 128])
def test_six_three_one(want: int) -> None:
    counts = taken_in(Turns({"mail": 1}), Shop(dict.fromkeys((HIGH, MEDIUM, LOW), MUCH)), want, 10_000)
    total = counts.total()
    for lane, share in zip((HIGH, MEDIUM, LOW), (0.6, 0.3, 0.1), strict=True):
        assert counts[lane] == pytest.approx(share * total, abs=max(3, want / 8))


@settings(deadline=None, phases=[Phase.generate], max_examples=15)
@given(st.lists(weight, min_size=1, max_size=4), st.tuples(weight, weight, weight), wants, st.data())
def test_shares_are_exact_whoever_is_alive(
    queue_weights: list[int], weights: tuple[int, int, int], want: int, data: st.DataObject
) -> None:
    queues = {f"q{number}": each for number, each in enumerate(queue_weights)}
    turns, lanes = Turns(queues, weights), lanes_of(queues)
    for _ in range(2):
        alive = data.draw(st.sets(st.sampled_from(lanes), min_size=1))
        shop = Shop(dict.fromkeys(alive, MUCH))
        taken_in(turns, shop, want, 200)
        jobs = 10_000 if want > 7 else 2_000
        counts = taken_in(turns, shop, want, jobs)
        for lane, share in shares(queues, weights, alive).items():
            assert counts[lane] == pytest.approx(share * counts.total(), abs=0.05 * share * jobs + 4 + want / 4), lane


def test_a_lane_that_comes_alive_has_its_share_at_once() -> None:
    turns, shop = Turns({"mail": 1}), Shop({HIGH: MUCH})
    taken_in(turns, shop, 10, 500)
    shop.fresh[MEDIUM] = MUCH
    assert Counter(lane for lane, _ in one_round(turns, shop, 10))[MEDIUM] >= 3


@settings(deadline=None, phases=[Phase.generate], max_examples=20)
@given(st.tuples(weight, weight, weight), st.integers(1, 4))
def test_no_lane_with_work_waits_much_longer_than_its_share(weights: tuple[int, int, int], queue_count: int) -> None:
    queues = {f"q{number}": 1 for number in range(queue_count)}
    turns, lanes = Turns(queues, weights), lanes_of(queues)
    shop = Shop(dict.fromkeys(lanes, MUCH))
    longest = {lane: 2 / share + len(lanes) for lane, share in shares(queues, weights, lanes).items()}
    last = dict.fromkeys(lanes, 0)
    for claim in range(1, 600):
        ((lane, _),) = one_round(turns, shop, 1)
        last[lane] = claim
        assert all(claim - last[each] <= longest[each] for each in lanes)


@settings(deadline=None, phases=[Phase.generate], max_examples=30)
@given(
    st.sampled_from([LaneSelection.WEIGHTED, LaneSelection.STRICT_WITH_AGING]),
    st.integers(1, 8),
    st.sampled_from([(MEDIUM,), (LOW,), (MEDIUM, LOW)]),
    st.sampled_from([LANE_WEIGHTS, (1_000, 1, 1)]),
)
def test_of_every_nine_jobs_one_is_an_old_one(
    selection: LaneSelection, want: int, with_old: tuple[Lane, ...], weights: tuple[int, int, int]
) -> None:
    turns = Turns({"mail": 1}, weights, selection)
    shop = Shop(dict.fromkeys((HIGH, MEDIUM, LOW), MUCH), dict.fromkeys(with_old, MUCH))
    since_old = 0
    of_old: Counter[Lane] = Counter()
    for _ in range(300):
        taken = one_round(turns, shop, want)
        assert len(taken) == want
        for lane, old in taken:
            since_old = 0 if old else since_old + 1
            of_old[lane] += old
            assert since_old <= 8 if want == 1 else since_old <= 8 + want
    assert all(of_old[lane] >= 300 * want / 18 * 0.9 for lane in with_old), "each of them has its half"


@pytest.mark.parametrize("selection", list(LaneSelection))
def test_a_trickle_above_never_leaves_executors_idle_while_there_is_work_below(selection: LaneSelection) -> None:
    turns, shop = Turns({"mail": 1}, selection=selection), Shop({MEDIUM: MUCH})
    for _ in range(50):
        shop.fresh[HIGH] = 1
        assert one_round(turns, shop, 128)
    assert MUCH - shop.fresh[MEDIUM] > 50 * 127 / 3


@pytest.mark.parametrize("want", [7, 128])
def test_a_dry_lane_is_seen_again_though_each_plan_looks_for_old_jobs(want: int) -> None:
    turns, shop = Turns({"mail": 1}, (900, 50, 50)), Shop({HIGH: MUCH})
    taken_in(turns, shop, want, 500)
    shop.fresh[LOW] = MUCH
    assert taken_in(turns, shop, want, 10 * want)[LOW] > 0


def test_a_large_claim_looks_for_as_many_old_ones() -> None:
    turns = Turns({"mail": 1}, (1_000, 1, 1), LaneSelection.STRICT_WITH_AGING)
    shop = Shop(dict.fromkeys((HIGH, MEDIUM, LOW), MUCH), {LOW: MUCH})
    for _ in range(20):
        taken = one_round(turns, shop, 128)
        assert sum(old for _, old in taken) >= 128 // 9
        assert len(taken) == 128


@pytest.mark.parametrize("selection", [LaneSelection.WEIGHTED, LaneSelection.STRICT_WITH_AGING])
@pytest.mark.parametrize("want", [1, 7, 128])
def test_looking_for_old_jobs_never_leaves_fresh_ones_lying(selection: LaneSelection, want: int) -> None:
    turns, shop = Turns({"mail": 1}, selection=selection), Shop({HIGH: 50, MEDIUM: 500, LOW: 50})
    assert taken_in(turns, shop, want, 600).total() == 600
    assert one_round(turns, shop, want) == []


@pytest.mark.parametrize("want", [1, 7, 128])
def test_strict_lets_the_lower_lanes_starve(want: int) -> None:
    turns = Turns({"mail": 1}, selection=LaneSelection.STRICT)
    shop = Shop({HIGH: MUCH, MEDIUM: MUCH}, {LOW: MUCH})
    assert taken_in(turns, shop, want, 2_000).keys() == {HIGH}
    shop.fresh[HIGH] = 0
    assert taken_in(turns, shop, want, 2_000).keys() == {MEDIUM}
    assert all(turn.waited_ms == 0 for turn in turns.plan(want))


@pytest.mark.parametrize("selection", list(LaneSelection))
@pytest.mark.parametrize("want", [1, 7, 128])
def test_between_queues_the_choice_is_weighted_in_every_mode(selection: LaneSelection, want: int) -> None:
    queues = {"reports": 1, "pdf": 3}
    counts = taken_in(Turns(queues, selection=selection), Shop(dict.fromkeys(lanes_of(queues), MUCH)), want, 4_000)
    pdf = sum(count for lane, count in counts.items() if lane.queue == "pdf")
    assert pdf == pytest.approx(0.75 * counts.total(), abs=128)


@pytest.mark.parametrize("ends_at", [1, 2, 4])
@pytest.mark.parametrize("want", [10, 34, 128])
def test_shares_hold_for_claims_that_end_before_they_have_all_they_want(want: int, ends_at: int) -> None:
    queues = {"reports": 1, "pdf": 3}
    turns, shop = Turns(queues), Shop({Lane(queue, Priority.MEDIUM): MUCH for queue in queues})
    assert not one_round(turns, Shop({}), want)
    counts: Counter[str] = Counter()
    for _ in range(1_000):
        plan = turns.plan(want)
        taken = [lane for lane, _ in shop.claim(plan, ends_at)]
        turns.took(plan, Counter(taken), cut=True)
        counts.update(lane.queue for lane in taken)
    assert counts["pdf"] == pytest.approx(0.75 * counts.total(), abs=want)


@pytest.mark.parametrize("selection", list(LaneSelection))
@pytest.mark.parametrize("want", [1, 7, 128])
def test_a_queue_that_was_empty_has_its_share_as_soon_as_work_comes(selection: LaneSelection, want: int) -> None:
    queues = {"reports": 1, "pdf": 3}
    turns = Turns(queues, selection=selection)
    assert not one_round(turns, Shop({}), want)
    counts = taken_in(turns, Shop(dict.fromkeys(lanes_of(queues), MUCH)), want, 4_000)
    pdf = sum(count for lane, count in counts.items() if lane.queue == "pdf")
    assert pdf == pytest.approx(0.75 * counts.total(), abs=300)


def test_one_job_is_found_wherever_it_is() -> None:
    queues = {f"q{number}": 1 for number in range(5)}
    for selection in LaneSelection:
        turns = Turns(queues, selection=selection)
        for lane in lanes_of(queues) * 2:
            assert one_round(turns, Shop({lane: 1}), 1) == [(lane, False)]
            assert one_round(turns, Shop({lane: 1}), 9) == [(lane, False)]


def test_jobs_moved_aside_keep_a_lane_from_being_dry() -> None:
    turns = Turns({"mail": 1})
    plan = turns.plan(10)
    assert turns.took(plan, {turn.lane: turn.most for turn in plan}, cut=False), "there may be more behind them"
    for _ in range(3):
        plan = turns.plan(10)
        again = turns.took(plan, {}, cut=False)
    assert not again


def test_a_lane_that_a_claim_did_not_come_to_is_not_dry() -> None:
    turns = Turns({"mail": 1})
    plan = turns.plan(10)
    turns.took(plan, {plan[0].lane: 2}, cut=True)
    assert {turn.lane for turn in turns.plan(10)} == {HIGH, MEDIUM, LOW}
    assert not turns.took(turns.plan(10), {}, cut=True)


def test_the_first_look_for_old_jobs_comes_with_the_ninth() -> None:
    turns = Turns({"mail": 1}, selection=LaneSelection.STRICT_WITH_AGING)
    for _ in range(8):
        plan = turns.plan(1)
        assert [turn.waited_ms for turn in plan] == [0, 0, 0]
        turns.took(plan, {HIGH: 1}, cut=True)
    assert turns.plan(1) == (LaneTurn(LOW, 1, AGING_MS), LaneTurn(MEDIUM, 1, AGING_MS), LaneTurn(HIGH, 1))


def test_what_was_claimed_is_handed_over_by_priority_within_each_queue() -> None:
    lanes = [LOW, Lane("pdf", Priority.LOW), MEDIUM, HIGH, Lane("pdf", Priority.HIGH), MEDIUM]
    attempts = [an_attempt(number, lane=lane) for number, lane in enumerate(lanes)]
    assert [attempt.job for attempt in in_rank_order(attempts)] == [3, 4, 2, 5, 1, 0]


def test_the_one_of_a_higher_priority_is_next_and_the_rest_stays_in_order() -> None:
    """F103"""
    attempts = [an_attempt(number, lane=HIGH if number == 64 else MEDIUM) for number in range(128)]
    assert [attempt.job for attempt in in_rank_order(attempts)] == [64, *range(64), *range(65, 128)]
