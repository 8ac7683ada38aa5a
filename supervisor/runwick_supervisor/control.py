"""The control area of the shared memory: what the running attempt is at, what it had used when it began, who wants it
to stop. Each 64 bytes have one writer; every word is whole, so none can be read half-written.

    words    0   the attempt that has begun · when · its phase · since when that closes · which was interrupted
             5   bytes of its log, and which attempt's they are
             8   what the process had used when the attempt began: `Baseline`
            24   allocations so far: bytes, blocks, raw bytes, raw blocks; the compiled part counts here
            32   the cancel word, written by the parent: which attempt · whether to insist · causes
    bytes 4096   the log ring: 16 KiB, written round and round

An attempt is named by the sequence number of its work record, and a fact counts only beside the number that it was
written for: what an earlier attempt left is nobody's. A handler can write here, so the parent checks all that it reads.
"""

import enum
import mmap
import resource
import struct
import time
from typing import Final, NamedTuple

from runwick.execution.errors import storable
from runwick.execution.failures import CLOSE, DECODE, Step
from runwick.runtime.crossings import reach
from runwick_supervisor.memory import CONTROL_BYTES, LOG_BYTES, LOG_START, SharedMemory

BEGUN_SEQUENCE_WORD: Final = 0
BEGUN_TIME_WORD: Final = 1
PHASE_WORD: Final = 2
PHASE_SINCE_WORD: Final = 3
INTERRUPTED_WORD: Final = 4
LOG_BYTES_WORD: Final = 5
LOG_SEQUENCE_WORD: Final = 6
BASELINE_WORD: Final = 8
ALLOCATIONS_WORD: Final = 24
CANCEL_WORD: Final = 32

WORD_BYTES: Final = 8
_SEQUENCE_SHIFT: Final = 16
_INSIST: Final = 1 << 8
_CAUSES: Final = 0xFF
_AMOUNT_MAX: Final = 2**53 - 1


class Phase(enum.IntEnum):
    """Where in its life an executor and its attempt stand; a step of the attempt's has its own number."""

    IDLE = 0
    BOOT = 1
    DECODE = Step.DECODE
    PROVIDE = Step.PROVIDE
    HANDLE = Step.HANDLE
    ENCODE = Step.ENCODE
    CLOSE = Step.CLOSE


_RUNNING: Final = {phase.value: phase.name.lower() for phase in Phase if phase >= Phase.DECODE}


class Baseline(NamedTuple):
    """What an executor's process had used, all its life, when the attempt began."""

    utime_us: int
    stime_us: int
    children_us: int
    minflt: int
    majflt: int
    nvcsw: int
    nivcsw: int
    children_maxrss_kib: int
    alloc_bytes: int
    alloc_blocks: int


_BASELINE: Final = struct.Struct(f"{len(Baseline._fields)}Q")
_COUNTERS: Final = struct.Struct("4Q")


class Allocations(NamedTuple):
    """What Python's allocators handed out."""

    allocated_bytes: int
    blocks: int


class Progress(NamedTuple):
    """What an executor has written about an attempt; None is what it has not written, or cannot have written."""

    begun_at_ns: int | None = None
    """On CLOCK_BOOTTIME."""
    phase: str | None = None
    """``decode``, ``provide``, ``handle``, ``encode`` or ``close``."""
    phase_since_ns: int | None = None
    """Since when it closes its providers, on CLOCK_BOOTTIME; None in every other phase."""
    interrupted: bool = False
    """Whether `JobCancelled` was raised in it."""
    before: Baseline | None = None
    allocated: Allocations | None = None
    """Since it began; None where nothing counts them."""


class ControlReader:
    """The parent's side: reads, checked, what concerns the attempt it asks for, and says who should stop."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._words = memory.words

    @property
    def begun_sequence(self) -> int:
        """The attempt that bears the begun mark, as far as that can be believed."""
        sequence: int = self._words[BEGUN_SEQUENCE_WORD]
        return sequence

    @property
    def was_interrupted(self) -> bool:
        """Whether any attempt was interrupted."""
        return bool(self._words[INTERRUPTED_WORD])

    def progress(self, sequence: int) -> Progress:
        """What is known of this attempt."""
        words = self._words
        if words[BEGUN_SEQUENCE_WORD] != sequence:
            return Progress()
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        phase = words[PHASE_WORD]
        before = self._baseline()
        return Progress(
            _past(words[BEGUN_TIME_WORD], now_ns),
            _RUNNING.get(phase),
            _past(words[PHASE_SINCE_WORD], now_ns) if phase == Phase.CLOSE else None,
            words[INTERRUPTED_WORD] == sequence,
            before,
            None if before is None else self._allocated_since(before),
        )

    def _baseline(self) -> Baseline | None:
        baseline = Baseline(*_BASELINE.unpack_from(self._memory.view, BASELINE_WORD * WORD_BYTES))
        return baseline if 0 < max(baseline) <= _AMOUNT_MAX else None

    def _allocated_since(self, before: Baseline) -> Allocations | None:
        allocated_bytes, blocks = allocations(self._memory)
        allocated = Allocations(allocated_bytes - before.alloc_bytes, blocks - before.alloc_blocks)
        believable = before.alloc_blocks and min(allocated) >= 0 and max(allocated) <= _AMOUNT_MAX
        return allocated if believable else None

    def log_lines(self, sequence: int) -> str:
        """The last lines that this attempt logged: storable, at most 16 KiB."""
        words = self._words
        written = words[LOG_BYTES_WORD]
        if words[LOG_SEQUENCE_WORD] != sequence or not written:
            return ""
        ring = bytes(self._memory.view[LOG_START : LOG_START + LOG_BYTES])
        if written <= LOG_BYTES:
            return _newest(ring[:written])
        end = written % LOG_BYTES
        # The oldest line was overwritten in part.
        return _newest((ring[end:] + ring[:end]).partition(b"\n")[2])

    def cancel(self, sequence: int, causes: int, *, insist: bool) -> None:
        """Ask this attempt to stop, for these causes beside those it was asked for already."""
        word = self._words[CANCEL_WORD]
        if word >> _SEQUENCE_SHIFT != sequence:
            word = sequence << _SEQUENCE_SHIFT
        self._words[CANCEL_WORD] = word | causes & _CAUSES | (_INSIST if insist else 0)

    def forget_cancel(self, sequence: int) -> None:
        """This number will be another attempt's: nobody has asked that one."""
        if self._words[CANCEL_WORD] >> _SEQUENCE_SHIFT == sequence:
            self._words[CANCEL_WORD] = 0


class ControlWriter:
    """The executor's side: writes what its attempt is at, and reads whether it should stop. `sequence` names it."""

    __slots__ = ("_map", "_shared", "_words", "sequence")

    def __init__(self, memory: SharedMemory) -> None:
        self._shared = memory.words
        self._map: mmap.mmap | bytearray = memory.map
        self._words = memory.words
        self.sequence = 0

    def write_for_nobody(self) -> None:
        """From now on only read what is shared. For a fork of the executor, which goes the same way as its parent: what
        it is at is not what the attempt is at."""
        self._map = bytearray(CONTROL_BYTES)
        self._words = memoryview(self._map).cast("Q")

    def begun(self) -> None:
        """Mark the attempt as begun, now. The time goes first: it counts only with its sequence."""
        reach("handoff.measuring")
        words = self._words
        words[PHASE_WORD] = DECODE
        words[BEGUN_TIME_WORD] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        reach("handoff.beginning")
        words[BEGUN_SEQUENCE_WORD] = self.sequence

    def phase(self, phase: Phase | Step) -> int:
        """The attempt stands there from now on; answers the cancel word, in which somebody may have asked before."""
        words = self._words
        if phase == CLOSE:
            words[PHASE_SINCE_WORD] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        words[PHASE_WORD] = phase
        word: int = self._shared[CANCEL_WORD]
        return word

    def interrupted(self) -> None:
        """`JobCancelled` is about to be raised in the attempt."""
        self._words[INTERRUPTED_WORD] = self.sequence

    def baseline(
        self, own: resource.struct_rusage, children: resource.struct_rusage, allocated: tuple[int, int]
    ) -> None:
        """What the process and its waited-for children have used, and what was allocated: the parent reads it as
        `Baseline`. Before the begun mark of the attempt."""
        _BASELINE.pack_into(
            self._map,
            BASELINE_WORD * WORD_BYTES,
            _microseconds(own.ru_utime),
            _microseconds(own.ru_stime),
            _microseconds(children.ru_utime + children.ru_stime),
            own.ru_minflt,
            own.ru_majflt,
            own.ru_nvcsw,
            own.ru_nivcsw,
            children.ru_maxrss,
            *allocated,
        )

    @property
    def cancel_word(self) -> int:
        """Whatever the parent wrote there last, for whichever attempt; it changes when somebody is asked."""
        word: int = self._shared[CANCEL_WORD]
        return word

    def causes_of(self, sequence: int) -> int:
        """Why that attempt should stop; 0 while it need not."""
        word: int = self._shared[CANCEL_WORD]
        return word & _CAUSES if word >> _SEQUENCE_SHIFT == sequence else 0

    @property
    def insists(self) -> bool:
        """Whether the parent insists that the attempt stops; means nothing while it does not ask."""
        return bool(self._shared[CANCEL_WORD] & _INSIST)

    def log(self, line: bytes) -> None:
        """Write one line into the log of the attempt; at most as long as the ring."""
        words = self._words
        written = words[LOG_BYTES_WORD]
        if words[LOG_SEQUENCE_WORD] != self.sequence:
            words[LOG_BYTES_WORD] = written = 0
            words[LOG_SEQUENCE_WORD] = self.sequence
        at = written % LOG_BYTES
        first = line[: LOG_BYTES - at]
        rest = line[len(first) :]
        self._map[LOG_START + at : LOG_START + at + len(first)] = first
        self._map[LOG_START : LOG_START + len(rest)] = rest
        reach("handoff.logging")
        words[LOG_BYTES_WORD] = written + len(line)


def allocations(memory: SharedMemory) -> tuple[int, int]:
    """Bytes and blocks that the compiled part has counted in this memory so far; zeros where it counts nothing."""
    counted_bytes, blocks, raw_bytes, raw_blocks = _COUNTERS.unpack_from(memory.view, ALLOCATIONS_WORD * WORD_BYTES)
    return counted_bytes + raw_bytes, blocks + raw_blocks


def _microseconds(seconds: float) -> int:
    return int(seconds * 1_000_000 + 0.5)


def _newest(lines: bytes) -> str:
    """What an executor logged, as a store can keep it; replaced characters can make it longer than it was."""
    return storable(lines.decode(errors="replace"), LOG_BYTES, head_share=0.0)


def _past(moment_ns: int, now_ns: int) -> int | None:
    return moment_ns if 0 < moment_ns <= now_ns else None
