"""When a run that shall end is interrupted, looked at and killed; on no clock but the test's."""

import pytest

from runwick.contracts.cancelling import CancellationCause as Cause
from runwick.contracts.outcomes import OutcomeKind
from runwick_supervisor.stopping import CLEANUP_OVERDUE, DUMP_LEAD_S, MEMORY_LIMIT, Act, Stopping

CLEANUP_S = 10.0


def acts(stopping: Stopping, until_s: float, closing_since_s: float | None = None) -> list[tuple[Act, float]]:
    """What is done until then, and when, by somebody who asks whenever it is due; stacks are never complete."""
    done: list[tuple[Act, float]] = []
    now_s = 0.0
    while now_s <= until_s:
        while (act := stopping.next(now_s, closing_since_s, False)) is not None:
            done.append((act, round(now_s, 3)))
            if act is Act.KILL:
                return done
        due_s = stopping.due_s(now_s, closing_since_s)
        assert due_s > now_s, "it would ask for ever"
        now_s = due_s
    return done


def asked(cause: Cause, within_s: float) -> Stopping:
    stopping = Stopping(0.0, CLEANUP_S)
    assert stopping.ask(cause, 0.0, within_s)
    return stopping


def test_it_is_interrupted_at_half_of_its_time_and_at_three_quarters_and_killed_at_the_end() -> None:
    assert acts(asked(Cause.USER_REQUESTED, 8.0), 20) == [
        (Act.INSIST, 4.0),
        (Act.INSIST, 6.0),
        (Act.DUMP, 8.0 - DUMP_LEAD_S),
        (Act.KILL, 8.0),
    ]


def test_with_no_time_left_it_is_killed_as_soon_as_its_stack_is_written() -> None:
    assert acts(asked(Cause.SHUTDOWN, 0.0), 20) == [(Act.DUMP, 0.0), (Act.KILL, DUMP_LEAD_S)]
    stopping = asked(Cause.SHUTDOWN, 0.0)
    assert stopping.next(0.0, None, False) is Act.DUMP
    assert stopping.next(0.002, None, True) is Act.KILL


def test_asking_again_never_gives_more_time_and_half_is_half_of_what_is_left() -> None:
    stopping = asked(Cause.USER_REQUESTED, 8.0)
    assert not stopping.ask(Cause.USER_REQUESTED, 1.0, 30.0)
    assert stopping.ask(Cause.SHUTDOWN, 1.0, 3.0)
    assert acts(stopping, 20)[0] == (Act.INSIST, 2.0)
    assert acts(stopping, 20)[-1] == (Act.KILL, 4.0)


def test_closing_its_providers_has_a_budget_of_its_own() -> None:
    assert acts(asked(Cause.USER_REQUESTED, 1.0), 20, closing_since_s=0.5)[-1] == (Act.KILL, 0.5 + CLEANUP_S)
    assert acts(asked(Cause.USER_REQUESTED, 15.0), 20, closing_since_s=0.5)[-1] == (Act.KILL, 15.0)


@pytest.mark.parametrize(("cause", "within_s"), [(Cause.LEASE_LOST, 1.0), (Cause.SHUTDOWN, 0.0)])
def test_a_lost_lease_and_an_end_without_time_wait_for_no_closing(cause: Cause, within_s: float) -> None:
    end_s = max(within_s, DUMP_LEAD_S)
    assert acts(asked(cause, within_s), 20, closing_since_s=0.0)[-1] == (Act.KILL, end_s)


def test_a_stack_from_before_it_began_to_close_is_not_the_one_it_is_killed_with() -> None:
    stopping = asked(Cause.TIMEOUT, 1.0)
    assert [act for act, _ in acts(stopping, 1.0 - DUMP_LEAD_S)][-1] is Act.DUMP
    assert [act for act, _ in acts(stopping, 20, closing_since_s=0.99)] == [Act.DUMP, Act.KILL]


def test_who_is_condemned_is_killed_at_once_whatever_it_was_promised() -> None:
    stopping = asked(Cause.USER_REQUESTED, 8.0)
    stopping.condemn(MEMORY_LIMIT, 1.0)
    assert stopping.next(1.0, 0.5, False) is Act.DUMP
    assert stopping.next(1.02, 0.5, False) is Act.KILL
    assert stopping.verdict is MEMORY_LIMIT
    stopping.condemn(CLEANUP_OVERDUE, 2.0)
    assert stopping.verdict is MEMORY_LIMIT


def test_of_several_causes_the_strongest_says_how_it_ended() -> None:
    stopping = Stopping(0.0, CLEANUP_S)
    told = []
    for cause in (Cause.LEASE_LOST, Cause.SHUTDOWN, Cause.USER_REQUESTED, Cause.TIMEOUT):
        stopping.ask(cause, 0.0, 1.0)
        told.append((stopping.verdict.kind, stopping.verdict.code))
    assert told == [
        (OutcomeKind.INTERRUPTED, "lease_lost"),
        (OutcomeKind.INTERRUPTED, "worker_stopping"),
        (OutcomeKind.CANCELLED, "cancel_requested"),
        (OutcomeKind.TIMED_OUT, "execution_timed_out"),
    ]
