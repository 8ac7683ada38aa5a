"""A thousand finishes within 5 ms of the end of their leases, while another process recovers without pause.

All time is real. The leases of ten jobs at once end together, one ten after the other; their settlement is sent from
5 ms before that to 5 ms after it.
"""

import itertools
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from runwick.config.options import PostgresOptions, RedisOptions, SqliteOptions
from runwick.contracts.attempts import Attempt
from runwick.contracts.identity import id_bytes
from runwick.contracts.outcomes import Answer
from runwick.contracts.states import JobState
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.administer import PostgresAdministration
from runwick.stores.postgres.store import PostgresStore
from runwick.stores.redis import address as redis_address
from runwick.stores.redis.administer import RedisAdministration
from runwick.stores.redis.library import library
from runwick.stores.redis.store import RedisStore
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.store import SqliteStore
from scripts.servers.kept import SHARED_MEMORY
from tests.ambient import FakeClock, FakeDice
from tests.conformance.ground import APPLICATION, LONE, SUCCESS, Bench
from tests.redis.asking import execute
from tests.sqlite.processes import Child, Peer

BATCHES: Final = 100
AT_ONCE: Final = 10
OFFSETS_MS: Final = range(-5, 6)
APART_MS: Final = 20
LEAD_MS: Final = 1_500
"""How long all is claimed before the first lease ends."""
DICE: Final = FakeDice()
BLOCKS: Final = 2
"""How many blocks of the roster in Redis hold so many jobs."""


class RealTime(FakeClock):
    """The clock of a bench on which nobody moves time."""

    def now_ms(self) -> int:
        return SystemClock().now_ms()

    def steady_s(self) -> float:
        return SystemClock().steady_s()


class Ground(NamedTuple):
    bench: Bench
    lease_ends: Callable[[], dict[bytes, int]]
    """When each lease ends, by job id."""


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param != "sqlite":
        make, database = {"postgres": (_postgres, "database"), "redis": (_redis, "empty_redis")}[request.param]
        ground = make(request.getfixturevalue(database))
        yield ground
        ground.bench.store.close()
        return
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="runwick-kills-", dir=place) as folder:
        ground = _sqlite(Path(folder) / "jobs.db")
        yield ground
        ground.bench.store.close()


def _sqlite(path: Path) -> Ground:
    clock, ids = RealTime(), SystemIds()
    migrate(path, clock, ids)

    def opened() -> SqliteStore:
        return SqliteStore(path, options=SqliteOptions(), clock=clock, ids=ids)

    def lease_ends() -> dict[bytes, int]:
        connection = sqlite3.connect(path)
        try:
            return dict(connection.execute("SELECT job_id, lease_until_ms FROM runwick_hot").fetchall())
        finally:
            connection.close()

    return Ground(Bench("sqlite", opened(), clock, SqliteAdministration(path, clock, ids), opened), lease_ends)


def _postgres(url: str) -> Ground:
    clock, ids, address = RealTime(), SystemIds(), address_of(url)

    def opened() -> PostgresStore:
        return PostgresStore(address, options=PostgresOptions(), concurrent_calls=2, clock=clock, ids=ids)

    def lease_ends() -> dict[bytes, int]:
        with psycopg.connect(url) as connection:
            rows: Sequence[Any] = connection.execute("SELECT job, lease_until_ms FROM runwick.hot").fetchall()
        return {id_bytes(job): until_ms for job, until_ms in rows}

    return Ground(Bench("postgres", opened(), clock, PostgresAdministration(address, ids), opened), lease_ends)


def _redis(url: str) -> Ground:
    clock, ids, address = RealTime(), SystemIds(), redis_address.address_of(url)

    def opened() -> RedisStore:
        return RedisStore(address, options=RedisOptions(), concurrent_calls=2, clock=clock, ids=ids)

    def lease_ends() -> dict[bytes, int]:
        roster = b"".join(execute(url, "GET", f"rw:{{{APPLICATION}}}:d:{block}") or b"" for block in range(BLOCKS))
        leases = execute(url, "ZRANGE", f"rw:{{{APPLICATION}}}:leases", 0, -1, "WITHSCORES")
        return {roster[(int(job) - 1) * 32 :][:16]: int(until_ms) for job, until_ms in leases}

    return Ground(Bench("redis", opened(), clock, RedisAdministration(address, ids, library()), opened), lease_ends)


def claimed(bench: Bench) -> list[Sequence[Attempt]]:
    """Batches of running attempts that may begin once; their leases end one batch after the other."""
    bench.dispatch(BATCHES * AT_ONCE, policy=LONE)
    first_ms = bench.clock.now_ms() + LEAD_MS
    batches: list[Sequence[Attempt]] = []
    for number in range(BATCHES):
        lease_ms = max(1, first_ms + number * APART_MS - bench.clock.now_ms())
        batches.append(bench.claim(free=AT_ONCE, lease_ms=lease_ms).attempts)
    assert [len(batch) for batch in batches] == [AT_ONCE] * BATCHES
    return batches


def finish(bench: Bench, batches: Sequence[Sequence[Attempt]], ends_ms: Sequence[int], peer: Peer) -> None:
    """Settle each batch around the end of its leases; tells the answers by job id."""
    store = bench.another()
    store.check()
    peer.say("ready")
    answers: dict[str, str] = {}
    for attempts, end_ms, offset_ms in zip(batches, ends_ms, itertools.cycle(OFFSETS_MS)):
        while bench.clock.now_ms() < end_ms + offset_ms:
            time.sleep(0.0002)
        left = list(attempts)
        while left:
            told = store.run(store.settle([settle(attempt, SUCCESS, DICE) for attempt in left]))
            answers |= {attempt.job_id.hex(): str(answer) for attempt, answer in zip(left, told, strict=True)}
            left = [attempt for attempt in left if answers[attempt.job_id.hex()] == Answer.LOCKED]
    peer.say(answers)


def recover_on(bench: Bench, peer: Peer) -> None:
    """Recover without pause until told to end; tells how much was closed."""
    store = bench.another()
    store.check()
    peer.say("ready")
    closed = 0
    while peer.silent():
        closed += store.run(store.recover(APPLICATION, lambda attempt: recover(attempt, DICE), AT_ONCE))
    peer.say(closed)


def test_f055_around_the_end_of_a_lease_the_finish_or_the_recovery_counts_and_never_both(ground: Ground) -> None:
    bench = ground.bench
    batches = claimed(bench)
    by_job = ground.lease_ends()
    ends_ms = [by_job[batch[0].job_id] for batch in batches]
    with (
        Child(lambda peer: recover_on(bench, peer)) as recovery,
        Child(lambda peer: finish(bench, batches, ends_ms, peer)) as worker,
    ):
        assert recovery.hear() == worker.hear() == "ready"
        answers = {bytes.fromhex(job_id): answer for job_id, answer in worker.hear().items()}
        recovery.say("end")
        closed = recovery.hear()
    assert set(answers.values()) == {Answer.DONE, Answer.NOT_YOURS}, "nobody raced"
    assert closed == list(answers.values()).count(Answer.NOT_YOURS)
    finished, abandoned = (
        (JobState.SUCCEEDED, None, ["succeeded"]),
        (JobState.FAILED, "executions_exhausted", ["abandoned"]),
    )
    for job_id, answer in answers.items():
        job = bench.job(job_id)
        stands = job.state, job.code, [record.outcome for record in job.attempts]
        assert (stands, job.executions) == (finished if answer == Answer.DONE else abandoned, 1)
    assert len(answers) == BATCHES * AT_ONCE
    assert bench.claim().attempts == []
