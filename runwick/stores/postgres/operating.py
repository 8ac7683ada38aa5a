"""An operator's session: a connection of its own, opened for one thing, with the role that owns the schema.

What changes the ground under running acts happens while none of them runs. Acts that were let in keep the gate's tables
locked until they end, so an exclusive lock there is the proof. It is asked for in short tries, since every act that
comes while it is being waited for waits too::

    BEGIN ─▶ lock, at most 100 ms ─▶ change ─▶ COMMIT
      ▲            │ not in time
      └─ pause ◀── ROLLBACK (acts run on)         … until the patience is over: migration_lock_timeout
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from runwick.contracts.errors import MigrationError, RunwickError, StoreUnavailable
from runwick.stores.postgres import faults
from runwick.stores.postgres.address import NETWORK, Address
from runwick.stores.postgres.statements import sql

T = TypeVar("T")

CONNECT_S: Final = 10
ANSWER_S: Final = 30.0
"""How long one statement may take, where none is known to take long."""
LOCK_PATIENCE_S: Final = 5.0
"""How long the tries for the exclusive lock go on."""

_TRY_MS: Final = 100
_PAUSE_S: Final = 0.1


class Session(psycopg.Connection[tuple[Any, ...]]):
    """An operator's connection."""

    answer_s: float | None = None
    """How long one statement may take; None for as long as the network lives."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """psycopg's own way to wait, with a limit for what asks for none."""
        return super().wait(gen, interval, self.answer_s if timeout is None else timeout)


@contextlib.contextmanager
def session(address: Address, lost: RunwickError, answer_s: float | None = ANSWER_S) -> Iterator[Session]:
    """Connect, and close at the end.

    Args:
        address: of the database.
        lost: what it means when the connection breaks while it is used, or an answer does not come.
        answer_s: how long one statement may take; a migration may take as long as it needs.

    Raises:
        StoreUnavailable: it cannot be reached, or this role may not do what was asked.
    """
    try:
        connection = _connect(address)
    except psycopg.OperationalError as error:
        raise faults.unreachable(error, address.shown) from None
    with contextlib.closing(connection):
        try:
            connection.answer_s = answer_s
            ask(connection, "operator_settings")
            yield connection
        except psycopg.Error as error:
            if connection.closed or isinstance(error, errors._WaitTimeout):
                raise lost from error
            raise _refusal(error, address) from error


def _connect(address: Address) -> Session:
    given = conninfo_to_dict(address.conninfo)
    network = {name: value for name, value in NETWORK.items() if name not in given}
    return Session.connect(
        make_conninfo(address.conninfo, **network),
        autocommit=True,
        prepare_threshold=None,
        cursor_factory=psycopg.RawCursor,
        connect_timeout=CONNECT_S,
        client_encoding="UTF8",
        fallback_application_name="runwick operator",
    )


def ask(connection: Session, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Execute a named statement; answers its rows."""
    cursor = connection.execute(sql(statement).encode(), parameters or None)
    return cursor.fetchall() if cursor.description else []


def while_no_act_runs(connection: Session, change: Callable[[], T], patience_s: float) -> T:
    """Make a change in one transaction; every act that was let in before has ended, and later ones see the change.

    Raises:
        MigrationError: transactions of others did not end in time (code ``migration_lock_timeout``).
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with connection.transaction():
                ask(connection, "lock_patience", _TRY_MS)
                ask(connection, "lock_acts")
                return change()
        except (errors.LockNotAvailable, errors.DeadlockDetected):
            if time.monotonic() > deadline:
                raise MigrationError(
                    "migration_lock_timeout",
                    f"transactions that use the store have been open for more than {patience_s * 1000:.0f} ms; nothing "
                    "was changed, wait for them to end and run again",
                ) from None
        time.sleep(_PAUSE_S)


def _refusal(error: psycopg.Error, address: Address) -> StoreUnavailable:
    said = faults.first_line(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnavailable(
            "store_unavailable",
            f"this role may not do that on {address.shown} ({said}); use the role that migrates the store",
        )
    return StoreUnavailable("store_unavailable", f"{address.shown} refused ({said}); nothing was changed")
