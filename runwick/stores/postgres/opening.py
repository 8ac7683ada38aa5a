"""How a connection to the store is opened: set up, examined, and compared with what is known of the store.

::

    connect ─▶ is the server fit? ─────────▶ is it a store of this release? ─▶ the same one, not gone back? ─▶ its time
               version, encoding, durability

No connection is used before; so a server that was replaced, restored or set unsafe is met here, after each loss of a
connection. Every refusal names the place without user or password, and says what to do.
"""

import math
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from runwick.config.options import PostgresOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.errors import RunwickError
from runwick.runtime.crossings import reach
from runwick.stores.postgres import faults
from runwick.stores.postgres.address import NETWORK, Address
from runwick.stores.postgres.connection import ADAPTERS, Connection, Row
from runwick.stores.postgres.history import History, Moment
from runwick.stores.postgres.revision import REVISION
from runwick.stores.postgres.server import Server, examine
from runwick.stores.postgres.statements import sql

_CONNECT_MIN_S: Final = 2
"""libpq waits at least so long for a connection."""

_SERVER_SHARE: Final = 0.9
"""Of a call's limit the server gets so much: it ends what takes longer, and says so, before the caller gives up."""

_MEASUREMENTS: Final = 3
_TRIP_MAX_MS: Final = 500
"""Where the answer took longer, or the own clock was set meanwhile, the server's time is read again a few times: half
of that would be the error."""

_SETTINGS: Final = {
    "lock_timeout": "0",
    "idle_session_timeout": "0",
    "default_transaction_isolation": r"read\ committed",
    "search_path": "runwick,pg_temp",
    "timezone": "UTC",
    "client_min_messages": "warning",
    "jit": "off",
    # Statements are written for one plan, which they get: by the index, whatever the statistics say of an empty table.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_sort": "off",  # before 17, a condition on the kind would cost a claim the order of its index
}
"""Of every session, over what is set for the role or the database. Durability is not: that is the operator's word."""


class Opening:
    """How one store object opens connections, and what it learned from the last one.

    Args:
        address: of the database.
        options: limits, and whether unsafe durability is accepted.
        clock: this process's, which is compared with the store's.
        history: what is known of the store.
    """

    def __init__(self, address: Address, options: PostgresOptions, clock: Clock, history: History) -> None:
        self.shown: Final = address.shown
        self.limit_s: Final = options.request_timeout.total_seconds()
        self.notes: tuple[str, ...] = ()
        """What the operator should know although nothing is refused."""
        self.is_unsafe = False
        """Whether it was found that confirmed work can be lost, which the operator accepts."""
        self.offset_ms = 0
        """The store's time less this process's."""
        self._allow_unsafe = options.allow_unsafe_durability
        self._clock = clock
        self._history = history
        given = conninfo_to_dict(address.conninfo).items()
        self._given = {name: str(value) for name, value in given if value is not None}

    def conninfo(self, purpose: str) -> str:
        """All that libpq needs, the password too. `purpose` is what the server shows of the connection."""
        limit_ms = self.limit_s * 1000
        settings = {"statement_timeout": f"{limit_ms * _SERVER_SHARE:.0f}", **_SETTINGS}
        fixed = {
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "client_encoding": "UTF8",
            "connect_timeout": str(max(_CONNECT_MIN_S, math.ceil(self.limit_s))),
        }
        return make_conninfo(**{**NETWORK, "application_name": purpose, **self._given, **fixed})

    @property
    def parameters(self) -> dict[str, Any]:
        """What psycopg needs besides."""
        return {"autocommit": True, "cursor_factory": psycopg.RawCursor, "context": ADAPTERS}

    def connect(self, purpose: str) -> Connection:
        """Open a connection.

        Raises:
            StoreError: there is none, or it is refused; the code says why.
        """
        try:
            connection = Connection.connect(self.conninfo(purpose), **self.parameters)
        except psycopg.Error as error:
            raise faults.unreachable(error, self.shown) from error
        try:
            self.examine(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def examine(self, connection: Connection) -> None:
        """Check all that could refuse an open connection, and learn from it.

        Raises:
            StoreError: with the code of what is wrong.
        """
        connection.limit_s = self.limit_s
        try:
            (facts,) = _ask(connection, "server")
            server = Server(*facts)
            notes = examine(server, self.shown, allow_unsafe_durability=self._allow_unsafe)
            full_page_writes = self._meet(connection)
        except psycopg.Error as error:
            raise self._meaning(error, connection) from error
        if full_page_writes == "off":
            notes += (f"{self.shown} has full_page_writes = off: a power failure can damage its tables; set it on",)
        self.is_unsafe = server.synchronous_commit == "off" or server.fsync == "off"
        self.notes = notes
        reach("postgres.opened")

    def check_revision(self, connection: Connection) -> None:
        """Go on only with a store of this release.

        Raises:
            StoreNotInstalled: there is none.
            StoreRevisionMismatch: it is of another release.
        """
        try:
            ((revision,),) = _ask(connection, "revision")
        except psycopg.errors.UndefinedTable:
            revision = None
        if revision is None:
            raise faults.not_installed(self.shown, "the database has no Runwick schema")
        if revision != REVISION:
            raise faults.revision_mismatch(revision, self.shown)

    def _meet(self, connection: Connection) -> str:
        """Meet the store; answers the server's setting of ``full_page_writes``."""
        for _ in range(_MEASUREMENTS):
            known_position = self._history.position
            before_ms = self._clock.now_ms()
            rows = _ask(connection, "opened")
            after_ms = self._clock.now_ms()
            if abs(after_ms - before_ms) <= _TRIP_MAX_MS:
                break
        if not rows:
            raise faults.not_installed(self.shown, "it has no identity")
        ((store_id, revision, now_ms, database, table, timeline, position, full_page_writes),) = rows
        if revision != REVISION:
            raise faults.revision_mismatch(revision, self.shown)
        self._history.go_on(Moment(store_id, (database, table), timeline, position), known_position)
        self.offset_ms = now_ms - (before_ms + after_ms) // 2
        return str(full_page_writes)

    def _meaning(self, error: psycopg.Error, connection: Connection) -> RunwickError:
        situation = faults.Situation("opening", self.shown, self.limit_s * 1000)
        if not connection.is_sound:
            return faults.unanswered(error, situation, writes=False, ran_out=connection.is_unanswered)
        if faults.is_about_schema(error):
            self.check_revision(connection)
        meant = faults.refused(error, situation)
        return meant if isinstance(meant, RunwickError) else faults.unreachable(error, self.shown)


def _ask(connection: Connection, statement: str) -> list[Row]:
    return connection.fetch(sql(statement).encode(), prepare=False)
