"""Many different jobs in all their states, and what a list of them must show, told from reading each job by itself."""

import itertools
import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.controls import ControlAction
from runwick.contracts.history import EventKind
from runwick.contracts.listing import JobFilter, JobSummary, Within
from runwick.contracts.outcomes import Death, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import JobRecord
from tests.conformance.ground import BUILD, FAILURE, HIGH, LARGE, LOW, SEND, USAGE, Bench, resource

POST: Final = Lane("post", Priority.MEDIUM)
BUILD_2: Final = Kind(BUILD.name, 2)
DRAW: Final = Kind("reports.draw", 1)
KINDS: Final = (BUILD, BUILD_2, SEND, DRAW)
LANES: Final = (HIGH, LOW, POST)
TENANTS: Final = (None, None, "north", "south")
CRASH: Final = Outcome(
    OutcomeKind.CRASHED, "executor_crashed", death=Death("signal", 9), usage=USAGE, error=ErrorDetail("signal", "9")
)


class Crowd(NamedTuple):
    """What is in the store; ids in the order in which the jobs were created."""

    job_ids: list[bytes]
    begun_at_ms: int
    """When the first of them was created."""


def gathered(bench: Bench, jobs: int = 60, seed: int = 7) -> Crowd:
    """Fill an empty store with jobs of two applications. Every state, walk and order of a list has some of them."""
    dice = random.Random(seed)
    begun_at_ms = bench.clock.now_ms()
    job_ids: list[bytes] = []
    for number in range(jobs):
        bench.clock.advance_ms(dice.choice((0, 3)))
        job_ids += bench.dispatch(
            kind=dice.choice(KINDS),
            lane=dice.choice(LANES),
            tenant=dice.choice(TENANTS),
            payload=LARGE if number % 10 == 0 else b"%d" % number,
            policy=JobPolicy(max_executions=dice.choice((1, 3))),
            delay_ms=9_000 if number % 9 == 0 else None,
            scopes=(resource("scanner"),) if number % 11 == 0 else (),
        )
        bench.dispatch(application="bakery", lane=HIGH, tenant="north")
        if number % 4 == 3:
            _work(bench, dice)
    _work(bench, dice)
    return Crowd(job_ids, begun_at_ms)


def _work(bench: Bench, dice: random.Random) -> None:
    """Claim a few, and let most of those end in different ways; now and then an operator acts."""
    claim = bench.claim(lanes=dice.sample(LANES, 3), kinds=frozenset(KINDS), free=4)
    for attempt in claim.attempts:
        bench.clock.advance_ms(dice.choice((0, 1)))
        if attempt.begun:
            _end(bench, dice, attempt)
        elif dice.random() < 0.3:
            bench.release(attempt)
    ended = [job for job in bench.listed() if job.state.terminal]
    for job in dice.sample(ended, len(ended) // 5):
        rerun = job.state is JobState.SUCCEEDED
        bench.control(bench.order(ControlAction.RERUN if rerun else ControlAction.RETRY, job.job_id))
    bench.run(bench.store.claim(bench.plan(application="bakery", lanes=[HIGH], free=1)))


def _end(bench: Bench, dice: random.Random, attempt: Attempt) -> None:
    match dice.randrange(7):
        case 0:
            bench.succeed(attempt)
        case 1:
            bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
        case 2:
            bench.settle(attempt, CRASH, JobState.FAILED, code="executions_exhausted")
        case 3:
            bench.retry(attempt, dice.choice((0, 5_000)))
        case 4:
            bench.settle(attempt, Outcome(OutcomeKind.CANCELLED, "stop"), JobState.CANCELLED, code="stop")
        case 5:
            bench.marked(attempt)
            bench.cancel(attempt.job_id)
        case 6:
            bench.marked(attempt)


def summary_of(job: JobRecord) -> JobSummary:
    """What a list shows of a job."""
    return JobSummary(
        job_id=job.job_id,
        kind=job.kind,
        lane=job.lane,
        state=job.state,
        code=job.code,
        generation=job.generation,
        revision=job.revision,
        executions=job.executions,
        max_executions=job.max_executions,
        created_at_ms=job.created_at_ms,
        due_at_ms=job.due_at_ms,
        begun_at_ms=job.begun_at_ms,
        ended_at_ms=job.ended_at_ms,
        cancel_requested_at_ms=job.cancel_requested_at_ms,
        tenant=job.tenant,
        payload_bytes=job.payload_bytes,
    )


def newest_first(bench: Bench, crowd: Crowd) -> list[JobSummary]:
    """All jobs, the latest created first."""
    return [summary_of(bench.job(job_id)) for job_id in reversed(crowd.job_ids)]


def ended_last_first(bench: Bench, jobs: Sequence[JobSummary]) -> list[JobSummary]:
    """These jobs, the one that ended last first."""
    ends = (event.job_id for event in bench.events(limit=1_000) if event.what is EventKind.JOB_ENDED)
    last = {job_id: place for place, job_id in enumerate(ends)}
    return sorted(jobs, key=lambda job: last[job.job_id], reverse=True)


def is_chosen(job: JobSummary, chosen: JobFilter, within: Within) -> bool:
    """Whether a list with that filter shows the job to somebody who may see that much."""
    wishes = (
        (chosen.states, chosen.states is not None and job.state in chosen.states),
        (chosen.queue, job.lane.queue == chosen.queue),
        (chosen.name, job.kind.name == chosen.name),
        (chosen.tenant, job.tenant == chosen.tenant),
        (chosen.code, job.code == chosen.code),
        (chosen.created_from_ms, chosen.created_from_ms is not None and job.created_at_ms >= chosen.created_from_ms),
        (chosen.created_until_ms, chosen.created_until_ms is not None and job.created_at_ms < chosen.created_until_ms),
    )
    reached = within is None or any(
        (reach.queues is None or job.lane.queue in reach.queues)
        and (reach.tenants is None or job.tenant in reach.tenants)
        for reach in within
    )
    return reached and all(fits for wish, fits in wishes if wish is not None)


def expected(bench: Bench, everything: Sequence[JobSummary], chosen: JobFilter, within: Within) -> list[JobSummary]:
    """What a list shows, in its order, of all jobs, which come the latest created first."""
    found = [job for job in everything if is_chosen(job, chosen, within)]
    by_end = chosen.states is not None and sorted(chosen.states) in ([JobState.FAILED], [JobState.CANCELLED])
    return ended_last_first(bench, found) if by_end else found


def pairs(limit: int) -> list[tuple[JobState, ...]]:
    """Every choice of up to that many states."""
    return [states for many in range(1, limit + 1) for states in itertools.combinations(JobState, many)]
