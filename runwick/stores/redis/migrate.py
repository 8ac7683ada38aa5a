"""Makes a Redis database a store. The only part of Runwick that gives one its identity.

There are no tables, so there is little to bring::

    examine the server ─▶ give it the functions of this release ─▶ is there a store? ─▶ write its identity

The last two are one function: of several migrators one makes the store, and the others find it.
"""

from typing import Final

from runwick.contracts.administration import Capability
from runwick.contracts.ambient import Ids
from runwick.contracts.errors import MigrationError
from runwick.contracts.identity import id_text
from runwick.stores.migrations import MigrationResult
from runwick.stores.redis.address import Address
from runwick.stores.redis.library import Library
from runwick.stores.redis.operating import ANSWER_S, Session, session
from runwick.stores.redis.packed import binary
from runwick.stores.redis.profile import examine
from runwick.stores.redis.revision import REVISION

FIRST: Final = "0001_store"
"""What makes a store of a database, as a migration is called."""


def migrate(address: Address, ids: Ids, library: Library, *, answer_s: float = ANSWER_S) -> MigrationResult:
    """Create the store where there is none.

    Args:
        address: of the database.
        ids: gives a new store its identity.
        library: the functions.
        answer_s: how long one command may take.

    Raises:
        StoreError: the server is refused or cannot be reached; nothing was written.
        MigrationError: the database stays as it is; the code says why.
    """
    lost = MigrationError(
        "migration_connection_lost",
        f"the connection to {address.shown} was lost while it was migrated; it has a store or none; run it again",
    )
    with session(address, library, "migrate", lost, answer_s) as connected:
        fitness = examine(connected.connection.ask, address.shown)
        if fitness.fault is not None:
            raise fitness.fault
        return _migrated(connected, address, ids)


def _migrated(connected: Session, address: Address, ids: Ids) -> MigrationResult:
    found = connected.call("migrate", binary(ids.ordered()), ",".join(sorted(Capability)))
    if found.store_id is None or found.revision is None:
        raise MigrationError(
            "schema_validation_failed",
            f"{address.shown} has keys of a store and lacks its identity in rw:store; repair it, restore a backup or "
            "empty the database, then run again",
        )
    if found.revision != REVISION:
        raise MigrationError(
            "migration_unknown",
            f"{address.shown} has revision {found.revision}, this release knows {REVISION}: the store is newer; use "
            "the release that migrated it, or restore a backup",
        )
    return MigrationResult(id_text(found.store_id), REVISION, (FIRST,) if found.is_changed else ())
