"""The compiled part of an executor, where it was built: the deadline timer, and the counting of allocations.

    load ─▶ Library, or why there is none      in the zygote, which uses nothing of it
    Library.keep_fence · count_allocations     in an executor, after its fork
    Library.look_at_fence                      before each run

Everything else works without it; what then holds is said by the grade.
"""

import ctypes
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runwick_supervisor.control import ALLOCATIONS_WORD
from runwick_supervisor.memory import SharedMemory

LIBRARY: Final = Path(__file__).parent / "runwick_native.so"
_ABI: Final = 2
_POLL_NS: Final = 100_000_000
_WORD_BYTES: Final = 8


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
        self.look_at_fence: Callable[[], object] = self._locked.rw_fence_look
        """Arm the timer at the moment that is said now, which the thread would see a little later."""

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

    def count_allocations(self, memory: SharedMemory) -> None:
        """From now on what Python's allocators hand out in this process is counted in that memory. Once.

        Raises:
            OSError: it cannot be done here.
        """
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            raise OSError("this Python has no lock under which it could be counted")
        words = (ctypes.c_uint64 * 4).from_buffer(memory.map, ALLOCATIONS_WORD * _WORD_BYTES)
        api = ctypes.pythonapi
        if refused := self._locked.rw_alloc_install(api.PyMem_GetAllocator, api.PyMem_SetAllocator, words):
            raise OSError(refused, os.strerror(refused))


def load(path: Path = LIBRARY) -> tuple[Library | None, str | None]:
    """The library, or None and why there is none."""
    if not path.exists():
        return None, "the compiled part was not built when Runwick was installed; a C compiler is needed for that"
    try:
        return Library(path), None
    except (OSError, AttributeError) as error:
        return None, f"the compiled part cannot be used here: {error}"
