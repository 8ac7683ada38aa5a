"""Marks: what claims need not look at again, and when they look everywhere all the same."""

import pytest

from runwick.stores.postgres.marks import START, SWEEP_INTERVAL_S, SWEEP_REST, TRAILS_MS, Key, Look, Marks
from tests.ambient import FakeClock

NOW_MS = 1_000_000
EDGE = (NOW_MS - TRAILS_MS, START[1])
HIGH, MEDIUM, LOW = LANES = (1, 2, 3)
KINDS = frozenset({7})


def key(due_at_ms: int, number: int = 1) -> Key:
    return due_at_ms, number.to_bytes(16)


class Watched(Marks):
    """Marks whose sweeps take as long as the test says."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        super().__init__(self.clock)

    def claim(
        self,
        last: tuple[int, Key] | None = None,
        *,
        saw_all: bool = True,
        now_ms: int = NOW_MS,
        takes_ms: int = 0,
        kinds: frozenset[int] = KINDS,
    ) -> Look:
        """One claim, from look to end; answers where it looked."""
        look = self.look(LANES, kinds)
        self.clock.advance_ms(takes_ms)
        self.ended(look)
        self.found(look, now_ms, last, saw_all=saw_all)
        return look

    def behind(self, kinds: frozenset[int] = KINDS) -> list[Key]:
        """Where a claim that is no sweep would look now."""
        return list(self.look(LANES, kinds).behind)


@pytest.fixture
def marks() -> Watched:
    """Marks that have just swept, without finding anything."""
    marks = Watched()
    look = marks.claim(saw_all=False)
    assert (look.is_sweep, list(look.behind)) == (True, [START] * 3)
    return marks


def test_a_claim_that_is_full_moves_the_mark_to_its_last_job(marks: Watched) -> None:
    marks.claim((MEDIUM, key(500, 9)), saw_all=False)
    assert marks.behind() == [EDGE, key(500, 9), START]


def test_while_there_is_more_the_mark_is_exact(marks: Watched) -> None:
    marks.claim((LOW, key(NOW_MS - 1)), saw_all=False)
    assert marks.behind() == [EDGE, EDGE, key(NOW_MS - 1)]


def test_once_there_is_nothing_left_the_marks_stay_behind_the_time(marks: Watched) -> None:
    marks.claim((MEDIUM, key(NOW_MS - 1)), saw_all=False)
    marks.claim((MEDIUM, key(NOW_MS)), saw_all=True)
    marks.clock.advance_ms(1)
    assert marks.claim(saw_all=False).is_sweep
    assert marks.behind() == [EDGE, EDGE, EDGE]


def test_a_claim_that_ended_before_it_took_anything_moves_nothing(marks: Watched) -> None:
    marks.claim((MEDIUM, key(500)), saw_all=False)
    marks.claim(None, saw_all=False, now_ms=NOW_MS + 10_000)
    assert marks.behind() == [EDGE, key(500), START]


def test_a_sweep_that_finds_plenty_takes_the_mark_back(marks: Watched) -> None:
    """There may be more of what it found."""
    marks.claim((HIGH, key(900)), saw_all=False)
    marks.clock.advance_ms(1_000)
    assert marks.claim((HIGH, key(100)), saw_all=False).is_sweep
    assert marks.behind() == [key(100), START, START]


def test_a_job_that_comes_back_takes_the_mark_along(marks: Watched) -> None:
    marks.claim((HIGH, key(900)), saw_all=False)
    marks.lower(HIGH, key(950))
    marks.lower(MEDIUM, key(10))
    assert marks.behind() == [key(900), START, START]
    marks.lower(HIGH, key(700, 3))
    assert START < marks.behind()[0] < key(700, 3)


def test_a_job_that_comes_back_while_a_claim_is_under_way_is_not_passed_by_it(marks: Watched) -> None:
    marks.claim((HIGH, key(500)), saw_all=False)
    for saw_all in (False, True):
        look = marks.look(LANES, KINDS)
        marks.lower(HIGH, key(100))
        marks.ended(look)
        marks.found(look, NOW_MS, (HIGH, key(900)), saw_all=saw_all)
        assert marks.behind()[0] < key(100)


def test_other_kinds_have_marks_of_their_own(marks: Watched) -> None:
    marks.claim((HIGH, key(900)), saw_all=False)
    others = frozenset({7, 8})
    assert marks.claim(saw_all=False, kinds=others).is_sweep
    assert marks.behind(others) == [START] * 3
    marks.lower(HIGH, key(800))
    assert marks.behind()[0] < key(800)


def test_a_clock_that_was_set_back_forgets_the_marks(marks: Watched) -> None:
    marks.claim((HIGH, key(900)), saw_all=False)
    marks.claim((HIGH, key(100)), saw_all=False, now_ms=NOW_MS - 10_000)
    assert marks.behind() == [key(100), START, START]


def test_after_a_short_claim_the_next_one_sweeps_and_not_the_one_after(marks: Watched) -> None:
    marks.claim(saw_all=True)
    assert [marks.claim(saw_all=True).is_sweep for _ in range(4)] == [True, False, True, False]


def test_while_there_is_enough_a_sweep_comes_once_in_its_interval(marks: Watched) -> None:
    sweeps = []
    for _ in range(8):
        marks.clock.advance_ms(int(SWEEP_INTERVAL_S * 250))
        sweeps.append(marks.claim((HIGH, key(900)), saw_all=False).is_sweep)
    assert sweeps == [False, False, False, True] * 2


def test_sweeps_rest_in_proportion_to_what_they_take(marks: Watched) -> None:
    marks.claim(saw_all=True)
    assert marks.claim(saw_all=True, takes_ms=100).is_sweep
    marks.claim(saw_all=True)
    marks.clock.advance_ms(100 * SWEEP_REST - 5)
    assert not marks.claim(saw_all=True).is_sweep
    marks.clock.advance_ms(10)
    assert marks.claim(saw_all=True).is_sweep


def test_a_sweep_that_fails_rests_too(marks: Watched) -> None:
    marks.claim(saw_all=True)
    look = marks.look(LANES, KINDS)
    assert look.is_sweep
    marks.clock.advance_ms(5_000)
    marks.ended(look)
    assert not marks.look(LANES, KINDS).is_sweep
    marks.clock.advance_ms(5_000 * SWEEP_REST)
    assert marks.look(LANES, KINDS).is_sweep


def test_many_combinations_of_kinds_do_not_pile_up(marks: Watched) -> None:
    for number in range(1_000):
        marks.claim(saw_all=False, kinds=frozenset({number}))
    assert len(marks._intakes) <= 64


def test_what_is_forgotten_is_looked_at_again(marks: Watched) -> None:
    marks.claim((HIGH, key(900)), saw_all=False)
    marks.forget()
    look = marks.look(LANES, KINDS)
    assert (look.is_sweep, list(look.behind)) == (True, [START] * 3)
