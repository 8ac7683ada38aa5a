"""A proxy before a server, whose protocol it understands, which does at a chosen round trip what networks do.

It counts round trips over all connections from the moment a fault is armed, so that the n-th one of an operation can
be hit, whichever connection carries it.
"""

import asyncio
import contextlib
import enum
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

_DEADLINE_S: Final = 10.0


class Cut(enum.Enum):
    """What happens to one round trip."""

    BEFORE_SEND = "before it is sent"
    AFTER_SEND = "after it was sent"
    BEFORE_REPLY = "after it was applied, before its reply"
    MID_REPLY = "in the middle of its reply"
    SILENCE = "no reply ever comes"
    ERROR = "the server answers with an error"
    FATAL = "the server answers with an error and ends the session"


CONNECTION_CUTS: Final = (Cut.BEFORE_SEND, Cut.AFTER_SEND, Cut.BEFORE_REPLY, Cut.MID_REPLY)


class Fault(NamedTuple):
    """One fault, to be met once."""

    cut: Cut
    nth: int = 1
    """Which round trip from now on."""
    code: str = "40001"
    """For the errors, as the server would say it."""


class Proxy(ABC):
    """Runs on a thread of its own, on loopback. Every connection is cut when it ends."""

    def __init__(self, upstream_port: int) -> None:
        self.port = 0
        self.hit = threading.Event()
        """Whether the armed fault was met."""
        self.over = threading.Event()
        """Whether the connection that met it has ended on both sides."""
        self.refusing = False
        """Whether new connections are closed at once."""
        self.round_trips = 0
        """All that were seen."""
        self._upstream_port = upstream_port
        self._fault: Fault | None = None
        self._left = 0
        self._frozen = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)
        self._listening = threading.Event()
        self._ending = asyncio.Event()
        self._pairs: set[Pair] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(_DEADLINE_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(_DEADLINE_S)
        assert not self._thread.is_alive()

    def arm(self, fault: Fault) -> None:
        """Meet this fault at the n-th round trip from now."""
        self.hit.clear()
        self.over.clear()
        self._fault, self._left = fault, fault.nth

    def disarm(self) -> bool:
        """Meet none; answers whether one had been met."""
        self._fault = None
        return self.hit.is_set()

    def sever(self) -> None:
        """Cut every connection now."""
        done = threading.Event()

        def cut() -> None:
            for pair in list(self._pairs):
                pair.cut()
            done.set()

        self._loop.call_soon_threadsafe(cut)
        assert done.wait(_DEADLINE_S)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Let nothing through in either direction and close nothing: a black hole. What it held back goes on then."""
        self._frozen = True
        try:
            yield
        finally:
            self._frozen = False

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._live())
        self._loop.close()

    async def _live(self) -> None:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        async with server:
            await self._ending.wait()
        for pair in list(self._pairs):
            pair.cut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._upstream_port)
        except OSError:
            writer.transport.abort()
            return
        pair = self._pair((reader, writer), upstream)
        self._pairs.add(pair)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the proxy ends
                await pair.live()
        finally:
            self._pairs.discard(pair)
            pair.cut()
            if pair.met_fault:
                self.over.set()

    @abstractmethod
    def _pair(self, client: "Stream", server: "Stream") -> "Pair":
        """The two connections, in the server's protocol."""

    def takes(self) -> Fault | None:
        """Count one round trip; the fault that it meets, if any."""
        self.round_trips += 1
        fault = self._fault
        if fault is None:
            return None
        self._left -= 1
        if self._left:
            return None
        self._fault = None
        self.hit.set()
        return fault

    async def passes(self) -> None:
        """Wait while nothing may go through."""
        while self._frozen:
            await asyncio.sleep(0.005)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pair(ABC):
    """One client's connection and the one to the server behind it.

    Args:
        proxy: says what happens to them.
        client, server: both connections.
    """

    def __init__(self, proxy: Proxy, client: Stream, server: Stream) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self.met_fault = False
        self._fault: Fault | None = None
        """What happens to the reply that is under way."""
        for writer in (self._to_client, self._to_server):
            writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def cut(self) -> None:
        """End both connections at once."""
        for writer in (self._to_client, self._to_server):
            writer.transport.abort()

    async def live(self) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._begin()
            down = asyncio.create_task(self._answer())
            try:
                await self._ask()
                if self._fault is not None and self._fault.cut is Cut.AFTER_SEND:
                    await down  # the server does what it was asked, for nobody
            finally:
                down.cancel()
                await asyncio.gather(down, return_exceptions=True)

    @abstractmethod
    async def _begin(self) -> None:
        """Let what comes before the first round trip go through."""

    @abstractmethod
    async def _request(self) -> tuple[bytes, bool]:
        """The next round trip that the client begins, and whether it counts."""

    @abstractmethod
    async def _reply(self) -> tuple[bytes, bool]:
        """The next message of the server, and whether it ends a round trip."""

    @abstractmethod
    def _error(self, fault: Fault) -> bytes:
        """The error that the server is made to answer."""

    async def _ask(self) -> None:
        """From client to server, one round trip at a time."""
        while True:
            whole, counts = await self._request()
            await self._proxy.passes()
            if not await self._forward(whole, self._proxy.takes() if counts else None):
                return

    async def _forward(self, batch: bytes, fault: Fault | None) -> bool:
        """Send one round trip on; False when the connection is over."""
        cut = None if fault is None else fault.cut
        self.met_fault = self.met_fault or cut is not None
        if cut is Cut.BEFORE_SEND:
            self.cut()
            return False
        if cut is Cut.SILENCE:
            await asyncio.Event().wait()
        if cut in (Cut.ERROR, Cut.FATAL):
            assert fault is not None
            self._to_client.write(self._error(fault))
            if cut is Cut.FATAL:
                await self._to_client.drain()
                self.cut()
            return cut is Cut.ERROR
        self._fault = fault
        self._to_server.write(batch)
        await self._to_server.drain()
        if cut is Cut.AFTER_SEND:
            self._to_server.write_eof()
            self._to_client.transport.abort()
            return False
        return True

    async def _answer(self) -> None:
        """From server to client; a reply that meets a fault is held back until it is complete."""
        held = b""
        while True:
            message, ends = await self._reply()
            await self._proxy.passes()
            if self._fault is None:
                self._to_client.write(message)
                continue
            held += message
            if not ends or self._fault.cut is Cut.AFTER_SEND:
                continue
            if self._fault.cut is Cut.MID_REPLY:
                self._to_client.write(held[: len(held) // 2])
                await self._to_client.drain()
            self.cut()
            return
