"""What lies in a store's schema, compared with what the migrations of this release make of nothing.

The migrations are replayed into a schema of its own, inside a transaction that is rolled back, on the very server: so
both sides are read in its words, whatever its version. What somebody else put beside our tables is not ours to judge,
but what hangs on them is: an index, a trigger, a reference, a child table.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import psycopg

from runwick.stores.migrations import Migration
from runwick.stores.postgres.operating import Session, ask

SCHEMA: Final = "runwick"

_REPLAY: Final = "runwick_replay"


class Thing(NamedTuple):
    """One object of a schema."""

    home: str
    """The table or function that it is, or belongs to."""
    definition: str


Objects = dict[tuple[str, str], Thing]
"""By kind and name."""


def objects(connection: Session, schema: str = SCHEMA) -> Objects:
    """What a schema, which stands first in the session's search path, holds."""
    rows = ask(connection, "schema_objects", schema)
    return {(kind, name): Thing(home, definition) for kind, name, home, definition in rows}


def replayed(connection: Session, released: Sequence[Migration]) -> list[Objects]:
    """What the first 0, 1, 2, … of these migrations make of nothing."""
    made: list[Objects] = [{}]
    with connection.transaction():
        ask(connection, "replay_schema")
        for migration in released:
            connection.execute(migration.text.encode())
            made.append(objects(connection, _REPLAY))
        raise psycopg.Rollback
    return made


def differences(expected: Objects, found: Objects) -> list[str]:
    """What is missing, differs, or was hung on something of ours; of a missing table only the table itself."""
    homes = {thing.home for thing in expected.values()}
    ours = {key: thing for key, thing in found.items() if key in expected or thing.home in homes}
    wrong = [key for key in {**expected, **ours} if expected.get(key) != ours.get(key)]
    missing = {name for kind, name in wrong if kind == "table" and (kind, name) not in ours}
    return sorted(
        f"{kind} {name}"
        for kind, name in wrong
        if kind == "table" or ({**ours, **expected}[kind, name].home not in missing)
    )
