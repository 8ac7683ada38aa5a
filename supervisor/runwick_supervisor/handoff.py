"""The hand-off: how a run reaches an executor and its outcome comes back. The parent's end; the executor's is
`executor_end`.

    parent                          work doorbell, one count per record              executor
      put ▶ record in the work ring ─────────── announce ──────────▶ take (at the head, just before it begins)
      take_back (at the tail) ◀── one count ───────┘                   │ begun, phases, log lines: the control area
      progress, log_lines ◀── control ─────────────────────────────────┤
      cancel ─ cancel word, cancel doorbell ───────────────────────────┤
      collect ◀── record in the return ring ◀── completions doorbell ──┘ finish

A work record is (sequence, kind, sizes) + run + payload; the payload is decoded where it lies. A return record is
(sequence, duration, size) + outcome. Sequences count what the executor takes, so a number whose record was taken back
is used again. The executor answers strictly in order, one record for each that it took, the last `STOP` excepted.

A handler can write into all of this memory and all of these counters. The executor's end therefore trusts what it
reads and the parent's end does not: every number from the executor is checked, every outcome is copied out before it is
decoded, and what cannot be right raises `HandOffViolation`, for which the executor is killed.

The stack is a file of its own in memory, which the executor's fault handler writes without the interpreter's help: its
size is sealed, so that nothing can be written past its end, and its write position is shared with the parent.
"""

import enum
import fcntl
import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import BLACK_BOX_MAX_BYTES, Outcome, OutcomeKind
from runwick.execution.errors import storable
from runwick.runtime.crossings import reach
from runwick_supervisor.control import BEGUN_SEQUENCE_WORD, BEGUN_TIME_WORD, ControlReader, Progress
from runwick_supervisor.doorbell import Doorbell
from runwick_supervisor.memory import RETURN_RING, WORK_RING, RingReader, RingWriter, SharedMemory

WORK: Final = struct.Struct("QIIQ")
"""A work record: sequence, kind, bytes of the run, bytes of the payload."""
RETURN: Final = struct.Struct("QQQ")
"""A return record: sequence, microseconds from taking the work to here, bytes of the outcome."""

_RETURN_BYTES: Final = RETURN.size
_WORK_BYTES: Final = WORK.size
_ROOM_RECORDS: Final = 128
_ROOM_BYTES: Final = 32 * 1024
"""An executor is told of what was read when it is so much: a small part of its ring, so that it never waits for it."""

_DECODER: Final = msgspec.msgpack.Decoder(Outcome)
_ABANDONED: Final = OutcomeKind.ABANDONED


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
    cancel: int
    stack: int

    def close(self) -> None:
        """Close them all; for a process that only passed them on."""
        for descriptor in self:
            os.close(descriptor)


Finished = tuple[float, Outcome]
"""One answer of an executor: the milliseconds it took, and the outcome, which means nothing for a `GO`."""


class Remains(NamedTuple):
    """How far a dead executor had come."""

    taken: int
    """So many of the oldest unanswered records it had taken, each of which may have begun; the others have not."""
    progress: Progress
    """Of the oldest of them; empty when it bears no begun mark."""


class ParentEnd:
    """The parent's end: one executor's memory and doorbells, which it makes and owns."""

    def __init__(self) -> None:
        self._memory_descriptor: int | None = SharedMemory.create()
        self._memory = SharedMemory(self._memory_descriptor)
        self._work = Doorbell.create(semaphore=True)
        self._completions = Doorbell.create()
        self._room = Doorbell.create()
        self._cancel = Doorbell.create()
        self._stack = _stack_file()
        self._control = ControlReader(self._memory)
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
            self._memory_descriptor,
            self._work.descriptor,
            self._completions.descriptor,
            self._room.descriptor,
            self._cancel.descriptor,
            self._stack,
        )

    def forget_memory_descriptor(self) -> None:
        """The executor has its own: this process goes on with the mapping."""
        if self._memory_descriptor is not None:
            os.close(self._memory_descriptor)
            self._memory_descriptor = None

    def put(self, kind: RecordKind, run: bytes = b"", payload: bytes = b"") -> bool:
        """Write one record, to be announced later; False when the ring has no room for it now."""
        run_bytes, payload_bytes = len(run), len(payload)
        offset = self._writer.reserve(_WORK_BYTES + run_bytes + payload_bytes)
        if offset is None:
            return False
        self._put += 1
        memory = self._memory.map
        WORK.pack_into(memory, offset, self._put, kind, run_bytes, payload_bytes)
        run_at = offset + _WORK_BYTES
        payload_at = run_at + run_bytes
        memory[run_at:payload_at] = run
        memory[payload_at : payload_at + payload_bytes] = payload
        self._unannounced += 1
        return True

    def announce(self) -> None:
        """Let the executor take what was put since the last time.

        Raises:
            HandOffViolation: the counter is full.
        """
        count, self._unannounced = self._unannounced, 0
        if count:
            reach("handoff.announcing")
            _ring(self._work, count)

    def take_back(self) -> bool:
        """Take the newest record back; False when the executor has taken all of them."""
        if not self._work.take():
            return False
        reach("handoff.taking_back")
        self._control.forget_cancel(self._put)
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
        if count:
            reach("handoff.collecting")
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
        reader, memory = self._reader, self._memory
        offset = reader.next_offset()
        if not reader.holds(offset, _RETURN_BYTES):
            raise HandOffViolation(f"outcome {expected} is said to lie at {offset}")
        sequence, busy_us, size_bytes = RETURN.unpack_from(memory.view, offset)
        if sequence != expected:
            raise HandOffViolation(f"outcome {expected} was expected, {sequence} came")
        if not reader.holds(offset, _RETURN_BYTES + size_bytes):
            raise HandOffViolation(f"outcome {expected} is said to have {size_bytes} bytes")
        begin = offset + _RETURN_BYTES
        encoded = memory.map[begin : begin + size_bytes]
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
        marked = self._control.begun_sequence - self._answered
        if not 1 <= marked <= open_records:
            return Remains(taken, Progress())
        return Remains(max(taken, marked), self.progress())

    def progress(self) -> Progress:
        """What the executor says of the run that it is at, the oldest that is not answered."""
        return self._control.progress(self._answered + 1)

    def begun_at_ns(self) -> int | None:
        """When the executor says that it began the run that it is at, on CLOCK_BOOTTIME; None before it says so.

        It is not checked: good for a guess, and for nothing that matters to others.
        """
        words = self._memory.words
        began: int = words[BEGUN_TIME_WORD]
        return began if words[BEGUN_SEQUENCE_WORD] == self._answered + 1 else None

    @property
    def was_interrupted(self) -> bool:
        """Whether `JobCancelled` was ever raised in one of its runs. That can come between any two steps of a handler
        or of a library, so what the process holds may be half done: no more should run in it."""
        return self._control.was_interrupted

    def cancel(self, causes: int, *, insist: bool) -> None:
        """Ask the run that it is at, the oldest that is not answered, to stop.

        Args:
            causes: `CancellationCause` values; they add up with those it was asked for before.
            insist: whether it may be interrupted now even if it could find out by itself.
        """
        if self._put > self._answered:
            self._control.cancel(self._answered + 1, causes, insist=insist)
            _ring(self._cancel, 1)

    def log_lines(self) -> str:
        """The last lines that the run it is at has logged: storable, at most 16 KiB."""
        return self._control.log_lines(self._answered + 1)

    def clear_stack(self) -> None:
        """Empty the file of the stack; for the moment before the executor is told to write it."""
        os.pwrite(self._stack, bytes(BLACK_BOX_MAX_BYTES), 0)
        os.lseek(self._stack, 0, os.SEEK_SET)

    @property
    def stack_bytes(self) -> int:
        """How much was written of the stack since it was cleared; it grows while the executor writes."""
        return os.lseek(self._stack, 0, os.SEEK_CUR)

    def stack(self) -> str:
        """The stack that the executor wrote last: storable, at most 16 KiB."""
        written = os.pread(self._stack, BLACK_BOX_MAX_BYTES, 0).partition(b"\0")[0]
        return storable(written.decode(errors="replace"), BLACK_BOX_MAX_BYTES)

    def close(self) -> None:
        """Throw memory and doorbells away."""
        self.forget_memory_descriptor()
        self._memory.close()
        for doorbell in (self._work, self._completions, self._room, self._cancel):
            doorbell.close()
        os.close(self._stack)


def _stack_file() -> int:
    """A descriptor of an empty file in memory, of a size that nobody can change.

    It is opened anew: the kernel lets moves and writes of a shared position wait for each other in files that were
    opened, not in those that `memfd_create` answers. There a write that is under way takes back a move to the start.
    """
    made = os.memfd_create("runwick-stack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(made, BLACK_BOX_MAX_BYTES)
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return os.open(f"/proc/self/fd/{made}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(made)


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
    if outcome.kind is _ABANDONED:
        raise HandOffViolation("only recovery may call an attempt abandoned")
    return outcome


def encode_run(attempt: Attempt) -> bytes:
    """The run that this attempt asks for, as `Run.decode` reads it: `Run.of(attempt).encode()` without the `Run`, for
    nobody here looks at it."""
    kind, lane, policy = attempt.kind, attempt.lane, attempt.policy
    return _ENCODER.encode(
        (
            attempt.job_id,
            attempt.attempt_id,
            kind.name,
            kind.version,
            lane.queue,
            lane.priority,
            attempt.execution,
            policy.max_executions,
            attempt.generation,
            attempt.created_at_ms,
            attempt.metadata,
            attempt.tenant,
            attempt.traceparent,
            attempt.tracestate,
            policy.error_detail == "message",
            attempt.fences,
        )
    )


def encode_outcome(outcome: Outcome) -> bytes:
    """MessagePack for the return ring."""
    return _ENCODER.encode(outcome)


_ENCODER: Final = msgspec.msgpack.Encoder()
