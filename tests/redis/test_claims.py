"""What is Redis's own about claims: what they cost, the short way of plain jobs, and whose an attempt is."""

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from runwick.config.options import RedisOptions
from runwick.contracts.attempts import Attempt, Begun, Claim
from runwick.contracts.outcomes import Answer
from runwick.stores.redis.address import address_of
from runwick.stores.redis.library import Library
from runwick.stores.redis.store import RedisStore
from scripts.servers.redis import RedisServer
from tests.ambient import FakeIds
from tests.conformance.ground import APPLICATION, BUILD, LEASE_MS, SEND, Bench, ids_of, unlike
from tests.conformance.redis_places import RedisDatabase, timed_library

P = f"rw:{{{APPLICATION}}}:"
NO_SHORT_WAY = "\nfunction layout.plain() return nil end\n"


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
def client(place: RedisDatabase) -> Any:
    return place.client


def commands(client: Any) -> "Counter[str]":
    """How often each command was run so far."""
    stats: dict[str, Any] = client.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): one["calls"] for name, one in stats.items()})


def contents(client: Any) -> dict[bytes, Any]:
    """All that the application has, in an order that means something."""
    reads: dict[bytes, Any] = {
        b"hash": client.hgetall,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"set": client.smembers,
        b"string": client.get,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"stream": client.xrange,
    }
    return {key: reads[client.type(key)](key) for key in client.keys(P + "*")}


def test_a_claim_of_many_plain_jobs_runs_as_many_commands_as_one_of_one(bench: Bench, client: Any) -> None:
    counted = []
    for size in (1, 99):
        bench.dispatch(size)
        before = commands(client)
        assert len(bench.claim().attempts) == size
        counted.append(commands(client) - before)
    assert counted[0] == counted[1]


def test_a_claim_that_finds_nothing_writes_nothing(bench: Bench, client: Any) -> None:
    bench.dispatch(delay_ms=10)
    before = contents(client)
    assert bench.claim().next_due_in_ms == 10
    assert contents(client) == before


def test_the_short_way_of_plain_jobs_comes_to_the_same_as_the_long_one(place: RedisDatabase, client: Any) -> None:
    _, _, content = timed_library().text.split("\n", 2)
    bench = place.bench()
    jobs = [bench.command(kind=kind, tenant=tenant) for kind in (BUILD, SEND) for tenant in (None, "acme")]
    plan = bench.plan(free=3)
    bench.store.close()
    found: list[tuple[Claim, dict[bytes, Any]]] = []
    for functions in (Library(content), Library(content + NO_SHORT_WAY)):
        bench = place.bench()
        address, options, ids = address_of(place.url), RedisOptions(), FakeIds()
        store = RedisStore(
            address, options=options, concurrent_calls=1, clock=bench.clock, ids=ids, functions=functions
        )
        store.run(store.dispatch(jobs))
        found.append((store.run(store.claim(plan)), contents(client)))
        bench.store.close()
        store.close()
    assert len(found[0][0].attempts) == 3
    assert found[0] == found[1]


def test_jobs_of_several_kinds_come_in_the_order_of_their_bytes(bench: Bench) -> None:
    job_ids = [secrets.token_bytes(16) for _ in range(60)]
    bench.send(*(bench.command(job_id=job_id, kind=(BUILD, SEND)[n % 2]) for n, job_id in enumerate(job_ids)))
    first, second = bench.claim(free=7).attempts, bench.claim().attempts
    assert ids_of([*first, *second]) == sorted(job_ids)


def test_attempts_of_one_claim_have_ids_in_their_order(bench: Bench) -> None:
    for count in (100, 28):
        bench.dispatch(count)
    attempt_ids = [attempt.attempt_id for attempt in bench.claim(free=128).attempts]
    assert len(set(attempt_ids)) == 128
    assert attempt_ids == sorted(attempt_ids)
    assert all(len(attempt_id) == 16 for attempt_id in attempt_ids)


@pytest.mark.parametrize(("lease_ms", "kept_ms"), [(LEASE_MS, 600_000), (400_000, 800_000)])
def test_what_a_claim_took_is_known_for_as_long_as_it_may_be_sent_again(
    bench: Bench, client: Any, lease_ms: int, kept_ms: int
) -> None:
    bench.dispatch()
    bench.claim(lease_ms=lease_ms)
    (key,) = client.keys(P + "claim:*")
    assert kept_ms - 60_000 < client.pttl(key) <= kept_ms


def claimed(bench: Bench, application: str) -> Attempt:
    bench.dispatch(application=application)
    (attempt,) = bench.claim(application=application).attempts
    return attempt


def test_another_process_gives_back_attempts_of_several_applications(bench: Bench) -> None:
    attempts = [claimed(bench, application) for application in ("shop", "mill", "shop")]
    other = bench.another()
    try:
        assert other.run(other.release([attempts[1], attempts[0], attempts[1], attempts[2]])) == [
            Answer.DONE,
            Answer.DONE,
            Answer.NOT_YOURS,
            Answer.DONE,
        ]
    finally:
        other.close()
    assert len({attempt.job >> 40 for attempt in attempts}) == 2


def test_an_attempt_of_an_application_that_the_store_does_not_have_is_nobodys(bench: Bench) -> None:
    attempt = unlike(bench.claimed(), job=99 << 40 | 1)
    assert bench.release(attempt) == [Answer.NOT_YOURS]
    assert bench.begin(attempt) == Begun(None)


def test_a_lane_that_names_jobs_which_are_not_there_stops_nobody(bench: Bench, client: Any) -> None:
    (job_id,) = bench.dispatch()
    (lane,) = client.keys(P + "w:*")
    client.zadd(lane, {bytes([n]) * 16 + b"999": 1 for n in range(5)})
    assert ids_of(bench.claim(free=1).attempts) == [job_id]
