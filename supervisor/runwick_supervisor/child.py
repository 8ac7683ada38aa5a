"""An executor's life, from the fork to its end: `live`, read from top to bottom.

    moved out ─▶ parent's word ─▶ adopted ─▶ ready ─▶ run · run · run ─▶ told to stop ─▶ providers closed ─▶ end

It runs one attempt at a time in its main thread, starts no thread of its own, knows no store and no lease, and dies
with its parent. It never returns into the zygote's code and never runs the zygote's exit handlers.
"""

import os
import sys
import time
import traceback
from typing import Any, Final, NamedTuple, NoReturn

from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog
from runwick.execution.invoke import Invoker
from runwick.execution.run import Run
from runwick.runtime import place
from runwick.runtime.ambient import SystemClock
from runwick_supervisor import processes
from runwick_supervisor.handoff import Descriptors, ExecutorEnd, RecordKind, encode_outcome

FAULT_STATUS: Final = 70
"""The exit status after an error of Runwick's own; its traceback is on standard error."""

_WORD_POLL_MS: Final = 100
_ADOPTION_POLL_S: Final = 0.0002
_IDLE_MS: Final = 100
"""An executor that waits so long is shown as idle."""


class Origin(NamedTuple):
    """What an executor is born with."""

    number: int
    catalog: Catalog
    descriptors: Descriptors
    parent: int
    """The supervisor, which becomes its parent…"""
    middle: int
    """…when this process, which forked it, has ended."""
    inherited: tuple[int, ...]
    """Descriptors of the zygote's that it must not keep."""
    record_usage: bool


def live(origin: Origin) -> NoReturn:
    """Be an executor. Called in the fork; ends the process."""
    status = FAULT_STATUS
    try:
        move_out(origin)
        end = ExecutorEnd(origin.descriptors)
        wait_for_word(end, origin)
        join_parent(origin)
        title = Title(origin)
        invoker = Invoker(
            origin.catalog, clock=SystemClock(), record_usage=origin.record_usage, begun=end.begun, alone=True
        )
        work(end, invoker, title)
        invoker.close()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        flush_streams()
        processes.leave(status)


def move_out(origin: Origin) -> None:
    """Leave the zygote's family: a session of its own, its own orphans, no descriptor and no chance shared."""
    place.enter_executor()
    os.setsid()
    processes.adopt_orphans()
    for descriptor in origin.inherited:
        os.close(descriptor)
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        # The standard library reseeds its own generator in every fork, numpy does not.
        numpy_random.seed()


def wait_for_word(end: ExecutorEnd, origin: Origin) -> None:
    """Wait until the parent has put something there: then it knows this process. End if everybody is gone first."""
    while not end.wait(_WORD_POLL_MS):
        if os.getppid() not in (origin.middle, origin.parent):
            processes.leave(0)


def join_parent(origin: Origin) -> None:
    """Become the supervisor's child, which the end of the middle process brings about, and die with it from then on."""
    while os.getppid() == origin.middle:
        time.sleep(_ADOPTION_POLL_S)
    processes.die_with_parent(origin.parent)


def work(end: ExecutorEnd, invoker: Invoker, title: "Title") -> None:
    """Take and answer records until one says stop."""
    ready = encode_outcome(Outcome(OutcomeKind.SUCCEEDED))
    own = os.getpid()
    while True:
        kind, encoded_run, payload = end.take(_IDLE_MS, title.idle)
        if kind == RecordKind.STOP:
            return
        if kind == RecordKind.GO:
            end.finish(ready)
            continue
        run = Run.decode(encoded_run)
        title.running(run.name)
        outcome = invoker.invoke_blocking(run, payload)
        if os.getpid() != own:
            # The handler forked, and this is its child coming back: it must not answer and take work beside its parent.
            processes.leave(0)
        end.finish(encode_outcome(outcome))


class Title:
    """What process lists show. Setting it costs less than a microsecond, and only a change sets it."""

    def __init__(self, origin: Origin) -> None:
        self._idle = f"runwick executor {origin.number} {origin.catalog.application}"
        self._shown = ""
        self.idle()

    def running(self, name: str) -> None:
        """A job of this name runs."""
        if name != self._shown:
            self._shown = name
            processes.set_title(f"{self._idle}: {name}")

    def idle(self) -> None:
        """Nothing has run for a while; let what was printed out meanwhile."""
        self._shown = ""
        processes.set_title(self._idle)
        flush_streams()


def flush_streams() -> None:
    """Let what handlers printed out; a stream that cannot be written must not keep the process."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
