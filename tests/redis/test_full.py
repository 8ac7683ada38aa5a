"""What the store knows by numbers: where there are no more, it refuses at once, and what runs can still end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import StoreError
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from scripts.servers.redis import RedisServer
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.redis_places import RedisDatabase
from tests.redis.asking import contents
from tests.redis.recount import asked, extended

P = f"rw:{{{APPLICATION}}}:"


@pytest.fixture(scope="module")
def place(redis_server: RedisServer) -> Iterator[RedisDatabase]:
    place = RedisDatabase(redis_server)
    yield place
    place.close()


@pytest.fixture
def bench(place: RedisDatabase) -> Iterator[Bench]:
    bench = place.bench()
    yield bench
    bench.store.close()


def fill(place: RedisDatabase, key: str, count: int) -> None:
    """As if so many texts had been given numbers."""
    known = place.client.hlen(key)
    place.client.hset(key, mapping={f"text {number}": number for number in range(known + 1, count + 1)})


@pytest.mark.parametrize(
    ("numbered", "changes", "said"),
    [
        ("K", {"kind": Kind("reports.other", 1)}, "65,535 job types"),
        ("L", {"lane": Lane("other", Priority.LOW)}, "65,535 lanes"),
        ("P", {"policy": JobPolicy(max_executions=77)}, "65,535 retry settings"),
    ],
)
def test_where_there_are_no_more_numbers_nothing_is_written(
    place: RedisDatabase, bench: Bench, numbered: str, changes: dict[str, object], said: str
) -> None:
    bench.dispatch()
    fill(place, f"{P}ids:{numbered}", 65_535)
    before = contents(place.url)
    with pytest.raises(StoreError, match=said) as refused:
        bench.run(bench.store.dispatch([bench.command(), bench.command(**changes)]))
    assert refused.value.code == "store_full"
    assert "nothing was written" in refused.value.message
    assert contents(place.url) == before
    bench.dispatch()  # what is known goes on
    assert len(bench.claim().attempts) == 2


def test_the_last_number_is_given(place: RedisDatabase, bench: Bench) -> None:
    bench.dispatch()
    fill(place, f"{P}ids:K", 65_534)
    (job_id,) = bench.dispatch(kind=Kind("reports.last", 1))
    assert bench.job(job_id).kind == Kind("reports.last", 1)
    (attempt,) = bench.claim(kinds=frozenset({Kind("reports.last", 1)})).attempts
    assert attempt.kind == Kind("reports.last", 1)


def test_applications_are_refused_before_their_jobs_numbers_overlap(place: RedisDatabase, bench: Bench) -> None:
    fill(place, "rw:applications", 8_191)
    before = contents(place.url)
    with pytest.raises(StoreError, match="keeps 8,191 applications"):
        bench.run(bench.store.dispatch([bench.command()]))
    assert contents(place.url) == before


def test_jobs_of_the_last_application_are_told_apart(place: RedisDatabase, bench: Bench) -> None:
    fill(place, "rw:applications", 8_190)
    place.client.hset(f"{P}meta", "jobs", 2**40 - 5)
    bench.dispatch(4)
    attempts = bench.claim().attempts
    assert len({attempt.job for attempt in attempts}) == 4
    assert [bench.succeed(attempt) for attempt in attempts] == [Answer.DONE] * 4


def test_an_attempt_ends_although_no_code_is_kept_any_more(place: RedisDatabase, bench: Bench) -> None:
    first, second = bench.claimed(), bench.claimed()
    fill(place, f"{P}ids:C", 65_534)
    for attempt, code in ((first, "order_1_missing"), (second, "order_2_missing")):
        outcome = Outcome(OutcomeKind.FAILED, code=code)
        assert bench.settle(attempt, outcome, JobState.FAILED, code=code) is Answer.DONE
        job = bench.job(attempt.job_id)
        assert (job.state, job.code, job.attempts[0].code) == (JobState.FAILED, "code_not_kept", "code_not_kept")
    assert place.client.hlen(f"{P}ids:C") == 65_535


@pytest.mark.parametrize("count", [0, 1, 9_000])
def test_more_attempts_of_a_job_are_read_than_luas_stack_holds(redis_server: RedisServer, count: int) -> None:
    functions = extended(Path(__file__).with_name("attempts.lua"))
    assert asked(redis_server, functions, "attempts", count) == count
