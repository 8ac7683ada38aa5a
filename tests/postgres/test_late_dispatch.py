"""A dispatch that comes after its deadline while an earlier sending of it has not ended."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import CommandExpired
from runwick.contracts.identity import id_text
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.places import Database
from tests.postgres.asking import eventually

EARLIER = """
INSERT INTO runwick.job (id, operation_id, created_at_ms, application, lane, kind, policy, payload_bytes, payload)
SELECT %s, %s, 0, application, lane, kind, policy, payload_bytes, payload FROM runwick.job LIMIT 1
"""
WAITING = b"SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    database = Database(postgres)
    yield database
    database.close()


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    bench = database.bench()
    bench.dispatch()
    yield bench
    bench.store.close()


@pytest.mark.parametrize("commits", [True, False])
def test_the_answer_waits_for_the_earlier_sending(database: Database, bench: Bench, commits: bool) -> None:
    command = bench.command()
    act = bench.store.dispatch([command])
    with psycopg.connect(database.url) as earlier, ThreadPoolExecutor(1) as late:
        earlier.execute(EARLIER.encode(), (id_text(command.job_id), id_text(command.operation_id)))
        bench.clock.advance_ms(command.deadline_ms - bench.clock.now_ms() + 1)
        answer = late.submit(bench.store.run, act)
        with psycopg.connect(database.url, autocommit=True) as beside:
            eventually(lambda: beside.execute(WAITING).fetchone() is not None, "it waits")
        assert not answer.done()
        earlier.commit() if commits else earlier.rollback()
        if commits:
            assert [receipt.job for receipt in answer.result(10) if isinstance(receipt, Receipt)] == [command.job_id]
        else:
            with pytest.raises(CommandExpired):
                answer.result(10)
    there = bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is not None
    assert there == commits
