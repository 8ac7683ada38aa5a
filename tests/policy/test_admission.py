from typing import Any

import pytest

from runwick.contracts.limits import CALLED_MAX, PASSED_MAX
from runwick.policy.admission import Candidate, Fate, Verdict, admit, candidates_per_turn
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import tend_scope, tend_window
from tests.policy.limit_scene import Ground, Standing

S, T = b"scope s", b"scope t"
V, W = b"window v", b"window w"


def a_candidate(number: int = 0, **changes: Any) -> Candidate:
    return Candidate(0, number.to_bytes(16), 10, False, False, None, (), ())._replace(**changes)


def judged(candidates: list[Candidate], *limits: Scope | Window, **plan: Any) -> Any:
    plan = {"most": (9,), "want": 9, "free": 9, "room_bytes": 1_000, "now_ms": 5_000, **plan}
    scopes = {limit.id: limit for limit in limits if isinstance(limit, Scope)}
    windows = {limit.id: limit for limit in limits if isinstance(limit, Window)}
    return admit(candidates, scopes, windows, lambda _: Standing([]), **plan)


def fates(answer: Any) -> list[Fate]:
    return [verdict.fate for verdict in answer.verdicts]


def test_a_full_scope_keeps_its_jobs_out_and_nobody_else() -> None:
    scope = Scope(S, capacity=1, in_use=0)
    answer = judged([a_candidate(scopes=(S,)), a_candidate(1, scopes=(S,)), a_candidate(2)], scope)
    assert answer.verdicts == [Verdict(0, Fate.TAKEN), Verdict(1, Fate.PARKED, S), Verdict(2, Fate.TAKEN)]
    assert (scope.in_use, scope.has_line, scope.changed) == (1, True, True)


def test_of_several_limits_all_must_have_room_or_none_is_touched() -> None:
    free, full = Scope(S, capacity=5, in_use=0), Scope(T, capacity=1, in_use=1)
    window = Window(W, most=5, window_ms=1_000)
    answer = judged([a_candidate(scopes=(S, T), rates=(W,))], free, full, window)
    assert answer.verdicts == [Verdict(0, Fate.PARKED, T)]
    assert (free.in_use, free.changed, window.granted, window.changed) == (0, False, 0, False)


def test_a_full_window_takes_no_place_in_a_scope_and_no_grant_of_another_window() -> None:
    scope = Scope(S, capacity=5, in_use=0)
    full = Window(V, most=1, window_ms=1_000, granted=1, last_ms=4_900, slots={0: 4_900})
    other = Window(W, most=5, window_ms=1_000)
    answer = judged([a_candidate(scopes=(S,), rates=(V, W))], scope, full, other)
    assert answer.verdicts == [Verdict(0, Fate.DEFERRED, V, 5_900)]
    assert (scope.in_use, other.granted, full.promised) == (0, 0, 1)


@pytest.mark.parametrize(("left_ms", "fate"), [(999, Fate.DEFERRED), (1_000, Fate.TAKEN)])
def test_a_grant_leaves_to_the_millisecond(left_ms: int, fate: Fate) -> None:
    at_ms = 5_000 - left_ms
    window = Window(W, most=1, window_ms=1_000, granted=1, last_ms=at_ms, slots={0: at_ms})
    assert fates(judged([a_candidate(rates=(W,))], window)) == [fate]


@pytest.mark.parametrize(("last_byte", "jitter_ms"), [(0, 0), (100, 100), (101, 0), (255, 53)])
def test_a_deferral_lasts_a_quarter_second_and_the_jobs_own_jitter(last_byte: int, jitter_ms: int) -> None:
    window = Window(W, most=1, window_ms=1_000, granted=1, last_ms=4_100, slots={0: 4_100})
    assert judged([a_candidate(last_byte, rates=(W,))], window).verdicts[0].due_ms == 5_250 + jitter_ms


def test_each_leaving_is_promised_once_and_the_rest_stands_in_line() -> None:
    window = Window(W, most=2, window_ms=1_000)
    answer = judged([a_candidate(number, rates=(W,)) for number in range(5)], window)
    assert fates(answer) == [Fate.TAKEN, Fate.TAKEN, Fate.DEFERRED, Fate.DEFERRED, Fate.PARKED]
    assert (window.granted, window.promised, window.has_line) == (2, 2, True)


@pytest.mark.parametrize(
    ("lone", "plan", "taken", "stopped"),
    [
        ({"lone": True}, {"free": 1}, 1, True),
        ({"scopes": (S,)}, {"free": 1}, 1, True),
        ({"rates": (W,)}, {"free": 1}, 1, True),
        ({}, {"free": 1}, 3, False),
        ({}, {"want": 2}, 2, False),
        ({}, {"room_bytes": 25}, 2, False),
        ({}, {"room_bytes": 1}, 1, False),
        ({}, {"most": (2,)}, 2, False),
    ],
)
def test_where_a_claim_ends(lone: dict[str, Any], plan: dict[str, Any], taken: int, stopped: bool) -> None:
    limits = Scope(S, capacity=9, in_use=0), Window(W, most=9, window_ms=1_000)
    answer = judged([a_candidate(number, **lone) for number in range(3)], *limits, **plan)
    assert fates(answer) == [Fate.TAKEN] * taken
    assert (answer.stopped_at_lone, answer.again) == (stopped, False)


def test_an_expired_job_counts_as_one_that_was_taken_and_is_never_parked() -> None:
    full = Scope(S, capacity=1, in_use=1)
    answer = judged([a_candidate(0, expired=True, scopes=(S,)), a_candidate(1), a_candidate(2)], full, want=2)
    assert fates(answer) == [Fate.EXPIRED, Fate.TAKEN]


def test_a_claim_moves_so_many_aside_and_says_that_there_may_be_more() -> None:
    full = Scope(S, capacity=1, in_use=1)
    candidates = [a_candidate(number, scopes=(S,)) for number in range(candidates_per_turn((9,), 9)[0])]
    answer = judged(candidates, full)
    assert fates(answer) == [Fate.PARKED] * PASSED_MAX
    assert answer.again
    assert not judged(candidates[:3], Scope(S, capacity=1, in_use=1)).again


def test_each_turn_has_its_own_bound() -> None:
    answer = judged([a_candidate(number, turn=number % 2) for number in range(6)], most=(1, 2))
    assert [verdict.place for verdict in answer.verdicts] == [0, 1, 3]


@pytest.mark.parametrize(("capacity", "fenced", "tokens"), [(1, True, [8]), (2, True, []), (1, False, [])])
def test_the_holder_of_a_resource_of_one_gets_the_next_token(capacity: int, fenced: bool, tokens: list[int]) -> None:
    scope = Scope(S, capacity=capacity, in_use=0, fenced=fenced, fence=7)
    (verdict,) = judged([a_candidate(scopes=(S,))], scope).verdicts
    assert verdict.fences == tuple((S, token) for token in tokens)


def test_a_line_is_served_six_three_one_and_within_a_rank_in_order() -> None:
    scope = Scope(S, capacity=20, in_use=20, has_line=True)
    ground = Ground([scope])
    for number in range(60):
        ground.add(number, rank=number % 3, scopes=(S,), line=S)
    calling = ground.calling()
    calling.into_scope(scope, scope.free(10))
    ranks = [call.job.rank for call in calling.called]
    assert ranks == [0, 1, 0, 2, 0, 1, 0, 0, 1, 0]
    for rank in range(3):
        own = [call.job.job_id for call in calling.called if call.job.rank == rank]
        assert own == sorted(own)


def test_an_empty_rank_leaves_its_turn_to_the_highest_that_is_not_and_paused_jobs_stay() -> None:
    scope = Scope(S, capacity=20, in_use=0, calls=0, has_line=True)
    ground = Ground([scope])
    for number, rank in enumerate([2, 1, 1, 0]):
        ground.add(number, rank=rank, scopes=(S,), line=S, paused=rank == 0)
    calling = ground.calling()
    calling.into_scope(scope, 9)
    assert [call.job.rank for call in calling.called] == [1, 1, 2]
    assert scope.has_line, "the paused one stands there still"
    assert scope.calls == 3


def test_a_lowered_capacity_calls_nobody_until_there_is_room() -> None:
    scope = Scope(S, capacity=5, in_use=5)
    assert scope.resize(2) == 0
    assert [scope.free(1) for _ in range(5)] == [0, 0, 0, 1, 1]
    assert scope.resize(4) == 2


def test_one_act_calls_so_many_at_most() -> None:
    scope = Scope(S, capacity=500, in_use=0, has_line=True)
    ground = Ground([scope])
    for number in range(200):
        ground.add(number, scopes=(S,), line=S)
    calling = ground.calling()
    assert not tend_scope(scope, 0, calling)
    assert len(calling.called) == CALLED_MAX
    assert scope.has_line


def test_tending_mends_a_count_that_does_not_agree_with_the_holds() -> None:
    scope = Scope(S, capacity=5, in_use=4)
    assert tend_scope(scope, 1, Ground().calling())
    assert (scope.in_use, scope.changed) == (1, True)


@pytest.mark.parametrize(("left_ms", "called"), [(249, 0), (250, 2)])
def test_tending_gives_away_room_that_nobody_used(left_ms: int, called: int) -> None:
    slots = {0: 1_000_000 - 1_000 - left_ms, 1: 1_000_000 - 1_000 - left_ms, 2: 999_999}
    window = Window(W, most=3, window_ms=1_000, granted=3, promised=3, last_ms=999_999, has_line=True, slots=slots)
    ground = Ground((), [window])
    for number in range(5):
        ground.add(number, rates=(W,), line=W)
    calling = ground.calling()
    tend_window(window, ground.now_ms, calling)
    assert [call.due_ms for call in calling.called] == [ground.now_ms] * called


def test_a_promise_is_passed_on_with_its_time_or_given_back() -> None:
    window = Window(W, most=1, window_ms=1_000)
    ground = Ground((), [window])
    for number in range(3):
        ground.add(number, rates=(W,))
    ground.claim()
    first, second = sorted(ground.waiting.values(), key=lambda row: row.job_id)
    due_ms = first.due_ms
    ground.cancel(first)
    assert (second.line, second.called, second.due_ms) == (None, W, due_ms)
    ground.cancel(second)
    assert (window.unpromised, window.has_line) == (1, False)
    late = ground.add(9, rates=(W,))
    ground.claim()
    assert (late.called, late.due_ms) == (W, due_ms)


@pytest.mark.parametrize(("granted", "count", "slots"), [(0, 3, [0, 1, 2]), (8, 2, [3, 4]), (8, 9, [0, 1, 2, 3, 4])])
def test_which_slots_an_act_reads(granted: int, count: int, slots: list[int]) -> None:
    """A promise of the oldest grant lies where the next grant goes: one row, whatever the size of the ring."""
    window = Window(W, most=5, window_ms=1_000, granted=granted)
    assert window.slots_needed(count) == slots


def test_the_clock_going_back_brings_neither_a_burst_nor_a_standstill() -> None:
    window = Window(W, most=2, window_ms=1_000, granted=2, last_ms=3_600_000, slots={0: 3_600_000, 1: 3_600_000})
    assert window.free(window.time_ms(1_000), 2) == 0
    assert window.free(window.time_ms(1_999), 2) == 0
    assert window.free(window.time_ms(2_000), 2) == 2
    assert window.promise(bytes(16), 1_000) == 2_000, "told in the store's time"
