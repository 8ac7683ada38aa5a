"""The handlers' bodies, the same for every system: each takes one value and counts on the board that it has ended.

Standard library alone: this module is imported in the environments of the other systems.
"""

import hashlib
import os
import time
from collections.abc import Callable
from typing import Any, Final

from scripts.peers.board import writer
from scripts.peers.sides.kinds import LIMIT_S, LIMITED, LINGER_S

__all__ = ["KINDS", "LIMITED", "LIMIT_S", "value"]

TEXT: Final = "a payload of about a hundred bytes, since a job that carries nothing at all is not one that users have"
"""What `nothing` carries."""
_UNNUMBERED: Final = -1
"""What jobs that are no `linger` tell for a number: none that a `linger` of the same process has."""

_board = writer()


def nothing(_text: str) -> None:
    """Costs what every job costs."""
    _board.count()


def spin(iterations: int) -> None:
    """Pure Python at work; the cost is proportional to `iterations`."""
    started_ns = time.thread_time_ns()
    total = 0
    for number in range(iterations):
        total += number * number % 7
    _board.count(time.thread_time_ns() - started_ns)


def stamp(sent_ns: int) -> None:
    """Tell how long ago, on the steady clock, the producer began to dispatch this."""
    _board.tell("delay", time.monotonic_ns() - sent_ns)
    _board.count()


def linger(number: int) -> None:
    """Tell who runs this from when to when, and let `LINGER_S` pass between."""
    _board.tell("begin", number, os.getpid(), time.monotonic_ns())
    time.sleep(LINGER_S)
    _board.tell("end", number, os.getpid(), time.monotonic_ns())
    _board.count()


def python_loop(seconds: float) -> None:
    """Pure Python that computes for so long, without a look at anything that could stop it."""
    _told(_loop, seconds)


def c_call_releasing(seconds: float) -> None:
    """One call into C that computes for about so long and lets other threads run meanwhile."""
    _told(_derive, seconds)


def c_call_holding(seconds: float) -> None:
    """One call into C that computes for about so long and holds the interpreter's lock all the while."""
    _told(_sum, seconds)


KINDS: Final[dict[str, Callable[[Any], None]]] = {
    "nothing": nothing,
    "spin": spin,
    "stamp": stamp,
    "linger": linger,
    "python_loop": python_loop,
    "c_call_releasing": c_call_releasing,
    "c_call_holding": c_call_holding,
}
"""Every kind of job by its name; a side declares one job for each."""


def value(kind: str, number: int, argument: float) -> Any:
    """What the `number`-th job of this kind carries; a `stamp` carries the moment of this call."""
    if kind == "nothing":
        return TEXT
    if kind == "spin":
        return int(argument)
    if kind == "stamp":
        return time.monotonic_ns()
    return number if kind == "linger" else argument


def _told(body: Callable[[float], None], seconds: float) -> None:
    _board.tell("begin", _UNNUMBERED, os.getpid(), time.monotonic_ns())
    body(seconds)
    _board.tell("end", _UNNUMBERED, os.getpid(), time.monotonic_ns())


def _loop(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        pass


def _derive(seconds: float) -> None:
    _for_about(seconds, lambda rounds: hashlib.pbkdf2_hmac("sha256", b"neutral", b"salt", rounds))


def _sum(seconds: float) -> None:
    _for_about(seconds, lambda numbers: sum(range(numbers)))


def _for_about(seconds: float, call: Callable[[int], object]) -> None:
    """Call once with a size that takes so long, to judge by a call that takes little."""
    size = 100_000
    started_s = time.monotonic()
    call(size)
    call(round(size * seconds / (time.monotonic() - started_s)))
