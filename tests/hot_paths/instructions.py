"""How many instructions of Python bytecode a piece of work takes in this thread: the same on every machine, whatever
else it does, but another number in each version of Python.

Those of installed packages are left out, since another release of one is nothing that the project did, and so are those
of the tests.
"""

import functools
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

_TESTS: Final = str(Path(__file__).parents[1])


class Instructions:
    """Those of this thread, as far as they are `counted`."""

    def __init__(self) -> None:
        self.count = 0
        self._is_paused = False
        self._tracer: Any = None
        self._collects = False

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what this thread executes meanwhile."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def begin(self) -> None:
        """Count from now on, also in the functions that called this one. The collector, which may call back at any
        moment, waits."""
        self._collects, self._tracer = gc.isenabled(), sys.gettrace()
        gc.disable()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            frame.f_trace = self._entered(frame, "call", None)
            frame = frame.f_back
        sys.settrace(self._entered)

    def end(self) -> None:
        """Count no more."""
        sys.settrace(self._tracer)
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back
        if self._collects:
            gc.enable()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count nothing of what is entered meanwhile; the functions around that go on counting."""
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._is_paused or not _is_counted(frame.f_code.co_filename):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.count += 1
        return self._stepped


@functools.cache
def _is_counted(file: str) -> bool:
    return "site-packages" not in file and not file.startswith(_TESTS)
