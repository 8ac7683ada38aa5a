"""Where the suite keeps PostgreSQL stores: one database whose time a test moves, emptied for each bench."""

from typing import Final

import psycopg

from runwick.config.options import PostgresOptions
from runwick.contracts.administration import Capability
from runwick.contracts.identity import id_text
from runwick.runtime.ambient import SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.administer import PostgresAdministration
from runwick.stores.postgres.store import PostgresStore
from scripts.servers.postgres import PostgresServer
from tests.ambient import FakeClock
from tests.conformance.ground import Bench
from tests.servers import fresh_database

_TIME_OF_THE_TEST: Final = b"""
CREATE TABLE public.test_time (now_ms bigint NOT NULL);
INSERT INTO public.test_time VALUES (0);
CREATE OR REPLACE FUNCTION runwick.now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT now_ms FROM public.test_time';
"""
_FILLED: Final = """
runwick.store, runwick.application, runwick.lane, runwick.kind, runwick.policy, runwick.job, runwick.hot,
  runwick.claim, runwick.attempt, runwick.closing, runwick.detail, runwick.worker, runwick.recovery, runwick.audit,
  runwick.command, runwick.activity, runwick.look, runwick.uniqueness, runwick.reused, runwick.scope, runwick.hold,
  runwick.rate_window, runwick.rate_grant, runwick.pause, runwick.intake
"""
_DELETIONS: Final = "; ".join(f"DELETE FROM {table}" for table in _FILLED.split(","))
_EMPTY: Final = f"SET session_replication_role = replica; {_DELETIONS}; SET session_replication_role = origin".encode()
"""In any order, without asking for references. Of tables so small it costs a twentieth of TRUNCATE."""


class Database:
    """A migrated database, to be closed. One bench at a time is in it; emptying costs less than making a new one."""

    def __init__(self, server: PostgresServer) -> None:
        self.url: Final = fresh_database(server)
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute(_TIME_OF_THE_TEST)

    def bench(self) -> Bench:
        """An empty store; `Bench.store` is to be closed."""
        clock, ids = _DatabaseClock(self._connection), SystemIds()
        address = address_of(self.url)
        self._connection.execute(_EMPTY)
        self._connection.execute(
            "INSERT INTO runwick.store (id, created_at_ms, capabilities_from_start) VALUES (%s, %s, %s)",
            (id_text(ids.ordered()), clock.now_ms(), [*Capability]),
        )

        def opened() -> PostgresStore:
            return PostgresStore(address, options=PostgresOptions(), concurrent_calls=2, clock=clock, ids=ids)

        def take_capabilities() -> None:
            self.execute("UPDATE runwick.application SET capabilities = '{}'")

        return Bench("postgres", opened(), clock, PostgresAdministration(address, ids), opened, take_capabilities)

    def execute(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        """Execute beside the store; answers the rows."""
        cursor = self._connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._connection.close()


class _DatabaseClock(FakeClock):
    """A clock that moves the database's time too."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        super().__init__()
        self._connection = connection
        self.advance_ms(0)

    def advance_ms(self, milliseconds: int) -> None:
        super().advance_ms(milliseconds)
        self._connection.execute("UPDATE public.test_time SET now_ms = %s", (self.now_ms(),))
