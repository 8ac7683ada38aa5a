"""How the store takes work of one application."""

from typing import Final

import msgspec

from runwick.contracts.administration import Admission, Standing
from runwick.contracts.stores import Act
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls


class _Stands(msgspec.Struct, frozen=True, array_like=True):
    store_id: bytes
    revision: int
    admission: Admission
    capabilities: str


_stands: Final = msgspec.msgpack.Decoder(_Stands).decode


def standing(application: str) -> Act[Standing]:
    """Open and capable of nothing, where the application has not used the store yet."""
    return Act("standing", lambda: _standing(application), reads_only=True)


def _standing(application: str) -> Calls[Standing]:
    stands = _stands((yield Call("standing", application, packed.arguments())))
    return Standing(
        store_id=stands.store_id,
        revision=stands.revision,
        admission=stands.admission,
        capabilities=sorted(filter(None, stands.capabilities.split(","))),
    )
