"""Runs with what they cost, how far behind each queue is, and the types that ever had a job."""

from runwick.contracts.attempts import Lane
from runwick.contracts.listing import COUNTED_MAX, Backlog, Reach, RunRecord, Within
from runwick.contracts.outcomes import Death, Outcome, OutcomeKind
from runwick.contracts.states import JobState, Priority
from tests.conformance.crowd import CRASH, KINDS, Crowd, gathered
from tests.conformance.ground import (
    APPLICATION,
    BUILD,
    FAILURE,
    HIGH,
    LARGE,
    LEASE_MS,
    LOW,
    SEND,
    USAGE,
    Bench,
    resource,
)


def runs(bench: Bench, name: str | None = None, within: Within = None, limit: int = 1_000) -> list[RunRecord]:
    return bench.run(bench.store.runs(APPLICATION, name, within, limit))


def backlogs(bench: Bench) -> list[Backlog]:
    return bench.run(bench.store.backlogs(APPLICATION))


def all_runs(bench: Bench, crowd: Crowd) -> list[RunRecord]:
    """Told from reading each job by itself and what happened; the latest first."""
    ended = [event.attempt_id for event in bench.events(limit=1_000) if event.attempt_id is not None]
    found = []
    for job in (bench.job(job_id) for job_id in crowd.job_ids):
        for attempt in job.attempts:
            record = RunRecord(
                job_id=job.job_id,
                generation=attempt.generation,
                number=attempt.number,
                kind=job.kind,
                queue=job.lane.queue,
                tenant=job.tenant,
                outcome=attempt.outcome,
                code=attempt.code,
                begun_at_ms=attempt.begun_at_ms,
                ended_at_ms=attempt.ended_at_ms,
                payload_bytes=job.payload_bytes,
                usage=attempt.usage,
                death=None if attempt.death is None else attempt.death.cause,
            )
            found.append((ended.index(attempt.attempt_id), record))
    return [record for _, record in sorted(found, key=lambda placed: -placed[0])]


def test_a_run_tells_what_it_cost_and_how_it_ended(bench: Bench) -> None:
    attempt = bench.claimed(tenant="north", payload=b'"1234"', lane=LOW)
    mark = bench.marked(attempt)
    bench.clock.advance_ms(70)
    outcome = Outcome(OutcomeKind.CRASHED, "executor_crashed", usage=USAGE, death=Death("out_of_memory", 9))
    bench.settle(attempt, outcome, JobState.FAILED, code="executions_exhausted")
    assert runs(bench) == [
        RunRecord(
            job_id=attempt.job_id,
            generation=1,
            number=1,
            kind=BUILD,
            queue=LOW.queue,
            tenant="north",
            outcome="crashed",
            code="executor_crashed",
            begun_at_ms=mark.begun_at_ms,
            ended_at_ms=bench.clock.now_ms(),
            payload_bytes=6,
            usage=USAGE,
            death="out_of_memory",
        )
    ]


def test_the_runs_that_ended_last_come_first(bench: Bench) -> None:
    crowd = gathered(bench)
    everything = all_runs(bench, crowd)
    assert len({run.outcome for run in everything}) >= 4
    assert runs(bench) == everything
    assert runs(bench, limit=5) == everything[:5]
    for name in (*{kind.name for kind in KINDS}, "nobodys"):
        assert runs(bench, name) == [run for run in everything if run.kind.name == name]
    within = [Reach(queues=frozenset({"reports"}), tenants=frozenset({None, "north"})), Reach(tenants=frozenset({"x"}))]
    seen = [run for run in everything if run.queue == "reports" and run.tenant in (None, "north")]
    assert 0 < len(seen) < len(everything)
    assert runs(bench, within=within) == seen
    assert runs(bench, within=within, limit=3) == seen[:3]
    for name in {kind.name for kind in KINDS}:
        assert runs(bench, name, within) == [run for run in seen if run.kind.name == name]
    assert runs(bench, within=[]) == runs(bench, BUILD.name, []) == []
    assert {run.job_id for run in bench.run(bench.store.runs("bakery", None, None, 100))}.isdisjoint(crowd.job_ids)
    assert bench.run(bench.store.runs("yard", None, None, 100)) == []
    assert bench.run(bench.store.runs("yard", BUILD.name, None, 100)) == []


def test_releases_and_attempts_that_never_began_are_no_runs(bench: Bench) -> None:
    released, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    bench.release(released)
    bench.clock.advance_ms(LEASE_MS)
    assert [attempt.job_id for attempt in bench.recover()] == [reserved.job_id]
    assert runs(bench) == runs(bench, BUILD.name) == []


def test_the_runs_of_a_type_are_found_behind_its_own_backlog(bench: Bench) -> None:
    ended = bench.claimed(kind=SEND)
    bench.settle(ended, CRASH, JobState.FAILED, code="executions_exhausted")
    bench.dispatch(100, kind=SEND)
    (run,) = runs(bench, SEND.name, limit=10)
    assert run.job_id == ended.job_id


def test_how_far_behind_each_queue_is(bench: Bench) -> None:
    start_ms = bench.clock.now_ms()
    mails = Lane("mails", Priority.LOW)
    for lane in (HIGH, LOW):
        bench.dispatch(3, lane=lane)
        bench.clock.advance_ms(5)
    bench.dispatch(2, lane=LOW, kind=SEND)
    bench.dispatch(2, lane=HIGH, delay_ms=60_000)
    bench.dispatch(3, lane=mails, scopes=(resource("provider"),))
    claim = bench.claim(lanes=[mails])
    assert claim.parked == 2
    bench.dispatch(lane=mails, delay_ms=60_000, application="bakery")
    first, second = bench.claim(lanes=[HIGH, LOW], free=2).attempts
    bench.succeed(first)
    bench.retry(second, 7_000)
    bench.claim(lanes=[HIGH], free=1)
    mail, report = backlogs(bench)
    assert mail == Backlog(queue="mails", due=0, later=0, blocked=2, leased=1, oldest_due_at_ms=None)
    assert report == Backlog(queue="reports", due=5, later=3, blocked=0, leased=1, oldest_due_at_ms=start_ms + 5)
    bench.clock.advance_ms(60_000)
    assert [(backlog.due, backlog.later) for backlog in backlogs(bench)] == [(0, 0), (8, 0)]
    assert bench.run(bench.store.backlogs("yard")) == []


def test_a_queue_whose_jobs_have_all_ended_is_not_behind(bench: Bench) -> None:
    bench.settle(bench.claimed(), FAILURE, JobState.FAILED, code="poison_job")
    bench.dispatch(lane=Lane("mails", Priority.LOW))
    assert [backlog.queue for backlog in backlogs(bench)] == ["mails"]


def test_a_paused_queue_is_behind_as_any_other(bench: Bench) -> None:
    bench.dispatch(2)
    bench.pause("reports")
    assert [(backlog.queue, backlog.due) for backlog in backlogs(bench)] == [("reports", 2)]


def test_counts_end_where_they_are_said_to(bench: Bench) -> None:
    half = COUNTED_MAX // 2 + 10
    bench.dispatch(half, lane=HIGH)
    bench.dispatch(half, lane=LOW)
    (backlog,) = backlogs(bench)
    assert backlog.due == COUNTED_MAX


def test_the_types_are_those_that_ever_had_a_job(bench: Bench) -> None:
    assert bench.run(bench.store.names(APPLICATION)) == []
    bench.run(bench.store.register(APPLICATION, [HIGH], frozenset({*KINDS})))
    assert bench.run(bench.store.names(APPLICATION)) == []
    bench.dispatch(kind=SEND)
    bench.cancel(*bench.dispatch(2, kind=BUILD))
    bench.dispatch(application="bakery", kind=KINDS[-1])
    assert bench.run(bench.store.names(APPLICATION)) == [SEND.name, BUILD.name]
    assert bench.run(bench.store.names("bakery")) == [KINDS[-1].name]
