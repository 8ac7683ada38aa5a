"""Marks: what claims need not look at again, and when they look everywhere all the same."""

from collections.abc import Mapping, Sequence

import pytest

from runwick.stores.postgres.marks import START, SWEEP_INTERVAL_S, SWEEP_REST, TRAILS_MS, Key, Look, Marks
from tests.ambient import FakeClock

NOW_MS = 1_000_000
EDGE = (NOW_MS - TRAILS_MS, START[1])
HIGH, MEDIUM, LOW = LANES = (1, 2, 3)
KINDS = frozenset({7})
AT_ONCE = (0, 0, 0)
ALL: Mapping[int, Key | None] = dict.fromkeys(LANES)
"""A claim that saw everything due."""
NOTHING: Mapping[int, Key | None] = {}
"""One that ended before it looked at anything."""


def key(due_at_ms: int, number: int = 1) -> Key:
    return due_at_ms, number.to_bytes(16)


class Watched(Marks):
    """Marks whose sweeps take as long as the test says."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        super().__init__(self.clock)

    def claim(
        self,
        seen: Mapping[int, Key | None] = ALL,
        *,
        now_ms: int = NOW_MS,
        takes_ms: int = 0,
        waited_ms: Sequence[int] = AT_ONCE,
        kinds: frozenset[int] = KINDS,
    ) -> Look:
        """One claim, from look to end; answers where it looked."""
        look = self.look(LANES, waited_ms, kinds)
        self.clock.advance_ms(takes_ms)
        self.ended(look)
        self.found(look, now_ms, seen)
        return look

    def behind(self, kinds: frozenset[int] = KINDS) -> list[Key]:
        """Where a claim that is no sweep would look now."""
        return list(self.look(LANES, AT_ONCE, kinds).behind)


@pytest.fixture
def marks() -> Watched:
    """Marks that have just swept, without finding anything."""
    marks = Watched()
    look = marks.claim(NOTHING)
    assert (look.is_sweep, list(look.behind)) == (True, [START] * 3)
    return marks


def test_a_claim_that_is_full_moves_the_mark_to_its_last_job(marks: Watched) -> None:
    marks.claim({HIGH: None, MEDIUM: key(500, 9)})
    assert marks.behind() == [EDGE, key(500, 9), START]


def test_each_lane_has_the_mark_of_its_own_turn(marks: Watched) -> None:
    marks.claim({HIGH: key(700), MEDIUM: None, LOW: key(300)})
    assert marks.behind() == [key(700), EDGE, key(300)]
    assert not marks.claim({HIGH: key(800), MEDIUM: None}).is_sweep
    assert marks.behind() == [key(800), EDGE, key(300)]


def test_a_turn_for_those_who_have_waited_tells_nothing_of_the_others(marks: Watched) -> None:
    waited_ms = (0, 60_000, 60_000)
    marks.claim({MEDIUM: key(NOW_MS - 5_000)})
    marks.claim({HIGH: key(500), MEDIUM: None, LOW: None}, waited_ms=waited_ms)
    assert marks.behind() == [key(500), key(NOW_MS - 5_000), (NOW_MS - 60_000 - TRAILS_MS, START[1])]
    marks.claim({HIGH: key(500), LOW: key(NOW_MS - 60_000)}, waited_ms=waited_ms)
    assert marks.behind()[2] == key(NOW_MS - 60_000)


def test_what_the_last_claim_met_is_told_to_the_next(marks: Watched) -> None:
    look = marks.look(LANES, AT_ONCE, KINDS)
    assert (look.judges, look.spare) == (None, 0)
    marks.found(look, NOW_MS, ALL, judges="judged", spare=8)
    look = marks.look(LANES, AT_ONCE, KINDS)
    assert (look.judges, look.spare) == ("judged", 8)
    marks.claim()
    assert marks.look(LANES, AT_ONCE, KINDS).judges is None


def test_while_there_is_more_the_mark_is_exact(marks: Watched) -> None:
    marks.claim({HIGH: None, MEDIUM: None, LOW: key(NOW_MS - 1)})
    assert marks.behind() == [EDGE, EDGE, key(NOW_MS - 1)]


def test_once_there_is_nothing_left_the_marks_stay_behind_the_time(marks: Watched) -> None:
    marks.claim({HIGH: None, MEDIUM: key(NOW_MS - 1)})
    marks.claim()
    marks.clock.advance_ms(1)
    assert marks.claim().is_sweep
    assert marks.behind() == [EDGE, EDGE, EDGE]


def test_a_claim_that_ended_before_it_took_anything_moves_nothing(marks: Watched) -> None:
    marks.claim({HIGH: None, MEDIUM: key(500)})
    marks.claim(NOTHING, now_ms=NOW_MS + 10_000)
    assert marks.behind() == [EDGE, key(500), START]


def test_a_sweep_that_finds_plenty_takes_the_mark_back(marks: Watched) -> None:
    """There may be more of what it found."""
    marks.claim({HIGH: key(900)})
    marks.clock.advance_ms(1_000)
    assert marks.claim({HIGH: key(100)}).is_sweep
    assert marks.behind() == [key(100), START, START]


def test_a_job_that_comes_back_takes_the_mark_along(marks: Watched) -> None:
    marks.claim({HIGH: key(900)})
    marks.lower(HIGH, key(950))
    marks.lower(MEDIUM, key(10))
    assert marks.behind() == [key(900), START, START]
    marks.lower(HIGH, key(700, 3))
    assert START < marks.behind()[0] < key(700, 3)


def test_a_job_that_comes_back_while_a_claim_is_under_way_is_not_passed_by_it(marks: Watched) -> None:
    marks.claim({HIGH: key(500)})
    for seen in (key(900), None):
        look = marks.look(LANES, AT_ONCE, KINDS)
        marks.lower(HIGH, key(100))
        marks.ended(look)
        marks.found(look, NOW_MS, {HIGH: seen})
        assert marks.behind()[0] < key(100)


def test_other_kinds_have_marks_of_their_own(marks: Watched) -> None:
    marks.claim({HIGH: key(900)})
    others = frozenset({7, 8})
    assert marks.claim(NOTHING, kinds=others).is_sweep
    assert marks.behind(others) == [START] * 3
    marks.lower(HIGH, key(800))
    assert marks.behind()[0] < key(800)


def test_a_clock_that_was_set_back_forgets_the_marks(marks: Watched) -> None:
    marks.claim({HIGH: key(900)})
    marks.claim({HIGH: key(100)}, now_ms=NOW_MS - 10_000)
    assert marks.behind() == [key(100), START, START]


def test_after_a_short_claim_the_next_one_sweeps_and_not_the_one_after(marks: Watched) -> None:
    marks.claim()
    assert [marks.claim().is_sweep for _ in range(4)] == [True, False, True, False]


def test_while_there_is_enough_a_sweep_comes_once_in_its_interval(marks: Watched) -> None:
    sweeps = []
    for _ in range(8):
        marks.clock.advance_ms(int(SWEEP_INTERVAL_S * 250))
        sweeps.append(marks.claim({HIGH: key(900)}).is_sweep)
    assert sweeps == [False, False, False, True] * 2


def test_a_lane_that_a_sweep_does_not_come_to_is_looked_at_from_the_start_as_soon_as_a_claim_comes_to_it(
    marks: Watched,
) -> None:
    """Claims of few jobs end in the first lane of their plan: only by chance does a sweep meet another one."""
    marks.claim({HIGH: key(800), MEDIUM: key(700), LOW: key(900)})
    marks.clock.advance_ms(1_000)
    assert marks.claim({HIGH: key(100)}).is_sweep
    assert marks.behind() == [key(100), START, START]
    assert marks.claim({HIGH: key(101)}).makes_up
    assert marks.claim({LOW: key(300)}).makes_up
    assert marks.behind() == [key(101), START, key(300)]


def test_a_sweep_of_one_pool_does_not_stand_for_the_lanes_of_another(marks: Watched) -> None:
    theirs = 4
    look = marks.look([theirs], [0], KINDS)
    marks.ended(look)
    marks.found(look, NOW_MS, {theirs: key(900)})
    marks.clock.advance_ms(1_000)
    assert marks.claim().is_sweep
    look = marks.look([theirs], [0], KINDS)
    assert (look.is_sweep, list(look.behind)) == (False, [START])


def test_what_is_made_up_for_rests_in_proportion_too(marks: Watched) -> None:
    marks.claim({HIGH: key(800), LOW: key(900)})
    marks.clock.advance_ms(1_000)
    marks.claim({HIGH: key(100)})
    assert marks.claim({HIGH: key(101)}, takes_ms=10).makes_up
    assert marks.behind()[2] == key(900)
    marks.clock.advance_ms(10 * SWEEP_REST + 1)
    assert marks.behind()[2] == START


def test_sweeps_rest_in_proportion_to_what_they_take(marks: Watched) -> None:
    marks.claim()
    assert marks.claim(takes_ms=100).is_sweep
    marks.claim()
    marks.clock.advance_ms(100 * SWEEP_REST - 5)
    assert not marks.claim().is_sweep
    marks.clock.advance_ms(10)
    assert marks.claim().is_sweep


def test_a_sweep_that_fails_rests_too(marks: Watched) -> None:
    marks.claim()
    look = marks.look(LANES, AT_ONCE, KINDS)
    assert look.is_sweep
    marks.clock.advance_ms(5_000)
    marks.ended(look)
    assert not marks.look(LANES, AT_ONCE, KINDS).is_sweep
    marks.clock.advance_ms(5_000 * SWEEP_REST)
    assert marks.look(LANES, AT_ONCE, KINDS).is_sweep


def test_many_combinations_of_kinds_do_not_pile_up(marks: Watched) -> None:
    for number in range(1_000):
        marks.claim(NOTHING, kinds=frozenset({number}))
    assert len(marks._intakes) <= 64


def test_what_is_forgotten_is_looked_at_again(marks: Watched) -> None:
    marks.claim({HIGH: key(900)})
    marks.forget()
    look = marks.look(LANES, AT_ONCE, KINDS)
    assert (look.is_sweep, list(look.behind)) == (True, [START] * 3)
