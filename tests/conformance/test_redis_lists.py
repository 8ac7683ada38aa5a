"""Lists on Redis: few jobs among many, whatever else is there, and what one damaged value takes away."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from runwick.contracts.attempts import Lane
from runwick.contracts.controls import ControlAction
from runwick.contracts.listing import JobFilter, JobPage
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.revealing import Secret
from runwick.contracts.states import TERMINAL_STATES, JobState, Priority
from runwick.stores.redis import runs as runs_act
from tests.conformance.ground import APPLICATION, BUILD, FAILURE, HIGH, LOW, SEND, USAGE, Bench
from tests.conformance.redis_places import RedisDatabase

BLOCK = 512
PREFIX = "rw:{shop}:"


@pytest.fixture
def bench(redis_database: RedisDatabase) -> Iterator[Bench]:
    bench = redis_database.bench()
    yield bench
    bench.store.close()


@pytest.fixture
def values(redis_database: RedisDatabase) -> Any:
    """What the store keeps, beside the store."""
    return redis_database.client


def page(bench: Bench, limit: int = 100, **chosen: Any) -> JobPage:
    return bench.run(bench.store.jobs(APPLICATION, JobFilter(**chosen), None, None, limit))


def ids(jobs: JobPage) -> list[bytes]:
    return [job.job_id for job in jobs.jobs]


def many(bench: Bench, count: int) -> list[bytes]:
    """Jobs that wait and are claimed by nobody."""
    return [job_id for _ in range(count // 500) for job_id in bench.dispatch(500, lane=HIGH)]


def leave_out(values: Any, blocks: int) -> None:
    """Let the next job be numbered as if as many blocks of others were there."""
    values.hincrby(f"{PREFIX}meta", "jobs", blocks * BLOCK)


def test_few_jobs_among_many_are_on_the_first_page_whatever_is_asked_of_them(bench: Bench, values: Any) -> None:
    """So many lie between them that a walk over all would end its page before."""
    ended: list[bytes] = []
    for _ in range(5):
        ended += bench.dispatch(lane=LOW)
        leave_out(values, 300)
        bench.dispatch(lane=HIGH)
    bench.cancel(*ended[:2])
    for attempt in bench.claim(lanes=[LOW]).attempts:
        bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
    newest_first = ended[::-1]
    for found, chosen in (
        (newest_first, {"states": TERMINAL_STATES}),
        (newest_first, {"queue": LOW.queue, "states": TERMINAL_STATES}),
        (newest_first[:3], {"states": frozenset({JobState.FAILED})}),
        (newest_first[:3], {"states": TERMINAL_STATES, "code": "poison_job"}),
        (newest_first[3:], {"states": frozenset({JobState.CANCELLED, JobState.SUCCEEDED})}),
    ):
        jobs = page(bench, **chosen)
        assert (ids(jobs), jobs.cursor) == (found, None), chosen
    assert page(bench).cursor is not None


def test_a_queue_of_its_own_is_found_behind_many_others(bench: Bench, values: Any) -> None:
    (rare,) = bench.dispatch(lane=Lane("mails", Priority.LOW), kind=SEND)
    leave_out(values, 300)
    bench.dispatch(lane=HIGH)
    wishes: list[dict[str, Any]] = [{"queue": "mails"}, {"name": SEND.name}]
    for chosen in wishes:
        jobs = page(bench, **chosen)
        assert (ids(jobs), jobs.cursor) == ([rare], None), chosen


def test_busy_jobs_are_found_behind_many_that_wait(bench: Bench) -> None:
    running, retrying = bench.claimed(), bench.claimed()
    bench.retry(retrying, 60_000)
    many(bench, 12 * BLOCK)
    assert ids(page(bench, states=frozenset({JobState.RUNNING}))) == [running.job_id]
    assert ids(page(bench, states=frozenset({JobState.RETRYING}))) == [retrying.job_id]
    assert ids(page(bench, states=frozenset({JobState.RETRYING, JobState.RUNNING}))) == [
        retrying.job_id,
        running.job_id,
    ]


def test_ends_that_were_undone_fill_no_page(bench: Bench) -> None:
    attempts = [bench.claimed() for _ in range(10)]
    for attempt in attempts:
        bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
    bench.control(bench.order(ControlAction.RETRY, *(attempt.job_id for attempt in attempts[1:])))
    again = bench.claim().attempts
    for attempt in again:
        bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
    jobs = page(bench, limit=10, states=frozenset({JobState.FAILED}))
    expected = [attempt.job_id for attempt in (attempts[0], *again)][::-1]
    assert (ids(jobs), jobs.cursor) == (expected, None)


def test_a_job_that_cannot_be_read_hides_itself_alone(bench: Bench, values: Any) -> None:
    first, _, strange, last = bench.dispatch(4)
    values.hset(f"{PREFIX}hot", "2", b"\xdc")
    row = values.hget(f"{PREFIX}hot", "3")
    values.hset(f"{PREFIX}hot", "3", strange + b"\xff" * (len(row) - len(strange)))
    assert row.startswith(strange)
    assert ids(page(bench)) == ids(page(bench, states=frozenset({JobState.PENDING}))) == [last, first]
    assert ids(page(bench, code="nobodys")) == []


def test_an_ended_job_that_cannot_be_read_hides_itself_alone(bench: Bench, values: Any) -> None:
    attempts = [bench.claimed() for _ in range(3)]
    for attempt in attempts:
        bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
    first, broken, last = (attempt.job_id for attempt in attempts)
    key = f"{PREFIX}j:".encode() + broken
    values.set(key, values.get(key)[:-9])
    for chosen in ({}, {"states": frozenset({JobState.FAILED})}, {"code": "poison_job"}):
        assert ids(page(bench, **chosen)) == [last, first]
    found = bench.run(bench.store.runs(APPLICATION, None, None, 10))
    assert [run.job_id for run in found] == [last, first]
    assert len(bench.events()) == 9


def test_a_run_is_listed_without_a_detail_that_cannot_be_read(bench: Bench, values: Any) -> None:
    attempt = bench.claimed()
    bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, usage=USAGE), JobState.SUCCEEDED)
    (run,) = bench.run(bench.store.runs(APPLICATION, None, None, 10))
    assert run.usage == USAGE
    key = f"{PREFIX}j:".encode() + attempt.job_id
    kept = values.get(key)
    wall = msgspec.msgpack.encode(USAGE.wall_us)
    assert kept.count(wall) == 1
    values.set(key, kept.replace(wall, b"\xc3\xc3\xc3"))
    (run,) = bench.run(bench.store.runs(APPLICATION, None, None, 10))
    assert (run.job_id, run.outcome, run.usage) == (attempt.job_id, "succeeded", None)
    command = bench.showing(Secret.ERROR, attempt.job_id, attempt_id=attempt.attempt_id)
    assert bench.run(bench.store.reveal(command)) is not None


def test_the_runs_of_a_type_are_found_behind_those_of_a_busier_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_act, "_CALLS_MAX", 1)
    rare = bench.claimed(kind=SEND, lane=LOW)
    bench.retry(rare, 0)
    (again,) = bench.claim(lanes=[LOW]).attempts
    bench.succeed(again)
    for _ in range(6):
        bench.dispatch(100, kind=BUILD)
        for attempt in bench.claim().attempts:
            bench.succeed(attempt)
    found = bench.run(bench.store.runs(APPLICATION, SEND.name, None, 10))
    assert [(run.job_id, run.number, run.outcome) for run in found] == [
        (rare.job_id, 2, "succeeded"),
        (rare.job_id, 1, "failed"),
    ]


def test_the_last_runs_are_read_in_several_calls(bench: Bench) -> None:
    attempts = []
    for _ in range(3):
        bench.dispatch(100)
        attempts += bench.claim().attempts
    for attempt in attempts:
        bench.succeed(attempt)
    found = bench.run(bench.store.runs(APPLICATION, None, None, 250))
    assert [run.job_id for run in found] == [attempt.job_id for attempt in attempts[:-251:-1]]


def test_a_clock_that_was_set_back_shows_no_job_of_another_time(bench: Bench) -> None:
    early_ms = bench.clock.now_ms()
    bench.dispatch()
    bench.clock.advance_ms(-3_600_000)
    (second,) = bench.dispatch()
    assert ids(page(bench, created_until_ms=early_ms)) == [second]
    assert second not in ids(page(bench, created_from_ms=early_ms))
