"""Calls out of lines beside acts that end several jobs at once: who ends is not called, and no call is lost."""

from typing import Any

from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, Bench, ids_of, resource

PRINTER = resource("printer")


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
