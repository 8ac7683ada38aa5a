"""How values travel to the functions and back: MessagePack, as Redis's own reader of it understands it.

It knows no ``bin``, only ``str`` of any bytes, which msgspec writes for text alone. So bytes are given a header here.
Lanes, kinds and retry settings travel as texts, which the store keeps once; its answers name them by numbers, and end
with what those mean: the `Legend`.
"""

import functools
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import LimitKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from runwick.policy.lanes import RANK
from runwick.policy.limit_ids import ID_BYTES, scope_id

_FIX_MAX: Final = 31
_encode: Final = msgspec.msgpack.Encoder().encode


def binary(value: bytes) -> msgspec.Raw:
    """Bytes as a value inside of arguments, or of anything else that `arguments` packs."""
    size = len(value)
    if size <= _FIX_MAX:
        header = bytes((0xA0 | size,))
    elif size < 1 << 8:
        header = bytes((0xD9, size))
    elif size < 1 << 16:
        header = b"\xda" + size.to_bytes(2, "big")
    else:
        header = b"\xdb" + size.to_bytes(4, "big")
    return msgspec.Raw(header + value)


def optional_binary(value: bytes | None) -> msgspec.Raw | None:
    """The same for what may not be there."""
    return None if value is None else binary(value)


def arguments(*values: Any) -> bytes:
    """A function's arguments as one packed list: text, numbers, booleans, None, lists of them, and what `binary`
    made."""
    return _encode(values)


STATES: Final = dict(enumerate(JobState, 1))
"""By the numbers under which the store knows them…"""
STATE_NUMBERS: Final = {state: number for number, state in STATES.items()}
"""… and the other way round."""

LegendRows = Sequence[Sequence[tuple[int, bytes]]]
"""A legend as it is answered: numbers and texts of lanes, kinds, tenants, codes and retry settings."""

_PRIORITIES: Final = {rank: priority for priority, rank in RANK.items()}
_CACHED: Final = 4096
_policy: Final = msgspec.msgpack.Decoder(JobPolicy).decode


@functools.lru_cache(_CACHED)
def lane_text(application: str, lane: Lane) -> msgspec.Raw:
    """A lane as a value inside of arguments: the id of its queue's scope, its rank, the queue."""
    tail = f"{RANK[lane.priority]}{lane.queue}".encode()
    return binary(scope_id(application, LimitKind.QUEUE, lane.queue) + tail)


@functools.lru_cache(_CACHED)
def kind_text(application: str, kind: Kind) -> msgspec.Raw:
    """A kind as a value inside of arguments: the id of its type's scope, its version, a colon, its name."""
    return binary(scope_id(application, LimitKind.JOB_TYPE, kind.name) + f"{kind.version}:{kind.name}".encode())


@functools.lru_cache(_CACHED)
def policy_text(policy: JobPolicy) -> msgspec.Raw:
    """Retry settings as a value inside of arguments."""
    return binary(_encode(policy))


@functools.lru_cache(_CACHED)
def lane_of(text: bytes) -> Lane:
    """What `lane_text` was made of."""
    rest = text[ID_BYTES:].decode()
    return Lane(rest[1:], _PRIORITIES[int(rest[0])])


@functools.lru_cache(_CACHED)
def kind_of(text: bytes) -> Kind:
    """What `kind_text` was made of."""
    version, _, name = text[ID_BYTES:].decode().partition(":")
    return Kind(name, int(version))


@functools.lru_cache(_CACHED)
def policy_of(text: bytes) -> JobPolicy:
    """What `policy_text` was made of."""
    return _policy(text)


class Legend:
    """What the numbers of one answer mean.

    Args:
        rows: as answered.
    """

    __slots__ = ("_codes", "_tenants", "kinds", "lanes", "policies")

    def __init__(self, rows: LegendRows) -> None:
        lanes, kinds, self._tenants, self._codes, policies = (dict(texts) for texts in rows)
        self.lanes = {number: lane_of(text) for number, text in lanes.items()}
        self.kinds = {number: kind_of(text) for number, text in kinds.items()}
        self.policies = {number: policy_of(text) for number, text in policies.items()}

    def lane(self, number: int) -> Lane:
        return self.lanes[number]

    def kind(self, number: int) -> Kind:
        return self.kinds[number]

    def tenant(self, number: int | None) -> str | None:
        """None: it has none."""
        return None if number is None else self._tenants[number].decode()

    def code(self, number: int | None) -> str | None:
        """None: it has none."""
        return None if number is None else self._codes[number].decode()
