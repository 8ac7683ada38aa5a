"""The hand-off: how a run reaches an executor and its outcome comes back. Both ends.

    parent                          work doorbell, one count per record              executor
      put ▶ record in the work ring ─────────── announce ──────────▶ take (at the head, just before it begins)
      take_back (at the tail) ◀── one count ───────┘                   │ begun: a mark in the control page
      collect ◀── record in the return ring ◀── completions doorbell ──┘ finish

A work record is (sequence, kind, sizes) + run + payload; the payload is decoded where it lies. A return record is
(sequence, duration, size) + outcome. Sequences count what the executor takes, so a number whose record was taken back
is used again. The executor answers strictly in order, one record for each that it took, the last `STOP` excepted.

A handler can write into all of this memory and all of these counters. The executor's end therefore trusts what it
reads and the parent's end does not: every number from the executor is checked, every outcome is copied out before it is
decoded, and what cannot be right raises `HandOffViolation`, for which the executor is killed.
"""

import enum
import os
import select
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick_supervisor.doorbell import Doorbell
from runwick_supervisor.memory import (
    BEGUN_SEQUENCE_WORD,
    BEGUN_TIME_WORD,
    RETURN_RING,
    WORK_RING,
    RingReader,
    RingWriter,
    SharedMemory,
)

_WORK: Final = struct.Struct("QIIQ")
"""sequence, kind, bytes of the run, bytes of the payload."""
_RETURN: Final = struct.Struct("QQQ")
"""sequence, microseconds from taking the work to here, bytes of the outcome."""

_ROOM_POLL_MS: Final = 100
_ROOM_RECORDS: Final = 128
_ROOM_BYTES: Final = 32 * 1024
"""An executor is told of what was read when it is so much: a small part of its ring, so that it never waits for it."""

_DECODER: Final = msgspec.msgpack.Decoder(Outcome)


class RecordKind(enum.IntEnum):
    """What a work record asks for."""

    GO = 0
    """Become ready. The parent's word: before it an executor takes no work. It is answered like a run."""
    RUN = 1
    STOP = 2
    """End. Never answered."""


class HandOffViolation(Exception):
    """An executor's memory or counters hold what Runwick never writes there."""


class Descriptors(NamedTuple):
    """What an executor needs to take part, in the order in which it travels."""

    memory: int
    work: int
    completions: int
    room: int

    def close(self) -> None:
        """Close all four; for a process that only passed them on."""
        for descriptor in self:
            os.close(descriptor)


Finished = tuple[float, Outcome]
"""One answer of an executor: the milliseconds it took, and the outcome, which means nothing for a `GO`."""


class Remains(NamedTuple):
    """How far a dead executor had come."""

    taken: int
    """So many of the oldest unanswered records it had taken, each of which may have begun; the others have not."""
    begun_at_ns: int | None
    """When the oldest of them began, on CLOCK_BOOTTIME; None when it bears no mark."""


class ParentEnd:
    """The parent's end: one executor's memory and doorbells, which it makes and owns."""

    def __init__(self) -> None:
        self._memory_descriptor: int | None = SharedMemory.create()
        self._memory = SharedMemory(self._memory_descriptor)
        self._work = Doorbell.create(semaphore=True)
        self._completions = Doorbell.create()
        self._room = Doorbell.create()
        self._writer = RingWriter(self._memory.words, WORK_RING)
        self._reader = RingReader(self._memory.words, RETURN_RING)
        self._put = 0
        self._answered = 0
        self._unannounced = 0
        self._read = self._read_bytes = 0
        """Since the executor was last told what of the return ring it may use again."""

    @property
    def completions_descriptor(self) -> int:
        """Readable when the executor has finished something."""
        return self._completions.descriptor

    @property
    def descriptors(self) -> Descriptors:
        """What travels to the executor. Only before `forget_memory_descriptor`."""
        assert self._memory_descriptor is not None
        return Descriptors(
            self._memory_descriptor, self._work.descriptor, self._completions.descriptor, self._room.descriptor
        )

    def forget_memory_descriptor(self) -> None:
        """The executor has its own: this process goes on with the mapping."""
        if self._memory_descriptor is not None:
            os.close(self._memory_descriptor)
            self._memory_descriptor = None

    def put(self, kind: RecordKind, run: bytes = b"", payload: bytes = b"") -> bool:
        """Write one record, to be announced later; False when the ring has no room for it now."""
        run_bytes, payload_bytes = len(run), len(payload)
        offset = self._writer.reserve(_WORK.size + run_bytes + payload_bytes)
        if offset is None:
            return False
        self._put += 1
        view = self._memory.view
        _WORK.pack_into(view, offset, self._put, kind, run_bytes, payload_bytes)
        run_at = offset + _WORK.size
        payload_at = run_at + run_bytes
        view[run_at:payload_at] = run
        view[payload_at : payload_at + payload_bytes] = payload
        self._unannounced += 1
        return True

    def announce(self) -> None:
        """Let the executor take what was put since the last time.

        Raises:
            HandOffViolation: the counter is full.
        """
        count, self._unannounced = self._unannounced, 0
        if count:
            _ring(self._work, count)

    def take_back(self) -> bool:
        """Take the newest record back; False when the executor has taken all of them."""
        if not self._work.take():
            return False
        self._writer.release_newest()
        self._put -= 1
        return True

    def collect(self) -> Iterator[Finished]:
        """Everything that the executor has finished since the last time, in order. To be read to its end.

        Raises:
            HandOffViolation: what it wrote cannot be right. What came before it stands; nothing may be collected
                from this executor any more.
        """
        count = self._completions.take()
        if count > self._put - self._answered:
            raise HandOffViolation(f"it announced {count} outcomes, {self._put - self._answered} were open")
        for _ in range(count):
            busy_us, encoded = self._read_next()
            self._read_bytes += len(encoded)
            yield busy_us / 1000, _decoded(encoded)
        self._read += count
        if self._read >= _ROOM_RECORDS or self._read_bytes >= _ROOM_BYTES:
            _ring(self._room, self._read)
            self._read = self._read_bytes = 0

    def _read_next(self) -> tuple[int, bytes]:
        """Copy the next return record out, as far as it can be one."""
        expected = self._answered + 1
        offset = self._reader.next_offset()
        if not self._reader.holds(offset, _RETURN.size):
            raise HandOffViolation(f"outcome {expected} is said to lie at {offset}")
        sequence, busy_us, size_bytes = _RETURN.unpack_from(self._memory.view, offset)
        if sequence != expected:
            raise HandOffViolation(f"outcome {expected} was expected, {sequence} came")
        if not self._reader.holds(offset, _RETURN.size + size_bytes):
            raise HandOffViolation(f"outcome {expected} is said to have {size_bytes} bytes")
        begin = offset + _RETURN.size
        encoded = self._memory.map[begin : begin + size_bytes]
        self._writer.release_oldest()
        self._answered = expected
        return busy_us, encoded

    def remains(self) -> Remains:
        """What a dead executor leaves, after everything it announced was collected.

        It had taken the records whose count is gone. Counts that cannot be right, and a mark on a record further
        back, mean that a handler wrote there: then what cannot be told apart counts as taken.
        """
        open_records = self._put - self._answered
        left = 0
        while left <= open_records and self._work.take():
            left += 1
        taken = open_records - left if left <= open_records else open_records
        words = self._memory.words
        marked = words[BEGUN_SEQUENCE_WORD] - self._answered
        if not 1 <= marked <= open_records:
            return Remains(taken, None)
        return Remains(max(taken, marked), words[BEGUN_TIME_WORD] if marked == 1 else None)

    def close(self) -> None:
        """Throw memory and doorbells away."""
        self.forget_memory_descriptor()
        self._memory.close()
        for doorbell in (self._work, self._completions, self._room):
            doorbell.close()


def _ring(doorbell: Doorbell, count: int) -> None:
    try:
        doorbell.ring(count)
    except BlockingIOError:
        raise HandOffViolation("somebody filled one of its counters") from None


def _decoded(encoded: bytes) -> Outcome:
    """The outcome, within the bounds of its type, or a refusal of what no executor may say."""
    try:
        outcome = _DECODER.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HandOffViolation(f"an outcome cannot be read: {error}") from None
    if outcome.kind is OutcomeKind.ABANDONED:
        raise HandOffViolation("only recovery may call an attempt abandoned")
    return outcome


class Record(NamedTuple):
    """One piece of work as the executor sees it. The views are valid until it is finished."""

    kind: int
    run: memoryview
    payload: memoryview


class ExecutorEnd:
    """The executor's end. It maps what the parent made."""

    def __init__(self, descriptors: Descriptors) -> None:
        self._memory = SharedMemory(descriptors.memory)
        os.close(descriptors.memory)
        self._work = Doorbell(descriptors.work)
        self._completions = Doorbell(descriptors.completions)
        self._room = Doorbell(descriptors.room)
        self._reader = RingReader(self._memory.words, WORK_RING)
        self._writer = RingWriter(self._memory.words, RETURN_RING)
        self._work_poll = _poller(descriptors.work)
        self._room_poll = _poller(descriptors.room)
        self._sequence = 0
        self._taken_ns = 0

    def wait(self, milliseconds: int | None) -> bool:
        """Wait until there is something to take, without taking it; False when the time is over."""
        return bool(self._work_poll.poll(milliseconds))

    def take(self, idle_after_ms: int, idle: Callable[[], None]) -> Record:
        """Take the next record, waiting for it; `idle` is called once when that took `idle_after_ms`."""
        while not self._work.take():
            _must_be_whole(self._work)
            if not self.wait(idle_after_ms):
                idle()
                self.wait(None)
        self._taken_ns = time.monotonic_ns()
        offset = self._reader.next_offset()
        self._sequence, kind, run_bytes, payload_bytes = _WORK.unpack_from(self._memory.view, offset)
        run_at = offset + _WORK.size
        payload_at = run_at + run_bytes
        view = self._memory.view
        return Record(kind, view[run_at:payload_at], view[payload_at : payload_at + payload_bytes])

    def begun(self) -> None:
        """Mark the record last taken as begun, now. The time goes first: it counts only with its sequence."""
        words = self._memory.words
        words[BEGUN_TIME_WORD] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        words[BEGUN_SEQUENCE_WORD] = self._sequence

    def finish(self, outcome: bytes) -> None:
        """Answer the record last taken. Waits for the parent to read when the return ring is full.

        Raises:
            HandOffViolation: the handler closed what would tell the parent. The answer would go somewhere else.
        """
        _must_be_whole(self._completions)
        size_bytes = _RETURN.size + len(outcome)
        if self._writer.far:
            self._reuse_room()
        while (offset := self._writer.reserve(size_bytes)) is None:
            self._room_poll.poll(_ROOM_POLL_MS)
            self._reuse_room()
        busy_us = (time.monotonic_ns() - self._taken_ns) // 1000
        view = self._memory.view
        _RETURN.pack_into(view, offset, self._sequence, busy_us, len(outcome))
        outcome_at = offset + _RETURN.size
        view[outcome_at : outcome_at + len(outcome)] = outcome
        self._completions.ring()

    def _reuse_room(self) -> None:
        for _ in range(self._room.take()):
            self._writer.release_oldest()


def _must_be_whole(doorbell: Doorbell) -> None:
    if not doorbell.is_whole:
        raise HandOffViolation("a handler closed descriptors that are not its own, this executor's among them")


def _poller(descriptor: int) -> select.poll:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return poller


def encode_outcome(outcome: Outcome) -> bytes:
    """MessagePack for the return ring."""
    return _ENCODER.encode(outcome)


_ENCODER: Final = msgspec.msgpack.Encoder()
