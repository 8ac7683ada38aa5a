"""The compiled part of an executor, where it was built: the deadline timer, the counting of allocations, and the
readings before and after an attempt.

    load ─▶ Library, or why there is none                    in the zygote
    Library.fork_away                                        there, for each executor
    Library.keep_fence · count_allocations · read_usage      in an executor, after its fork
    Library.look_at_fence · start_usage · end_usage          for each run

Everything else works without it; what then holds is said by the grade.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runwick_supervisor.control import ALLOCATIONS_WORD, BASELINE_WORD, WORD_BYTES, Baseline
from runwick_supervisor.memory import SharedMemory

LIBRARY: Final = Path(__file__).parent / "runwick_native.so"
_ABI: Final = 4
_POLL_NS: Final = 100_000_000
_ALLOCATIONS_WORDS: Final = 4

_written: Final[list[object]] = []
"""Memory that the library writes into: it stays as long as this process."""


class Library:
    """The loaded library."""

    def __init__(self, path: Path) -> None:
        # Once for what may wait, and once for what must keep the interpreter's lock.
        self._free = ctypes.CDLL(str(path))
        self._locked = ctypes.PyDLL(str(path))
        if self._free.rw_abi() != _ABI:
            raise OSError(f"{path.name} was built for another release")
        if refused := self._free.rw_fence_check():
            raise OSError(refused, os.strerror(refused))
        self.forks_away = hasattr(self._locked, "rw_fork_away")
        """Whether `fork_away` was built: only where libc lets it tell the kernel all that the kernel forgets by it."""
        self.look_at_fence: Callable[[], object] = self._locked.rw_fence_look
        """Arm the timer at the moment that is said now, which the thread would see a little later."""
        self.start_usage: Callable[[], object] = self._locked.rw_usage_start
        """An attempt begins."""
        self.end_usage: Callable[[], object] = self._locked.rw_usage_end
        """It has ended: write what it cost."""
        for function in (self._locked.rw_fence_look, self._locked.rw_usage_start, self._locked.rw_usage_end):
            function.restype = None

    def keep_fence(self, descriptor: int, slot: int) -> None:
        """From now on the kernel kills this process when its moment has passed. A thread sees to it, which no Python
        code ever runs in; it is away while this process forks, so that it forks as one that is single-threaded.

        Raises:
            OSError: there is no room for a thread or a timer.
        """
        later = ctypes.pythonapi.Py_AddPendingCall
        if refused := self._free.rw_fence_start(descriptor, slot, ctypes.c_uint64(_POLL_NS), later):
            raise OSError(refused, os.strerror(refused))
        # Both without a line of Python, which would be a moment for pending calls, and under the interpreter's lock,
        # for several threads of a handler may fork at once.
        os.register_at_fork(before=self._locked.rw_fence_stop, after_in_parent=self._locked.rw_fence_resume_soon)

    def fork_away(self) -> tuple[int, int]:
        """Fork a process whose own parent is gone when this returns: its pid, 0 in it, and that parent's pid.

        Raises:
            OSError: it cannot be forked.
        """
        api, middle = ctypes.pythonapi, ctypes.c_int(0)
        around = api.PyOS_BeforeFork, api.PyOS_AfterFork_Parent, api.PyOS_AfterFork_Child
        pid: int = self._locked.rw_fork_away(*around, ctypes.byref(middle))
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid, middle.value

    def count_allocations(self, memory: SharedMemory) -> None:
        """From now on what Python's allocators hand out in this process is counted in that memory. Once.

        Raises:
            OSError: it cannot be done here.
        """
        if "t" in sys.abiflags:
            raise OSError("this Python has no lock under which it could be counted")
        words = (ctypes.c_uint64 * _ALLOCATIONS_WORDS).from_buffer(memory.map, ALLOCATIONS_WORD * WORD_BYTES)
        api = ctypes.pythonapi
        if refused := self._locked.rw_alloc_install(api.PyMem_GetAllocator, api.PyMem_SetAllocator, words):
            raise OSError(refused, os.strerror(refused))
        _written.append(words)

    def read_usage(self, clear_refs: int, statm: int, memory: SharedMemory, cost: bytearray) -> None:
        """From now on what the process had used before an attempt is left in that memory, and what the attempt used is
        written into `cost`, in whole words. Once.

        Args:
            clear_refs: a descriptor of this process's own file, -1 where there is none; so the next.
            statm: as said.
            memory: where the parent finds its `Baseline`.
            cost: in the order in which `runwick_supervisor.metering` reads it.

        Raises:
            OSError: it cannot be done here.
        """
        baseline = (ctypes.c_int64 * len(Baseline._fields)).from_buffer(memory.map, BASELINE_WORD * WORD_BYTES)
        words = (ctypes.c_int64 * (len(cost) // WORD_BYTES)).from_buffer(cost)
        if refused := self._locked.rw_usage_install(clear_refs, statm, baseline, words):
            raise OSError(refused, os.strerror(refused))
        _written.extend((baseline, words))


def load(path: Path = LIBRARY) -> tuple[Library | None, str | None]:
    """The library, or None and why there is none."""
    if not path.exists():
        return None, "the compiled part was not built when Runwick was installed; a C compiler is needed for that"
    try:
        return Library(path), None
    except (OSError, AttributeError) as error:
        return None, f"the compiled part cannot be used here: {error}"
