"""Where in the user's code something was declared, for messages and for names that only that place knows."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def calling_frame() -> FrameType:
    """The innermost frame that is not Runwick's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return frame


def place_of_call() -> str:
    """File and line of the code that called Runwick: ``/srv/app/thumbs/jobs.py:12``."""
    frame = calling_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place_of(function: Callable[..., Any]) -> str:
    """File and line where a function is defined."""
    code = getattr(function, "__code__", None)
    return "its definition" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and (module == _PACKAGE or module.startswith(f"{_PACKAGE}."))


def depth_of_call() -> int:
    """How many frames the caller of this function is above the code that called Runwick: a warning's stacklevel."""
    wanted = calling_frame()
    frame: FrameType | None = sys._getframe(1)
    depth = 1
    while frame is not None and frame is not wanted:
        frame = frame.f_back
        depth += 1
    return depth
