"""A database in which every act has something to do, as it is again after each spoiling, and what is in it."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from runwick.config.options import PostgresOptions
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.store import PostgresStore
from scripts.servers.postgres import PostgresServer
from tests.ambient import FakeClock
from tests.conformance.places import Database
from tests.faults.postgres_proxy import PostgresProxy
from tests.faults.sqlite_site import SameIds
from tests.faults.stage import Make, staged

State = dict[str, list[tuple[Any, ...]]]

_DRAWN: Final = {"position", "xid", "told_xid"}
"""Columns whose values a statement draws also when it is undone."""
_NAMES: Final = {"lane", "kind", "policy", "application"}
"""Tables whose numbers are drawn in the same way."""


class Site:
    """A database to spoil, reached through a proxy."""

    def __init__(self, server: PostgresServer, proxy: PostgresProxy) -> None:
        self.proxy: Final = proxy
        self._database = Database(server)
        bench = self._database.bench()
        self.stage = staged(bench)
        bench.store.close()
        self._connection = psycopg.connect(self._database.url, autocommit=True)
        self._columns: dict[str, list[str]] = dict(
            self._connection.execute(
                "SELECT table_name, array_agg(column_name::text ORDER BY ordinal_position) "
                "FROM information_schema.columns WHERE table_schema = 'runwick' GROUP BY table_name ORDER BY table_name"
            ).fetchall()
        )
        self._connection.execute("SET session_replication_role = replica; CREATE SCHEMA saved")
        for table in self._columns:
            self._connection.execute(f'CREATE TABLE saved."{table}" AS TABLE runwick."{table}"'.encode())

    def restore(self) -> None:
        """Make everything as it was."""
        statements = [
            f'DELETE FROM runwick."{table}"; '
            f'INSERT INTO runwick."{table}" OVERRIDING SYSTEM VALUE TABLE saved."{table}"'
            for table in self._columns
        ]
        self._connection.execute(f"BEGIN; {'; '.join(statements)}; COMMIT".encode())

    def store(self) -> PostgresStore:
        """Its store, through the proxy."""
        parts = urlsplit(self._database.url)
        behind = urlunsplit(parts._replace(netloc=parts.netloc.rpartition(":")[0] + f":{self.proxy.port}"))
        return PostgresStore(
            address_of(behind), options=PostgresOptions(), concurrent_calls=2, clock=FakeClock(), ids=SameIds()
        )

    def state(self) -> State:
        """All that is in the store, but for what is drawn and not written."""
        return {table: self._rows(table, columns) for table, columns in self._columns.items()}

    def _rows(self, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
        kept = [column for column in columns if column not in _DRAWN and not (table in _NAMES and column == "id")]
        # A claim of which nothing is held any more is swept away when somebody comes by.
        which = "WHERE token IN (SELECT claim FROM runwick.hot)" if table == "claim" else ""
        order = ", ".join(map(str, range(1, len(kept) + 1)))
        query = f'SELECT {", ".join(kept)} FROM runwick."{table}" {which} ORDER BY {order}'
        return self._connection.execute(query.encode()).fetchall()

    def close(self) -> None:
        self._connection.close()
        self._database.close()


@pytest.fixture(scope="module")
def site(postgres: PostgresServer) -> Iterator[Site]:
    with PostgresProxy(postgres.port) as proxy:
        site = Site(postgres, proxy)
        yield site
        site.close()


class Undisturbed(NamedTuple):
    """What an act does when nothing fails."""

    before: State
    first: Any
    """Its answer."""
    after: State
    second: Any
    """Its answer when it is sent again, which changes nothing."""


def undisturbed(site: Site, make: Make) -> Undisturbed:
    site.restore()
    before = site.state()
    store = site.store()
    first, after, second = store.run(make(store)), site.state(), store.run(make(store))
    assert site.state() == after
    store.close()
    return Undisturbed(before, first, after, second)
