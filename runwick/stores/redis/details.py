"""What is kept of an attempt beside its outcome. The store itself never looks into it."""

from typing import Final

import msgspec

from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail
from runwick.contracts.usage import Usage


class Detail(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All of it; kept where there is any."""

    usage: Usage | None = None
    error: ErrorDetail | None = None
    death: Death | None = None
    black_box: BlackBox | None = None


NOTHING: Final = Detail()
_read: Final = msgspec.msgpack.Decoder(Detail).decode


def detail_of(kept: bytes | None) -> Detail:
    """What was kept; nothing where nothing was, or where it cannot be read (any more)."""
    try:
        return NOTHING if kept is None else _read(kept)
    except msgspec.DecodeError:  # of another form as well
        return NOTHING
