"""What is Redis's own about ends, leases and tending: commands per batch, what is kept and what is forgotten."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis

from runwick.contracts.controls import ControlAction, SteerAction
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.limits import LimitKind
from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.stores.controls import LOOK_LASTS_MS
from runwick.stores.redis import packed
from runwick.stores.redis.lease import REMEMBERED_MS
from scripts.servers.redis import RedisServer
from tests.conformance.ground import (
    APPLICATION,
    HIGH,
    KINDS,
    LOW,
    MEDIUM,
    RECOVERY_MS,
    SUCCESS,
    USAGE,
    Bench,
    resource,
    unlike,
)
from tests.conformance.redis_places import RedisDatabase, timed_library
from tests.redis.asking import execute

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


@pytest.fixture
def client(place: RedisDatabase) -> "redis.Redis":
    client: redis.Redis = place.client
    return client


def commands(client: "redis.Redis") -> "Counter[str]":
    """How often each command was run so far."""
    stats: dict[str, Any] = client.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): one["calls"] for name, one in stats.items()})


def settlements_of(bench: Bench, usages: list[Usage | None]) -> list[Settlement]:
    """Successes of as many new jobs, which cost so much."""
    bench.dispatch(len(usages))
    attempts = [attempt for _ in range(0, len(usages), 100) for attempt in bench.claim().attempts]
    return [
        Settlement(attempt, Outcome(OutcomeKind.SUCCEEDED, usage=usage), JobState.SUCCEEDED)
        for attempt, usage in zip(attempts, usages, strict=True)
    ]


@pytest.mark.parametrize("usage", [None, USAGE], ids=["plain", "measured"])
def test_a_batch_runs_as_many_commands_as_one_job(bench: Bench, client: "redis.Redis", usage: Usage | None) -> None:
    filled = settlements_of(bench, [USAGE] * 130)  # so many that the costliest are known
    assert bench.run(bench.store.settle(filled)) == [Answer.DONE] * 130
    counted = []
    for size in (1, 100):
        settlements = settlements_of(bench, [usage] * size)
        before = commands(client)
        assert bench.run(bench.store.settle(settlements)) == [Answer.DONE] * size
        ran = commands(client) - before
        assert ran.pop("getrange", 0) == (size > 1)  # what stands between them in the roster
        counted.append(ran)
    assert counted[0] == counted[1]


def test_wherever_in_the_roster_jobs_stand_their_ends_are_written_there(bench: Bench) -> None:
    """Close together, far from each other, and on both sides of a block's end."""
    job_ids = bench.dispatch(530)
    attempts = {attempt.job_id: attempt for _ in range(6) for attempt in bench.claim().attempts}
    places = [*range(20, 40), *range(50, 80, 2), *range(100, 500, 50), 509, 511, 512, 513]
    for batch in (places[:30], places[30:], [0], [529]):
        settlements = [Settlement(attempts[job_ids[place]], SUCCESS, JobState.SUCCEEDED) for place in batch]
        assert bench.run(bench.store.settle(settlements)) == [Answer.DONE] * len(batch)
    succeeded = {job_ids[place] for place in (*places, 0, 529)}
    states = {job.job_id: job.state for job in bench.listed()}
    assert states == {job_id: JobState.SUCCEEDED if job_id in succeeded else JobState.RUNNING for job_id in job_ids}


def test_the_short_way_of_plain_jobs_writes_what_the_long_one_does(bench: Bench, client: "redis.Redis") -> None:
    bench.dispatch(2, tenant="north", metadata=b"{}")
    short, long = bench.claim().attempts
    mark = bench.marked(long)  # from now on it is no plain job
    outcome = Outcome(OutcomeKind.SUCCEEDED, result=b"[1]", usage=USAGE, begun_at_ms=mark.begun_at_ms)
    settlements = [Settlement(attempt, outcome, JobState.SUCCEEDED) for attempt in (short, long)]
    assert bench.run(bench.store.settle(settlements)) == [Answer.DONE] * 2
    records, values, events = [], [], []
    for attempt in (short, long):
        job = bench.job(attempt.job_id)
        (ended,) = job.attempts
        same = msgspec.structs.replace(ended, attempt_id=b"")
        records.append(msgspec.structs.replace(job, job_id=b"", attempts=[same]))
        value: Any = client.get(P.encode() + b"j:" + attempt.job_id)
        values.append(value[:-6].replace(attempt.job_id, b"").replace(attempt.attempt_id, b""))
        own = [event for event in bench.events() if event.job_id == attempt.job_id]
        events.append([msgspec.structs.replace(event, job_id=b"", attempt_id=None, cursor="") for event in own])
    assert records[0] == records[1]
    assert values[0] == values[1]
    assert events[0] == events[1]
    assert client.keys(P + "leases") == client.keys(P + "hot") == []
    assert client.exists(P + "leased") == 0


def test_a_batch_with_attempts_of_two_applications_is_answered_in_its_order(bench: Bench) -> None:
    attempts = []
    for application in ("bakery", APPLICATION, "bakery"):
        bench.dispatch(application=application)
        attempts += bench.claim(application=application).attempts
    assert bench.succeed(attempts[1]) is Answer.DONE
    stranger = unlike(attempts[1], attempt_id=bench.ids.ordered())
    other = bench.another()  # it has claimed nothing, so it does not know whose they are
    try:
        settlements = [
            Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in (attempts[0], stranger, attempts[2])
        ]
        assert other.run(other.settle(settlements)) == [Answer.DONE, Answer.NOT_YOURS, Answer.DONE]
    finally:
        other.close()


def test_as_many_of_the_costliest_are_kept_as_can_be_asked_for(bench: Bench, client: "redis.Redis") -> None:
    costs = [cost * 7_919 % 1_009 for cost in range(200)]  # in no order
    usages = [Usage(cpu_user_us=cost, cpu_system_us=0, rss_peak_bytes=2_000 - cost) for cost in costs]
    for first in range(0, 200, 40):
        bench.run(bench.store.settle(settlements_of(bench, list(usages[first : first + 40]))))
    assert (client.zcard(P + "costly:cpu"), client.zcard(P + "costly:rss")) == (128, 128)
    by_cpu = bench.run(bench.store.costliest(APPLICATION, "cpu_us", 200))
    by_rss = bench.run(bench.store.costliest(APPLICATION, "rss_peak_bytes", 200))
    assert [run.usage.cpu_us for run in by_cpu] == sorted(costs, reverse=True)[:128]
    assert [run.usage.cpu_us for run in by_rss] == sorted(costs)[:128]


@pytest.mark.parametrize("field", ["wall_us", "cpu_user_us", "rss_peak_bytes"])
def test_a_number_that_lua_could_not_hold_refuses_the_batch(bench: Bench, field: str) -> None:
    attempt = bench.claimed()
    usage = msgspec.structs.replace(USAGE, **{field: 2**53})
    with pytest.raises(SettlementRejected):
        bench.settle(attempt, Outcome(OutcomeKind.SUCCEEDED, usage=usage), JobState.SUCCEEDED)
    assert bench.succeed(attempt) is Answer.DONE


def test_the_store_knows_which_limits_have_a_line(bench: Bench, client: "redis.Redis") -> None:
    bench.dispatch(2, scopes=[resource("printer")])
    bench.dispatch(1, scopes=[resource("scanner")])
    assert client.zrange(P + "lined:limits", 0, -1) == []
    attempts = bench.claim().attempts
    printer = bench.scope("printer")
    assert client.zrange(P + "lined:limits", 0, -1) == [printer.id]
    for attempt in attempts:
        bench.succeed(attempt)
    bench.succeed(bench.claim().attempts[0])
    assert client.zrange(P + "lined:limits", 0, -1) == []


def test_a_worker_that_was_not_seen_for_a_day_is_forgotten(bench: Bench, client: "redis.Redis") -> None:
    bench.renew()
    bench.worker = bench.ids.ordered()
    bench.clock.advance_ms(REMEMBERED_MS - 1)
    bench.renew()
    assert client.hlen(P + "workers") == 2
    bench.clock.advance_ms(RECOVERY_MS)
    bench.renew()
    assert client.hkeys(P + "workers") == [bench.worker]


def test_what_is_asked_no_longer_is_not_looked_through_for_ever(bench: Bench, client: "redis.Redis") -> None:
    attempt = bench.claimed()
    bench.marked(attempt)
    bench.control(bench.order(ControlAction.LOOK, attempt.job_id))
    assert client.zrange(P + "looks:asked", 0, -1) == [attempt.attempt_id]
    bench.clock.advance_ms(LOOK_LASTS_MS)
    bench.renew()
    assert client.zcard(P + "looks:asked") == 0


@pytest.mark.parametrize("size", [10, 300, 64 * 1024])
def test_recovery_looks_at_attempts_without_their_payloads(bench: Bench, place: RedisDatabase, size: int) -> None:
    payload = b'"' + b"y" * (size - 2) + b'"'
    attempt = bench.claimed(payload=payload, metadata=b'{"a":"b"}')
    asked = packed.arguments(None, [1])
    answer = execute(place.url, "FCALL", timed_library().function("recover_look"), 1, P, b"", 0, asked)
    assert attempt.attempt_id in answer
    assert b'{"a":"b"}' in answer
    assert payload not in answer
    (shown,) = bench.recover(worker=bench.worker)
    assert shown == msgspec.structs.replace(attempt, payload=None)


def test_acts_that_find_nothing_write_nothing(bench: Bench, client: "redis.Redis") -> None:
    bench.claimed()
    before = client.hget(P + "meta", "writes")
    bench.recover()
    bench.tend()
    bench.run(bench.store.expire(APPLICATION, 10))
    assert client.hget(P + "meta", "writes") == before


def test_an_index_that_names_a_job_which_is_not_there_stops_nobody(bench: Bench, client: "redis.Redis") -> None:
    attempt = bench.claimed()
    for index in ("leases", "cancels", "expiry"):
        client.zadd(P + index, {"999": 1})
    assert bench.renew(attempt).lost == frozenset()
    assert bench.run(bench.store.expire(APPLICATION, 10)) == 0
    assert bench.recover() == []
    assert [shown.job for shown in bench.recover(worker=bench.worker)] == [attempt.job]


def test_a_dead_workers_attempts_are_found_among_many_of_others(bench: Bench) -> None:
    """In parts, those whose lease ends first in front."""
    bench.dispatch(9_100)
    others, dead = bench.worker, bench.ids.ordered()
    mine: list[bytes] = []
    for turn in range(91):
        bench.worker = dead if turn % 30 == 0 else others
        attempts = bench.claim(lease_ms=100_000 - turn).attempts
        assert len(attempts) == 100
        if bench.worker == dead:
            mine[:0] = [attempt.job_id for attempt in attempts]
    assert [attempt.job_id for attempt in bench.recover(limit=150, worker=dead)] == mine[:150]
    assert {attempt.job_id for attempt in bench.recover(limit=1_000, worker=dead)} == set(mine[150:])
    assert bench.recover(limit=1_000, worker=dead) == []


def test_of_many_that_end_at_once_some_are_recovered_at_a_time(bench: Bench) -> None:
    bench.dispatch(1_300)
    while bench.claim(lease_ms=1_000).attempts:
        pass
    bench.clock.advance_ms(1_000)
    recovered = [len(bench.recover(limit=500)) for _ in range(4)]
    assert recovered == [500, 500, 300, 0]


def test_what_one_act_does_not_call_is_called_by_who_tends(bench: Bench) -> None:
    bench.dispatch(2_400, scopes=(resource("printer", 1),))
    while bench.claim().parked:
        pass
    command = bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=5_000)
    assert bench.run(bench.store.steer(command)).code is None
    called = bench.run(bench.store.backlogs(APPLICATION))[0].due
    assert 1_024 <= called < 1_152
    bench.tend()
    bench.tend()
    assert bench.run(bench.store.backlogs(APPLICATION))[0].due == 2_399


def test_whoever_stands_in_a_line_is_not_due_while_the_clock_is_set_back(bench: Bench) -> None:
    bench.dispatch(3, scopes=(resource("printer", 1),))
    assert bench.claim().parked == 2
    bench.clock.advance_ms(-10)
    outlook = bench.run(bench.store.outlook(APPLICATION, [HIGH, MEDIUM, LOW], KINDS))
    assert (outlook.due, outlook.blocked, outlook.later) == (0, 0, 2)
    bench.clock.advance_ms(10)
    outlook = bench.run(bench.store.outlook(APPLICATION, [HIGH, MEDIUM, LOW], KINDS))
    assert (outlook.due, outlook.blocked, outlook.later) == (2, 2, 0)


def test_a_count_of_nothing_is_not_kept(bench: Bench, client: "redis.Redis") -> None:
    bench.dispatch(3)
    attempts = bench.claim().attempts
    assert client.hvals(P + "leased") == [b"3"]
    for attempt in attempts:
        bench.succeed(attempt)
    assert client.exists(P + "leased", P + "n:1:1") == 0
    assert client.hvals(P + "n:1:2") == [b"3"]
