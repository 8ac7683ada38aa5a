"""The clients' book: what was asked goes to the disk before it is asked, what was answered as soon as it is known.

Several processes can write into one file, each line in one append. Whatever dies leaves a request without answer.
"""

import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlCommand, ControlReply, SteerCommand, SteerReply
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import ItemFailure, RunwickError, UniquenessConflict
from runwick.stores.steering import audit_target
from tests.chaos.history import Given, Line, Mark, Returned, Wanted

_lines = msgspec.json.Decoder(Line)
_marks = msgspec.json.Decoder(Mark)


class Book:
    """Writes lines.

    Args:
        path: where to; None keeps them in `lines` alone.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.lines: list[Line] = []
        """What was written through this object."""
        self._descriptor = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._numbers = itertools.count(os.getpid() << 32)

    def dispatch(self, act: str, commands: Sequence[Command], at_ms: int) -> int:
        """Note a dispatch about to be sent; answers its number."""
        return self._invoke(act=act, jobs=[Wanted.by(command, at_ms) for command in commands], at_ms=at_ms)

    def order(self, command: ControlCommand | SteerCommand, at_ms: int) -> int:
        """Note what an operator is about to ask; answers its number."""
        asked: dict[str, Any] = {"act": command.action.value, "command_id": command.command_id, "at_ms": at_ms}
        if isinstance(command, SteerCommand):
            return self._invoke(queue_or_scope=audit_target(command), **asked)
        return self._invoke(targets=list(command.targets), **asked)

    def confirmed(self, call: int, answers: Sequence[Receipt | ItemFailure], at_ms: int) -> None:
        self._write(Line(what="ok", call=call, given=[Given.by(answer) for answer in answers], at_ms=at_ms))

    def replied(self, call: int, reply: ControlReply, at_ms: int) -> None:
        self._write(
            Line(what="ok", call=call, answers=list(reply.answers), replayed=reply.replayed, at_ms=at_ms),
        )

    def steered(self, call: int, reply: SteerReply, at_ms: int) -> None:
        self._write(Line(what="ok", call=call, steered=reply, replayed=reply.replayed, at_ms=at_ms))

    def failed(self, call: int, error: RunwickError, at_ms: int) -> None:
        """It was said that nothing was written; of a conflict, for which of the jobs."""
        given = []
        if isinstance(error, UniquenessConflict):
            conflict = ItemFailure(error.ordinal, error.code, error.message, error.conflicting_job_id)
            given = [Given(None)] * error.ordinal + [Given.by(conflict)]
        self._write(Line(what="fail", call=call, code=error.code, given=given, at_ms=at_ms))

    def unknown(self, call: int, at_ms: int) -> None:
        self._write(Line(what="unknown", call=call, at_ms=at_ms))

    def given_back(self, attempts: Sequence[Attempt]) -> None:
        """A worker is about to give these back."""
        returned = [Returned(attempt.attempt_id, attempt.job_id) for attempt in attempts]
        if returned:
            self._write(
                Line(what="back", call=next(self._numbers), returned=returned, at_ms=time.time_ns() // 1_000_000)
            )

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _invoke(self, **facts: Any) -> int:
        call = next(self._numbers)
        self._write(Line(what="invoke", call=call, **facts))
        return call

    def _write(self, line: Line) -> None:
        self.lines.append(line)
        if self._descriptor is not None:
            os.write(self._descriptor, msgspec.json.encode(line) + b"\n")
            os.fsync(self._descriptor)


def read_book(path: Path) -> list[Line]:
    """All lines of a file."""
    return [_lines.decode(line) for line in path.read_bytes().splitlines()]


def read_marks(path: Path) -> list[Mark]:
    """All marks of the handlers' log."""
    return [_marks.decode(line) for line in path.read_bytes().splitlines()]
