"""Reads: what is left for a worker, and what cost most. How a job reads is part of every other act's tests."""

import pytest

from runwick.contracts.attempts import Kind
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import JobState
from runwick.contracts.stores import Outlook
from runwick.contracts.usage import Usage
from tests.conformance.ground import APPLICATION, BUILD, HIGH, KINDS, LOW, MEDIUM, SEND, Bench


def outlook(bench: Bench, *lanes: object, application: str = APPLICATION) -> Outlook:
    return bench.run(bench.store.outlook(application, lanes or (HIGH, MEDIUM, LOW), KINDS))  # type: ignore[arg-type]


def test_an_empty_store_has_nothing_left(bench: Bench) -> None:
    nothing = Outlook(due=0, later=0, leased=0, undecodable=0, postponed=0, oldest_due_ms=None)
    assert outlook(bench) == nothing
    bench.dispatch(application="bakery")
    assert outlook(bench) == nothing


def test_an_outlook_counts_what_waits_and_what_runs(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, 9_000)
    bench.dispatch(4, kind=SEND)
    bench.claim(free=1)
    bench.dispatch(2, kind=Kind("reports.build", 2))
    bench.dispatch(1, kind=Kind("reports.build", 2), delay_ms=5)
    bench.dispatch(1, delay_ms=3_000, lane=LOW)
    bench.clock.advance_ms(250)
    bench.dispatch(1, lane=LOW)
    assert outlook(bench) == Outlook(due=4, later=2, leased=1, undecodable=3, postponed=1, oldest_due_ms=250)
    assert outlook(bench, LOW) == Outlook(due=1, later=1, leased=0, undecodable=0, postponed=0, oldest_due_ms=0)
    bench.clock.advance_ms(9_000)
    due = outlook(bench)
    assert (due.due, due.later, due.postponed) == (6, 0, 0)


def test_only_what_this_worker_may_run_counts_as_leased(bench: Bench) -> None:
    other = Kind("reports.build", 2)
    bench.dispatch(2, kind=other)
    bench.dispatch(3)
    assert len(bench.claim(kinds=frozenset({other, BUILD})).attempts) == 5
    assert outlook(bench).leased == 3
    assert outlook(bench, HIGH).leased == 0


def spend(bench: Bench, usage: Usage | None, application: str = APPLICATION) -> bytes:
    bench.dispatch(application=application)
    (attempt,) = bench.claim(application=application).attempts
    bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, usage=usage), JobState.SUCCEEDED)
    return attempt.job_id


def test_the_costliest_attempts_come_first(bench: Bench) -> None:
    small = spend(bench, Usage(cpu_user_us=10, cpu_system_us=1, rss_peak_bytes=900))
    large = spend(bench, Usage(cpu_user_us=70, cpu_system_us=20, rss_peak_bytes=100))
    partly = spend(bench, Usage(cpu_user_us=500, rss_peak_bytes=500))
    spend(bench, None)
    spend(bench, Usage(cpu_user_us=9_000, cpu_system_us=0), "bakery")
    by_cpu = bench.run(bench.store.costliest(APPLICATION, "cpu_us", 10))
    assert [run.job_id for run in by_cpu] == [large, small]
    assert (by_cpu[0].kind, by_cpu[0].number, by_cpu[0].outcome) == (BUILD, 1, "succeeded")
    assert by_cpu[0].usage.cpu_us == 90
    by_memory = bench.run(bench.store.costliest(APPLICATION, "rss_peak_bytes", 2))
    assert [run.job_id for run in by_memory] == [small, partly]


def test_runs_are_ranked_by_what_is_measured(bench: Bench) -> None:
    with pytest.raises(InvalidArgument, match="ranked by cpu_us or rss_peak_bytes, this is 'beauty'"):
        bench.store.costliest(APPLICATION, "beauty", 3)


def test_reading_changes_nothing(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    before = bench.job(job_id)
    outlook(bench)
    bench.run(bench.store.costliest(APPLICATION, "cpu_us", 3))
    assert bench.job(job_id) == before
