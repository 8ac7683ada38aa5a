"""Two roles: one migrates and administers, one does an application's work and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from runwick.config.options import PostgresOptions
from runwick.contracts.administration import Admission, Capability
from runwick.contracts.errors import StoreUnavailable
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.postgres import migrate
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.administer import PostgresAdministration
from runwick.stores.postgres.store import PostgresStore
from scripts.servers.postgres import PostgresServer
from tests.ambient import FakeClock
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.scene import ACTS, set_scene
from tests.postgres.asking import execute

GRANTS = Path(migrate.__file__).with_name("grants.sql")


@pytest.fixture
def clerk(postgres: PostgresServer, database: str) -> Iterator[str]:
    """The URL of a store for a role that has what the file grants, and nothing else."""
    postgres.execute("CREATE ROLE clerk LOGIN PASSWORD 'clerk'")
    try:
        execute(database, GRANTS.read_text().replace(':"role"', "clerk"))
        yield postgres.url(database.rpartition("/")[2], "clerk", "clerk")
    finally:
        execute(database, "DROP OWNED BY clerk; DROP ROLE clerk")


@pytest.fixture
def bench(clerk: str) -> Iterator[Bench]:
    def opened() -> PostgresStore:
        return PostgresStore(
            address_of(clerk), options=PostgresOptions(), concurrent_calls=8, clock=SystemClock(), ids=SystemIds()
        )

    clock = FakeClock(SystemClock().now_ms())
    bench = Bench("postgres", opened(), clock, PostgresAdministration(address_of(clerk), SystemIds()), opened)
    yield bench
    bench.store.close()


def test_the_runtime_role_can_do_every_act(bench: Bench) -> None:
    scene = set_scene(bench)
    for act in ACTS.values():
        bench.run(act(bench, scene))
    assert [status.name for status in bench.administration.status().applications] == [APPLICATION]


def test_the_runtime_role_cannot_change_the_store(bench: Bench, clerk: str) -> None:
    bench.dispatch()
    store = bench.administration
    before = store.status()
    for forbidden in (
        lambda: migrate.migrate(address_of(clerk), SystemClock(), SystemIds()),
        lambda: store.set_admission(Admission.DRAIN, None),
        lambda: store.activate(Capability.SCHEDULER, APPLICATION, "clerk"),
        lambda: store.reidentify(),
    ):
        with pytest.raises(StoreUnavailable, match="this role may not"):
            forbidden()
    assert store.status() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runwick.store SET id = gen_random_uuid()",
        "DELETE FROM runwick.migration",
        "UPDATE runwick.application SET admission = 'open'",
        "UPDATE runwick.audit SET actor = 'somebody'",
        "DELETE FROM runwick.audit",
        "UPDATE runwick.command SET reply = '[]'",
        "TRUNCATE runwick.job",
        "CREATE TABLE runwick.mine ()",
        "ALTER TABLE runwick.job ADD COLUMN mine text",
    ],
)
def test_the_runtime_role_is_refused_by_the_server(clerk: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(clerk, statement)


def test_the_grants_hold_for_tables_that_come_later(clerk: str, database: str) -> None:
    execute(database, "CREATE TABLE runwick.later (id bigint GENERATED ALWAYS AS IDENTITY, name text)")
    execute(clerk, "INSERT INTO runwick.later (name) VALUES ('one')")
    assert execute(clerk, "SELECT name FROM runwick.later") == [("one",)]
