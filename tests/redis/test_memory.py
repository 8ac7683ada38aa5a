"""What a job takes of the server's memory: with all that is kept of it, and the indexes by which it is found."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from runwick.contracts.outcomes import Answer, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from scripts.servers.redis import RedisServer
from tests.conformance.ground import USAGE, Bench
from tests.conformance.redis_places import RedisDatabase

if TYPE_CHECKING:
    import redis

JOBS: Final = 15_000
PAYLOAD: Final = b'"' + b"x" * 198 + b'"'
WAITING_MAX_BYTES: Final = 1_024
FINISHED_MAX_BYTES: Final = 600
ENDED: Final = Outcome(OutcomeKind.SUCCEEDED, usage=USAGE, begun_at_ms=1_750_000_000_000)


@pytest.fixture
def bench(redis_server: RedisServer) -> Iterator[Bench]:
    database = RedisDatabase(redis_server)
    bench = database.bench()
    yield bench
    bench.store.close()
    database.close()


@pytest.fixture
def client(redis_server: RedisServer) -> "Iterator[redis.Redis]":
    with redis_server.client() as client:
        yield client


def used_bytes(client: "redis.Redis") -> int:
    """What the server holds, without its interpreter: how much garbage that has is a matter of when it last collected,
    a megabyte more or less, and grows with no job."""
    found: Any = client.info("memory")
    return int(found["used_memory"]) - int(found["used_memory_vm_functions"])


def test_a_waiting_and_a_finished_job_take_little(bench: Bench, client: "redis.Redis") -> None:
    bench.dispatch(payload=PAYLOAD)
    before = used_bytes(client)
    for _ in range(JOBS // 100):
        bench.dispatch(100, payload=PAYLOAD)
    assert (used_bytes(client) - before) / JOBS <= WAITING_MAX_BYTES
    while attempts := bench.claim(free=128).attempts:
        settlements = [Settlement(attempt, ENDED, JobState.SUCCEEDED) for attempt in attempts]
        answers = bench.run(bench.store.settle(settlements))
        assert answers == [Answer.DONE] * len(attempts)
    assert (used_bytes(client) - before) / JOBS <= FINISHED_MAX_BYTES
