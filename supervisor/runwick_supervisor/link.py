"""The conversation between the parent and a zygote: typed messages and descriptors over one SOCK_SEQPACKET socket.

    parent ─ Boot + the fence ───▶ zygote          imports the application; with it comes the lock of the run file
           ◀────── Manifest | Refused ─            what is declared, or everything that is wrong with it
           ─ Fork + its descriptors ───▶           a double fork
           ◀────── Born + pidfd | NotBorn ─        the executor is the parent's child
           ─ Guard + pidfd ──────▶                 an executor of an earlier zygote, to be killed with the parent
           ─ Gone ───────────────▶                 an executor that is dead, and whose group is killed
           ─ end of file ────────▶                 kill every executor's process group, end

A store's URL crosses here and nowhere else. A message longer than one packet is cut into several; descriptors travel
with the first. Both ends decode strictly: a zygote runs the application's imports, which can write here too.
"""

import os
import socket
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from runwick.config.options import ExecutorOptions, StoreOptions, WorkerOptions
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import Problem
from runwick.contracts.limits import DeclaredLimits
from runwick.declarations.pools import Pool

_PACKET_BYTES: Final = 32 * 1024
_MESSAGE_MAX_BYTES: Final = 64 * 1024 * 1024
_DESCRIPTORS_MAX: Final = 8
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(_DESCRIPTORS_MAX * 4)
_MORE: Final = b"+"
_LAST: Final = b"."


Grade = Literal["full", "watched"]
"""How an executor that outlives its leases is stopped: ``full``, the kernel kills it at its deadline, whatever runs in
it; ``watched``, the zygote kills it as soon as it sees that the deadline has passed."""


class Boot(msgspec.Struct, frozen=True, tag=True):
    """Import the application at `target` (``module`` or ``module:attribute``), looking in `app_dir` first. The fence's
    memory travels with this, and behind it the descriptor of the run file, where there is one."""

    target: str
    app_dir: str
    preload: tuple[str, ...] = ()
    """Modules to import after it."""


class Manifest(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """What an application declares, as far as a worker needs it."""

    release: str
    """Of Runwick; the parent's own, or they do not understand each other."""
    application: str
    store: str | None
    """The store's URL, with whatever credentials it holds: never to be shown or logged."""
    worker: WorkerOptions
    stores: StoreOptions
    executors: ExecutorOptions
    grade: Grade
    """How strongly executors made of it are fenced; why not more strongly is among the warnings."""
    pools: tuple[Pool, ...]
    queues: tuple[str, ...]
    kinds: tuple[Kind, ...]
    """Those that can be decoded here for a handler."""
    lanes: tuple[Lane, ...]
    """Where jobs of these kinds go unless a dispatch says otherwise."""
    time_limits_ms: dict[str, int | None]
    """Of every declared type, by its stored name; None of one that may take for ever."""
    limits: DeclaredLimits = DeclaredLimits()
    """Those of its queues and job types."""
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What is wrong with its options or its environment; then no executor may be made of it."""

    def __repr__(self) -> str:
        return f"Manifest({self.application!r}, {len(self.kinds)} kinds)"


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The application cannot be run; everything that is wrong with its import or its declarations."""

    problems: tuple[Problem, ...]
    store: str | None = None
    """The store's URL, as far as it is known."""


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Make an executor; its `Descriptors` travel with this."""

    executor: int
    record_usage: bool
    options: ExecutorOptions


class Born(msgspec.Struct, frozen=True, tag=True):
    """The executor exists; its pidfd travels with this. It waits for the parent's word."""

    executor: int
    pid: int


class NotBorn(msgspec.Struct, frozen=True, tag=True):
    """The executor could not be made."""

    executor: int
    reason: str


class Guard(msgspec.Struct, frozen=True, tag=True):
    """Kill this process too when the parent dies or its own deadline passes; its pidfd travels with this."""

    pid: int
    executor: int


class Gone(msgspec.Struct, frozen=True, tag=True):
    """This executor is dead and its group is killed: its number may be somebody else's from now on."""

    pid: int


Message = Boot | Manifest | Refused | Fork | Born | NotBorn | Guard | Gone

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(Message)


class LinkBroken(Exception):
    """The other end is gone or sends what is no message; nothing can be said over this link any more."""


class Link:
    """One end of the conversation."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._pieces: list[bytes] = []
        self._received: list[int] = []

    @classmethod
    def pair(cls) -> tuple["Link", socket.socket]:
        """The parent's end, which never blocks, and the socket that its zygote is given."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send one message; the descriptors stay open here.

        Raises:
            LinkBroken: the other end is gone, or takes nothing any more.
        """
        encoded = _ENCODER.encode(message)
        try:
            for start in range(0, len(encoded), _PACKET_BYTES):
                piece = encoded[start : start + _PACKET_BYTES]
                mark = _MORE if start + _PACKET_BYTES < len(encoded) else _LAST
                socket.send_fds(self._socket, [mark + piece], list(descriptors) if start == 0 else [])
        except OSError as error:
            raise LinkBroken(f"nothing can be sent: {error.strerror}") from None

    def receive(self) -> tuple[Message, list[int]]:
        """The next message and the descriptors that came with it, which are the caller's from now on.

        Raises:
            BlockingIOError: it is not complete yet (the parent's end only).
            LinkBroken: the other end is gone, or what it sent is no message.
        """
        while not self._receive_piece():
            pass
        encoded, self._pieces = b"".join(self._pieces), []
        descriptors, self._received = self._received, []
        try:
            return _DECODER.decode(encoded), descriptors
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            for descriptor in descriptors:
                os.close(descriptor)
            raise LinkBroken(f"no message came: {error}") from None

    def _receive_piece(self) -> bool:
        """Take one packet; answers whether it was the last of its message."""
        try:
            # Not socket.recv_fds, which does not pass the flag on: what handlers execute must inherit none of these.
            packet, ancillary, flags, _ = self._socket.recvmsg(
                _PACKET_BYTES + 1, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            raise
        except OSError as error:
            raise LinkBroken(f"nothing can be received: {error.strerror}") from None
        for _, _, data in ancillary:
            self._received += memoryview(data).cast("i")
        if not packet:
            raise LinkBroken("the other end is gone")
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or sum(map(len, self._pieces)) > _MESSAGE_MAX_BYTES:
            raise LinkBroken("no message came: it is too long")
        self._pieces.append(packet[1:])
        return packet[:1] == _LAST

    def close(self) -> None:
        """End the conversation; for a zygote this is the parent's death."""
        self._socket.close()
        for descriptor in self._received:
            os.close(descriptor)
        self._received = []


def storable(text: str) -> str:
    """`text` as it can be sent: whatever is no UTF-8 is shown by its escape."""
    return text.encode("utf-8", "backslashreplace").decode()
