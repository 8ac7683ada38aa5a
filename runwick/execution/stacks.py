"""The Python stack of a run of this process, for people who wonder what it is at. It is read from outside: the run goes
on meanwhile, so the text is about a moment that is over.
"""

import asyncio
import sys
import traceback
from collections.abc import Iterable
from types import CoroutineType, FrameType, GeneratorType
from typing import Any, Final

from runwick.execution.errors import storable

STACK_MAX_BYTES: Final = 16 * 1024
_HEAD_SHARE: Final = 0.25
"""What a cut stack keeps of its outer frames; the inner ones say where the run is."""
_WAITING: Final[dict[type, tuple[str, str]]] = {
    CoroutineType: ("cr_frame", "cr_await"),
    GeneratorType: ("gi_frame", "gi_yieldfrom"),
}
"""Where what can wait keeps its frame and what it waits for. By type: anything else in its place is foreign code."""


def stack_of_thread(thread: int) -> str:
    """Where that thread is, the innermost frame last: storable, at most 16 KiB. Empty when it is gone."""
    frame = sys._current_frames().get(thread)
    return "" if frame is None else _told(reversed(list(traceback.walk_stack(frame))))


def stack_of_task(task: "asyncio.Task[Any]", loop_thread: int) -> str:
    """Where that task is: what it waits for or, when it is the one that its loop runs now, where that thread is.

    Args:
        task: any task, asked from any thread.
        loop_thread: the thread of its loop.
    """
    if asyncio.current_task(task.get_loop()) is task:
        return stack_of_thread(loop_thread)
    return _told((frame, frame.f_lineno) for frame in _suspended(task.get_coro()))


def _suspended(waits: Any) -> list[FrameType]:
    """The frames of a coroutine that waits, outermost first. `Task.get_stack` knows the first one alone."""
    frames: list[FrameType] = []
    while (names := _WAITING.get(type(waits))) is not None:
        frame = getattr(waits, names[0])
        if frame is None:
            break
        frames.append(frame)
        waits = getattr(waits, names[1])
    return frames


def _told(frames: Iterable[tuple[FrameType, int]]) -> str:
    try:
        text = "".join(traceback.StackSummary.extract(iter(frames)).format())
    except Exception as broken:  # where the source comes from is foreign code, a module's own loader
        text = f"(no stack: reading it raised {type(broken).__name__})"
    return storable(text, STACK_MAX_BYTES, head_share=_HEAD_SHARE)
