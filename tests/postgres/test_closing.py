"""Closing a store beside calls that are under way."""

from collections.abc import Iterator

import pytest

from runwick.contracts.dispatching import Receipt
from runwick.runtime.crossings import on
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.places import Database


@pytest.fixture
def bench(postgres: PostgresServer) -> Iterator[Bench]:
    database = Database(postgres)
    bench = database.bench()
    yield bench
    bench.store.close()
    database.close()


def test_a_dispatch_gets_its_receipt_although_the_store_was_closed_and_opened_meanwhile(bench: Bench) -> None:
    (before,) = bench.dispatch()
    command = bench.command()
    closed: list[bool] = []

    def close_and_open() -> None:
        if not closed:
            closed.append(True)
            bench.store.close()
            bench.run(bench.store.job(APPLICATION, before))

    remove = on("postgres.answered", close_and_open)
    try:
        (receipt,) = bench.run(bench.store.dispatch([command]))
    finally:
        remove()
    assert closed
    assert isinstance(receipt, Receipt)
    assert receipt.job == command.job_id
    assert len(bench.claim().attempts) == 2
