"""Calls out of lines where more is to be called than one act may, and beside acts that end several jobs at once: who
ends is not called, and no call is lost."""

from typing import Any

from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.controls import SteerAction
from runwick.contracts.limits import CALLED_MAX, LimitKind
from runwick.contracts.outcomes import Settlement
from runwick.contracts.states import JobState, Priority
from runwick.policy.limits import UNUSED_AFTER_MS
from runwick.policy.lines import LOOKED_MAX
from tests.conformance.ground import APPLICATION, KINDS, MEDIUM, SUCCESS, Bench, ids_of, resource, window
from tests.postgres.asking import eventually

PRINTER = resource("printer")
MAILS = Lane("mails", Priority.MEDIUM)
MANY = 2 * CALLED_MAX + 3
"""More than two acts may call."""


def called_and_waiting(bench: Bench, count: int = 2, **changes: Any) -> list[bytes]:
    """Jobs for one place that is free: the first is called in for it, the others stand in the line."""
    holder = bench.claimed(scopes=(PRINTER,))
    jobs = bench.dispatch(count, scopes=(PRINTER,), **changes)
    assert bench.claim().parked == count
    bench.succeed(holder)
    return jobs


def test_jobs_that_expire_together_with_whom_they_would_pass_the_call_on_to_end(bench: Bench) -> None:
    jobs = called_and_waiting(bench, expires_in_ms=1_000)
    bench.clock.advance_ms(1_000)
    assert bench.run(bench.store.expire(APPLICATION, 100)) == 2
    assert [bench.job(job).state for job in jobs] == [JobState.FAILED] * 2
    (newcomer,) = bench.dispatch(scopes=(PRINTER,))
    assert ids_of(bench.claim().attempts) == [newcomer]


def test_jobs_that_are_cancelled_together_with_whom_they_would_pass_the_call_on_to_end(bench: Bench) -> None:
    first, second, third = called_and_waiting(bench, 3)
    assert [answer.code for answer in bench.cancel(first, second)] == [None, None]
    assert [bench.job(job).state for job in (first, second)] == [JobState.CANCELLED] * 2
    assert ids_of(bench.claim().attempts) == [third]


def in_lines(bench: Bench) -> int:
    return bench.run(bench.store.outlook(APPLICATION, [MEDIUM, MAILS], KINDS)).blocked


def dispatch_many(bench: Bench, count: int, **changes: Any) -> None:
    for start in range(0, count, 100):
        bench.dispatch(min(100, count - start), **changes)


def claim_all(bench: Bench) -> list[Attempt]:
    """Claim until there is nothing left that may run; all others stand in lines then."""
    attempts: list[Attempt] = []
    while (claim := bench.claim(lanes=[MEDIUM])).attempts or claim.again:
        attempts += claim.attempts
    return attempts


def settle_all(bench: Bench, attempts: list[Attempt]) -> None:
    for start in range(0, len(attempts), 100):
        batch = [Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in attempts[start : start + 100]]
        answers = bench.run(bench.store.settle(batch))
        assert {str(answer) for answer in answers} == {"done"}


def test_raising_a_capacity_calls_as_many_as_there_is_room_for_however_many_that_are(bench: Bench) -> None:
    bench.claimed(scopes=(PRINTER,))
    dispatch_many(bench, MANY + 40, scopes=(PRINTER,))
    assert claim_all(bench) == []
    assert in_lines(bench) == MANY + 40
    bench.limit("printer", 1 + MANY)
    eventually(lambda: in_lines(bench) == 40, "there is room for the others")
    assert len(claim_all(bench)) == MANY
    assert in_lines(bench) == 40


def test_whom_a_pause_left_in_lines_is_called_in_when_the_queue_is_open_again(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (waits,) = bench.dispatch(scopes=(PRINTER,))
    assert bench.claim().parked == 1
    bench.pause()
    bench.succeed(holder)
    command = bench.steering(SteerAction.RESUME, LimitKind.QUEUE, "reports")
    assert bench.steer(command).code is None
    assert ids_of(bench.claim().attempts) == [waits]
    assert bench.steer(command).replayed


def test_all_are_called_in_for_whom_there_is_room_when_a_queue_is_open_again(bench: Bench) -> None:
    dispatch_many(bench, 2 * MANY + 40, scopes=(resource("printer", MANY),))
    holders = claim_all(bench)
    assert (len(holders), in_lines(bench)) == (MANY, MANY + 40)
    bench.pause()
    settle_all(bench, holders)
    bench.resume()
    eventually(lambda: in_lines(bench) == 40, "there is room for the others")


def test_all_limits_are_looked_at_when_a_queue_is_open_again(bench: Bench) -> None:
    keys = [f"r{number}" for number in range(CALLED_MAX + 3)]
    for _ in range(2):
        for start in range(0, len(keys), 100):
            bench.send(*(bench.command(scopes=(resource(key),)) for key in keys[start : start + 100]))
    holders = claim_all(bench)
    assert (len(holders), in_lines(bench)) == (len(keys), len(keys))
    bench.pause()
    settle_all(bench, holders)
    bench.resume()
    eventually(lambda: in_lines(bench) == 0, "each has room for one")


def test_room_of_a_window_that_a_pause_left_unused_is_given_when_the_queue_is_open_again(bench: Bench) -> None:
    provider = window("provider", 1)
    bench.succeed(bench.claimed(rates=(provider,)))
    promised, waits = bench.dispatch(2, rates=(provider,))
    claim = bench.claim()
    assert (claim.deferred, claim.parked) == (1, 1)
    bench.pause()
    bench.cancel(promised)
    bench.clock.advance_ms(1_000 + UNUSED_AFTER_MS)
    assert bench.tend().called == 0
    bench.resume()
    assert ids_of(bench.claim().attempts) == [waits]


def test_a_place_that_a_job_of_a_paused_queue_was_called_in_for_is_given_to_another_by_the_sweep(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (called,) = bench.dispatch(scopes=(PRINTER,))
    (open_one,) = bench.dispatch(lane=MAILS, scopes=(PRINTER,))
    assert bench.claim(lanes=[MEDIUM, MAILS]).parked == 2
    bench.succeed(holder)
    bench.pause()
    assert bench.tend().called == 1
    (attempt,) = bench.claim(lanes=[MEDIUM, MAILS]).attempts
    assert attempt.job_id == open_one
    bench.resume()
    assert bench.claim(lanes=[MEDIUM, MAILS]).parked == 1
    bench.succeed(attempt)
    assert ids_of(bench.claim(lanes=[MEDIUM, MAILS]).attempts) == [called]


def test_the_sweep_goes_on_until_the_room_is_used(bench: Bench) -> None:
    """Nobody claims whom the settlements called, so that there is room for as many again."""
    dispatch_many(bench, 3 * MANY, scopes=(resource("printer", MANY),))
    holders = claim_all(bench)
    settle_all(bench, holders)
    eventually(lambda: in_lines(bench) == MANY, "they are called for the places that were freed")
    assert bench.tend().called == CALLED_MAX
    eventually(lambda: in_lines(bench) == 0, "they are called for the room that is there")


def test_jobs_of_a_paused_queue_hide_nobody_however_many_they_are(bench: Bench) -> None:
    """The sweep, and what goes on behind it, look further each time."""
    bench.dispatch(scopes=(PRINTER,))
    bench.dispatch(lane=MAILS)
    (holder,) = bench.claim(lanes=[MEDIUM]).attempts
    dispatch_many(bench, 2 * LOOKED_MAX + 100, scopes=(PRINTER,))
    assert claim_all(bench) == []
    hidden = bench.dispatch(2, lane=MAILS, scopes=(PRINTER,))
    assert bench.claim(lanes=[MAILS]).parked == 2
    bench.pause()
    bench.succeed(holder)

    def called() -> int:
        bench.tend()
        return 2 - in_lines(bench)

    eventually(lambda: called() > 0, "there is room for it")
    (attempt,) = bench.claim(lanes=[MAILS]).attempts
    assert attempt.job_id == hidden[0]
    bench.succeed(attempt)
    eventually(lambda: called() == 2, "the next one is not hidden either")
    assert ids_of(bench.claim(lanes=[MAILS]).attempts) == hidden[1:]
