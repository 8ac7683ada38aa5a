"""Which store this is, for acts whose cursors name it."""

from typing import Protocol

from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls


class Met(Protocol):
    """Who knows the store once it was met."""

    @property
    def store_id(self) -> bytes | None: ...


def identity(met: Met, application: str) -> Calls[bytes]:
    """The store's identity. Before the store was met, any question does that."""
    if met.store_id is None:
        yield Call("queues", application, packed.arguments())
    assert met.store_id is not None, "a store that has answered was met"
    return met.store_id
