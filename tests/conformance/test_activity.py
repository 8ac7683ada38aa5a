"""Activity: who works here, what its executors do, and which runs have begun."""

import pytest

from runwick.contracts.activity import ExecutorActivity, Mark, WorkerRecord
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, Bench, unlike

DAY_MS = 24 * 3_600_000


def workers(bench: Bench, application: str = APPLICATION) -> list[WorkerRecord]:
    return bench.run(bench.store.workers(application))


def busy(bench: Bench, number: int = 1) -> ExecutorActivity:
    return ExecutorActivity(
        number=number,
        pool="main",
        phase="handle",
        process=4_000 + number,
        job_id=bench.ids.ordered(),
        attempt_id=bench.ids.ordered(),
        name="reports.build",
        begun_at_ms=bench.clock.now_ms(),
        cpu_us=1_500_000,
        rss_bytes=1 << 33,
        attempts=12,
        restarts=1,
        restarted_for="memory_soft",
    )


def test_a_worker_is_there_from_its_first_word_on(bench: Bench) -> None:
    assert workers(bench) == []
    bench.renew()
    at_ms = bench.clock.now_ms()
    assert workers(bench) == [
        WorkerRecord(presence=bench.presence(), seen_at_ms=at_ms, departed_at_ms=None, told_at_ms=None, executors=[])
    ]


def test_it_tells_what_its_executors_do_and_silence_means_no_change(bench: Bench) -> None:
    executors = [busy(bench), ExecutorActivity(number=2, pool="\u00fc", phase="idle")]
    bench.renew(executors=executors)
    told_at_ms = bench.clock.now_ms()
    bench.clock.advance_ms(900)
    bench.renew()
    (record,) = workers(bench)
    assert list(record.executors) == executors
    assert (record.told_at_ms, record.seen_at_ms) == (told_at_ms, told_at_ms + 900)
    bench.renew(executors=executors[1:])
    assert list(workers(bench)[0].executors) == executors[1:]
    bench.renew(executors=[])
    (record,) = workers(bench)
    assert (list(record.executors), record.told_at_ms) == ([], told_at_ms + 900)


def test_two_hundred_executors_are_told_in_one_call(bench: Bench) -> None:
    executors = [busy(bench, number) for number in range(200)]
    bench.renew(executors=executors)
    assert list(workers(bench)[0].executors) == executors


def test_of_more_than_a_store_keeps_those_that_run_something_are_kept(bench: Bench) -> None:
    idle = [ExecutorActivity(number=number, pool="main" * 20, phase="idle") for number in range(1_000)]
    running = [busy(bench, number) for number in range(1_000, 1_050)]
    bench.renew(executors=[*idle, *running])
    (record,) = workers(bench)
    assert list(record.executors)[: len(running)] == running
    assert 0 < len(record.executors) - len(running) < len(idle)


def test_the_latest_start_comes_first_and_applications_see_their_own(bench: Bench) -> None:
    names = [bench.ids.ordered() for _ in range(3)]
    for bench.worker in (names[1], names[0]):
        bench.renew()
    bench.worker = names[2]
    bench.renew(application="bakery")
    assert [record.presence.worker for record in workers(bench)] == [names[1], names[0]]
    assert [record.presence.worker for record in workers(bench, "bakery")] == [names[2]]
    assert workers(bench, "yard") == []


def test_a_good_bye_is_kept_and_the_first_one_counts(bench: Bench) -> None:
    bench.renew(executors=[busy(bench)])
    bench.clock.advance_ms(30)
    for _ in range(2):
        bench.run(bench.store.depart(bench.presence()))
        bench.clock.advance_ms(70)
    (record,) = workers(bench)
    assert (record.seen_at_ms, record.departed_at_ms) == (bench.clock.now_ms() - 140,) * 2


def test_a_good_bye_in_another_applications_name_ends_nothing(bench: Bench) -> None:
    bench.renew()
    bench.dispatch(application="bakery")
    bench.run(bench.store.depart(bench.presence("bakery")))
    (record,) = workers(bench)
    assert record.departed_at_ms is None


def test_after_a_day_it_is_forgotten(bench: Bench) -> None:
    bench.renew()
    bench.clock.advance_ms(DAY_MS - 1)
    assert len(workers(bench)) == 1
    bench.clock.advance_ms(2)
    assert workers(bench) == []


def test_a_job_says_who_holds_it_and_whether_it_has_begun(bench: Bench) -> None:
    attempt = bench.claimed()
    handed_over = bench.job(attempt.job_id)
    assert (handed_over.worker, handed_over.attempt_id) == (bench.worker, attempt.attempt_id)
    assert (handed_over.state, handed_over.begun_at_ms) == (JobState.RUNNING, None)
    bench.clock.advance_ms(30)
    mark = bench.marked(attempt)
    begun = bench.job(attempt.job_id)
    assert begun.begun_at_ms == mark.begun_at_ms
    assert begun.revision == handed_over.revision
    bench.succeed(attempt)
    ended = bench.job(attempt.job_id)
    assert (ended.worker, ended.attempt_id, ended.begun_at_ms) == (None, None, None)
    assert ended.attempts[0].worker == bench.worker


def test_a_mark_renews_no_lease_and_a_renewal_takes_no_mark(bench: Bench) -> None:
    bench.dispatch(3)
    marked, renewed, both = bench.claim().attempts
    at_ms = bench.clock.now_ms() - 4
    bench.clock.advance_ms(LEASE_MS - 1)
    marks = [Mark(attempt.job, attempt.claim_token, at_ms) for attempt in (marked, both)]
    assert bench.renew(renewed, both, marks=marks).lost == frozenset()
    begun = [bench.job(attempt.job_id).begun_at_ms for attempt in (marked, renewed, both)]
    assert begun == [at_ms, None, at_ms]
    bench.renew(renewed, both)
    assert bench.job(both.job_id).begun_at_ms == at_ms
    bench.clock.advance_ms(1)
    assert [attempt.job for attempt in bench.recover()] == [marked.job]


def test_a_mark_of_what_was_lost_changes_nothing(bench: Bench) -> None:
    bench.dispatch(4)
    released, settled, stranger, lapsed = bench.claim().attempts
    bench.release(released)
    bench.succeed(settled)
    bench.clock.advance_ms(LEASE_MS)
    (current,) = bench.claim(free=1).attempts
    attempts = [released, settled, unlike(stranger, claim_token=bench.ids.secret()), lapsed]
    before = [bench.job(attempt.job_id) for attempt in attempts]
    bench.renew(marks=[Mark(attempt.job, attempt.claim_token, 5) for attempt in attempts])
    assert [bench.job(attempt.job_id) for attempt in attempts] == before
    assert current.job == released.job


def test_a_mark_goes_with_its_attempt(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.marked(attempt)
    bench.release(attempt)
    (second,) = bench.claim().attempts
    assert bench.job(attempt.job_id).begun_at_ms is None
    bench.marked(second)
    bench.retry(second, 0)
    bench.claim()
    assert bench.job(attempt.job_id).begun_at_ms is None


def test_recovery_keeps_the_mark_of_whom_it_abandons(bench: Bench) -> None:
    attempt, other = bench.claimed(), bench.claimed(payload=LARGE)
    mark = bench.marked(attempt)
    bench.clock.advance_ms(LEASE_MS)
    assert len(bench.recover()) == 2
    (record,) = bench.job(attempt.job_id).attempts
    assert (record.begun_at_ms, record.worker) == (mark.begun_at_ms, bench.worker)
    assert list(bench.job(other.job_id).attempts) == []


@pytest.mark.parametrize("told_ms", [None, 1_700_000_000_000])
def test_a_settlement_tells_better_than_the_mark(bench: Bench, told_ms: int | None) -> None:
    attempt = bench.claimed()
    mark = bench.marked(attempt)
    bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, begun_at_ms=told_ms), JobState.SUCCEEDED)
    (record,) = bench.job(attempt.job_id).attempts
    assert record.begun_at_ms == (mark.begun_at_ms if told_ms is None else told_ms)


def test_marks_renewals_and_answers_go_together_in_one_call(bench: Bench) -> None:
    bench.dispatch(128)
    attempts = bench.claim().attempts
    marks = [Mark(attempt.job, attempt.claim_token, place) for place, attempt in enumerate(attempts) if place % 2]
    beat = bench.renew(*attempts, marks=marks, executors=[busy(bench)])
    assert beat.lost == beat.locked == frozenset()
    begun = [bench.job(attempt.job_id).begun_at_ms for attempt in attempts[:4]]
    assert begun == [None, 1, None, 3]
