"""The executor's end of the hand-off: takes work, marks it, answers it. What crosses is drawn in `handoff`."""

import fcntl
import os
import resource
import select
import time
from collections.abc import Callable
from typing import Final

from runwick.runtime.crossings import reach
from runwick_supervisor.control import ControlWriter
from runwick_supervisor.doorbell import Doorbell
from runwick_supervisor.handoff import RETURN, WORK, Descriptors, HandOffViolation
from runwick_supervisor.memory import RETURN_RING, WORK_RING, RingReader, RingWriter, SharedMemory

_WORK_BYTES: Final = WORK.size
_RETURN_BYTES: Final = RETURN.size
_ROOM_POLL_MS: Final = 100
_TORN: Final = "a handler closed descriptors that are not its own, this executor's among them"
_TABLE_MAX: Final = 1024
_TABLE_TOP: Final = 16


Record = tuple[int, memoryview, memoryview]
"""One piece of work as the executor sees it: its kind, its run and its payload. The views are valid until it is
finished."""


class ExecutorEnd:
    """The executor's end. It maps what the parent made."""

    def __init__(self, descriptors: Descriptors) -> None:
        self.memory = SharedMemory(descriptors.memory)
        os.close(descriptors.memory)
        self._view = self.memory.view
        self.control = ControlWriter(self.memory)
        self.cancel_bell = Doorbell(descriptors.cancel)
        """Rung when the parent has written the cancel word."""
        self.stack_descriptor = descriptors.stack
        self._work = Doorbell(descriptors.work)
        self._completions = Doorbell(descriptors.completions)
        self._room = Doorbell(descriptors.room)
        self._reader = RingReader(self.memory.words, WORK_RING)
        self._writer = RingWriter(self.memory.words, RETURN_RING)
        self._work_poll = _poller(descriptors.work)
        self._room_poll = _poller(descriptors.room)
        self._taken_ns = 0

    def wait(self, milliseconds: int | None) -> bool:
        """Wait until there is something to take, without taking it; False when the time is over."""
        return bool(self._work_poll.poll(milliseconds))

    def take(self, idle_after_ms: int, idle: Callable[[], None]) -> Record:
        """Take the next record, waiting for it; `idle` is called once when that took `idle_after_ms`."""
        while not self._work.take():
            if not self._work.is_whole:
                raise HandOffViolation(_TORN)
            if not self.wait(idle_after_ms):
                idle()
                self.wait(None)
        reach("handoff.taken")
        self._taken_ns = time.monotonic_ns()
        view = self._view
        offset = self._reader.next_offset()
        self.control.sequence, kind, run_bytes, payload_bytes = WORK.unpack_from(view, offset)
        run_at = offset + _WORK_BYTES
        payload_at = run_at + run_bytes
        return kind, view[run_at:payload_at], view[payload_at : payload_at + payload_bytes]

    def finish(self, outcome: bytes) -> None:
        """Answer the record last taken. Waits for the parent to read when the return ring is full.

        Raises:
            HandOffViolation: the handler closed what would tell the parent. The answer would go somewhere else.
        """
        if not self._completions.is_whole:
            raise HandOffViolation(_TORN)
        outcome_bytes = len(outcome)
        if self._writer.far:
            self._reuse_room()
        while (offset := self._writer.reserve(_RETURN_BYTES + outcome_bytes)) is None:
            self._room_poll.poll(_ROOM_POLL_MS)
            self._reuse_room()
        busy_us = (time.monotonic_ns() - self._taken_ns) // 1000
        view = self._view
        RETURN.pack_into(view, offset, self.control.sequence, busy_us, outcome_bytes)
        outcome_at = offset + _RETURN_BYTES
        view[outcome_at : outcome_at + outcome_bytes] = outcome
        reach("handoff.written")
        self._completions.ring()
        reach("handoff.answered")

    def _reuse_room(self) -> None:
        for _ in range(self._room.take()):
            self._writer.release_oldest()


def out_of_reach(descriptors: Descriptors) -> Descriptors:
    """The same under numbers near the end of the descriptor table."""
    return Descriptors(*map(moved_away, descriptors))


def moved_away(descriptor: int) -> int:
    """The same under a number near the end of the descriptor table, as far as there is room: out of reach of handlers
    that close the low ones one after the other."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not further: the kernel's table of a process grows with its highest number.
    top = _TABLE_MAX if soft_limit == resource.RLIM_INFINITY else min(soft_limit, _TABLE_MAX)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, top - _TABLE_TOP)
    except (OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return moved


def _poller(descriptor: int) -> select.poll:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return poller
