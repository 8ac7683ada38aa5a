"""One connection to the server: no call on it waits longer than its limit, and it knows whether it can be trusted.

Time limits of the server's alone would not do: a network that swallows packets, or a server that stands still, never
answers. A call that ran out of time leaves its connection in the middle of a statement, so it is used no more.
"""

import os
import select
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import abc, generators
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from runwick.stores.postgres import packed
from runwick.stores.quiet import quiet

Row = tuple[Any, ...]
RV = TypeVar("RV")

_SIGNALS_S: Final = 0.1
"""How often a wait looks for signals."""

_SUCCESSES: Final = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})

_BYTES: Final = psycopg.adapters.get_loader(psycopg.adapters.types["bytea"].oid, Format.BINARY)
"""Answers what came as it is, for a ``uuid`` its 16 bytes."""
assert _BYTES is not None

ADAPTERS: Final = AdaptersMap(psycopg.adapters)
"""How values travel: as psycopg has it, except that ids come back as raw bytes, and what is packed goes as it is."""
ADAPTERS.register_loader("uuid", _BYTES)
packed.register(ADAPTERS)


class Connection(psycopg.Connection[Row]):
    """Used by one thread at a time, in the process that opened it, with a transaction of its own for each statement."""

    limit_s: float = 5.0
    """How long one call may take."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._process: Final = os.getpid()
        self._ear: _Ear | None = None
        self._prepared_as: Final[dict[tuple[bytes, tuple[int, ...]], bytes]] = {}

    @classmethod
    def connect(cls, *arguments: Any, **named: Any) -> "Connection":
        """Open one, on its own or for a pool."""
        with quiet.opening():
            return super().connect(*arguments, **named)

    def fetch(self, statement: bytes, parameters: Sequence[Any] = (), *, prepare: bool = True) -> list[Row]:
        """Execute a statement; answers its rows, ids in them as 16 raw bytes.

        A cursor would do the same for more time than the rest of a small act takes.

        Args:
            statement: the text.
            parameters: for ``$1``, ``$2``…
            prepare: whether to keep it prepared for the next time.

        Raises:
            psycopg.Error: `is_sound` says whether it is the server's own answer, after which nothing of it was applied.
        """
        if os.getpid() != self._process:
            raise psycopg.OperationalError("a fork inside of a call: the connection belongs to the parent")
        transformer = Transformer.from_context(self)
        sent = _packed(parameters) or _dumped(parameters, transformer)
        if prepare:
            name = self._prepared_as.get((statement, sent.types)) or self._prepare(statement, sent.types)
            self.pgconn.send_query_prepared(name, sent.values, sent.formats, Format.BINARY)
        else:
            self.pgconn.send_query_params(statement, sent.values, sent.types, sent.formats, Format.BINARY)
        result = self._answer()
        transformer.set_pgresult(result)
        return transformer.load_rows(0, result.ntuples, tuple)

    def _prepare(self, statement: bytes, types: tuple[int, ...]) -> bytes:
        name = b"runwick_%d" % len(self._prepared_as)
        self.pgconn.send_prepare(name, statement, types)
        self._answer()
        self._prepared_as[statement, types] = name
        return name

    def _answer(self) -> PGresult:
        results: list[PGresult] = self.wait(generators.execute(self.pgconn))
        result = results[-1]
        if result.status in _SUCCESSES:
            return result
        raise psycopg.errors.error_from_result(result, self.info.encoding)

    def heard(self) -> list[str]:
        """What was told on channels that it listens on and has come, without waiting and without asking.

        Raises:
            psycopg.OperationalError: the connection is lost.
        """
        self.pgconn.consume_input()
        told = []
        while (notification := self.pgconn.notifies()) is not None:
            told.append(notification.extra.decode())
        return told

    @property
    def is_sound(self) -> bool:
        """Whether it is open and waits for the next statement: whatever was sent has been answered in full."""
        return self.pgconn.transaction_status == TransactionStatus.IDLE and os.getpid() == self._process

    @property
    def is_unanswered(self) -> bool:
        """Whether it is open, and the answer to what was sent did not come."""
        return self.pgconn.transaction_status == TransactionStatus.ACTIVE

    @property
    def is_dead(self) -> bool:
        """Whether it is of no use any more. A server says nothing unasked but good-bye."""
        if self.closed:
            return True
        if self._ear is None:
            self._ear = _Ear(self.fileno())
        return self._ear.hears()

    def wait(self, gen: abc.PQGen[RV], interval: float = _SIGNALS_S, timeout: float | None = None) -> RV:
        """psycopg's own way to wait, with a limit for what asks for none."""
        return super().wait(gen, interval, self.limit_s if timeout is None else timeout)


class _Ear:
    """Whether there is something to read on one socket; asked before each call, so it is made once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptors = [descriptor]
        self._poll = None
        if sys.platform != "win32":
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLIN)

    def hears(self) -> bool:
        return bool(readable(self._descriptors, 0) if self._poll is None else self._poll.poll(0))


def readable(descriptors: Sequence[int], wait_s: float) -> list[int]:
    """Those of the sockets on which there is something to read, or the end; waits for the first so long."""
    if sys.platform == "win32":
        return select.select(descriptors, [], [], wait_s)[0]
    poll = select.poll()  # `select.select` cannot take descriptors above 1023
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(wait_s * 1000)]


class _Sent(NamedTuple):
    """Parameters in the server's form."""

    values: Sequence[abc.Buffer | None]
    types: tuple[int, ...]
    formats: Sequence[Format]


def _packed(parameters: Sequence[Any]) -> _Sent | None:
    """Parameters that are in that form; None if one of them is not."""
    types = tuple([packed.TYPES.get(type(parameter), 0) for parameter in parameters])
    return _Sent(parameters, types, [Format.BINARY] * len(types)) if all(types) else None


def _dumped(parameters: Sequence[Any], transformer: abc.Transformer) -> _Sent:
    values = transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
    return _Sent(values, transformer.types or (), transformer.formats or ())
