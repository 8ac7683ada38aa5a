"""An operator's session: a connection of its own, opened for one thing, on which the operator's functions are called.

Each is one function, which the server runs as a whole: nothing is ever under way beside it, and what it changes holds
for every act that comes later.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import redis.exceptions

from runwick.contracts.administration import Admission, ApplicationStatus
from runwick.contracts.errors import RunwickError
from runwick.stores.redis import faults, packed
from runwick.stores.redis.address import Address
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.library import Library

ANSWER_S: Final = 30.0
"""How long one command may take."""

_PURPOSE: Final = "runwick-operator"


class Application(msgspec.Struct, frozen=True, array_like=True):
    """How an application stands."""

    name: str
    admission: Admission
    capabilities: list[str]
    leases: int
    leases_valid: int
    workers: int

    @property
    def status(self) -> ApplicationStatus:
        """The same in everybody's words."""
        return ApplicationStatus(**msgspec.structs.asdict(self))


class Found(msgspec.Struct, frozen=True, array_like=True):
    """How an operator's function found the store."""

    store_id: bytes | None
    """None where there is no store."""
    revision: int | None
    applications: list[Application]
    """By name; none of a store of another revision."""
    is_changed: bool
    """Whether the function has changed something since."""

    @property
    def statuses(self) -> list[ApplicationStatus]:
        return [application.status for application in self.applications]


_FOUND: Final = msgspec.msgpack.Decoder(Found)


class Session:
    """An operator's connection.

    Args:
        connection: open.
        library: whose functions are called.
    """

    def __init__(self, connection: Connection, library: Library) -> None:
        self.connection: Final = connection
        self._library: Final = library

    def call(self, function: str, *arguments: Any) -> Found:
        """Call one of the operator's functions; a server that does not have it is given the library.

        Raises:
            redis.exceptions.RedisError: it was refused, or its answer did not come.
        """
        command = ("FCALL", self._library.function(function), 0, packed.arguments(*arguments))
        try:
            answer = self.connection.ask(*command)
        except redis.exceptions.ResponseError as error:
            if not faults.is_function_missing(error):
                raise
            self._library.load(self.connection.ask)
            answer = self.connection.ask(*command)
        return _FOUND.decode(answer)


@contextlib.contextmanager
def session(
    address: Address, library: Library, doing: str, lost: RunwickError, answer_s: float = ANSWER_S
) -> Iterator[Session]:
    """Connect, and close at the end.

    Args:
        address: of the database.
        library: the functions to call.
        doing: what it is for, in one word.
        lost: what it means when the connection breaks while it is used, or an answer does not come.
        answer_s: how long one command may take.

    Raises:
        StoreUnavailable: it cannot be reached, or the server refuses now.
    """
    try:
        connection = Connection(address, _PURPOSE, answer_s)
    except (redis.exceptions.RedisError, OSError) as error:
        raise faults.unreachable(error, address.shown) from error
    with contextlib.closing(connection):
        try:
            yield Session(connection, library)
        except (redis.exceptions.RedisError, OSError) as error:
            if not connection.is_sound:
                raise lost from error
            situation = faults.Situation(doing, address.shown, answer_s * 1000)
            if faults.is_cut_short(error):  # while it looked: before it writes, it asks
                raise faults.cut_short(error, situation, writes=False) from error
            meant = faults.refused(error, situation, "")
            if meant is error:
                raise
            raise meant from error
