"""An executor's life, from the fork to its end: `live`, read from top to bottom.

    moved out ─▶ parent's word ─▶ adopted ─▶ ready ─▶ run · run · run ─▶ told to stop ─▶ providers closed ─▶ end

It runs one attempt at a time in its main thread, knows no store and no lease, and dies with its parent, or when its
moment in the fence has passed. Python has no other thread here; the compiled part's, where there is one, runs no Python
code. It never returns into the zygote's code and never runs the zygote's exit handlers.
"""

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog
from runwick.execution.invoke import Invoker
from runwick.execution.run import Run
from runwick.runtime import place
from runwick.runtime.ambient import SystemClock
from runwick_supervisor import processes
from runwick_supervisor.blackbox import LogTail, write_stacks_to
from runwick_supervisor.control import Phase
from runwick_supervisor.executor_end import ExecutorEnd, out_of_reach
from runwick_supervisor.handoff import Descriptors, RecordKind, encode_outcome
from runwick_supervisor.interrupting import Interrupting
from runwick_supervisor.metering import measuring
from runwick_supervisor.native import Library
from runwick_supervisor.scheduling import Scheduling

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
    fence: int
    """The descriptor of the fence's memory; its slot is its number."""
    library: Library | None
    """The compiled part, where it is used."""
    count_allocations: bool
    oom_score_adj: int
    """How much sooner the kernel should kill it than others when memory runs out; never lowered."""
    scheduling: Scheduling = Scheduling()


def live(origin: Origin) -> NoReturn:
    """Be an executor. Called in the fork; ends the process."""
    status = FAULT_STATUS
    try:
        move_out(origin)
        end = ExecutorEnd(out_of_reach(origin.descriptors))
        end.control.phase(Phase.BOOT)
        wait_for_word(end, origin)
        join_parent(origin)
        title = Title(origin)
        interrupting = Interrupting(end.control, end.cancel_bell)
        invoker = Invoker(
            origin.catalog,
            clock=SystemClock(),
            record_usage=origin.record_usage,
            begun=end.control.begun,
            moved=interrupting.moved,
            measure=measuring(end, origin.library, count_allocations=origin.count_allocations),
            alone=True,
        )
        os.register_at_fork(after_in_child=end.control.write_for_nobody)
        LogTail(end.control).install()
        write_stacks_to(end.stack_descriptor)
        interrupting.listen(invoker)
        keep_fence(origin)
        work(origin, end, invoker, interrupting, title)
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
    offer_to_the_kernel(origin.oom_score_adj)
    origin.scheduling.apply(origin.number)


def offer_to_the_kernel(oom_score_adj: int) -> None:
    """Let the kernel take this process before others when memory runs out; where it cannot be told, it chooses."""
    with contextlib.suppress(OSError, ValueError):
        score = Path("/proc/self/oom_score_adj")
        if int(score.read_text()) < oom_score_adj:
            score.write_text(str(oom_score_adj))


def keep_fence(origin: Origin) -> None:
    """Arm the deadline timer, where the compiled part is used. Without it the zygote watches alone."""
    if origin.library is not None:
        try:
            origin.library.keep_fence(origin.fence, origin.number)
        except OSError as error:
            print(f"the deadline timer cannot be kept: {error}", file=sys.stderr)


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


def work(origin: Origin, end: ExecutorEnd, invoker: Invoker, interrupting: Interrupting, title: "Title") -> None:
    """Take and answer records until one says stop."""
    ready = encode_outcome(Outcome(OutcomeKind.SUCCEEDED))
    own = os.getpid()
    stop, go = RecordKind.STOP, RecordKind.GO  # before Python 3.12 looking a member up in its class is a call
    look_at_fence = origin.library.look_at_fence if origin.library is not None else lambda: None
    while True:
        kind, encoded_run, payload = end.take(_IDLE_MS, title.idle)
        if kind == stop:
            return
        if kind == go:
            end.finish(ready)
            continue
        look_at_fence()
        run = Run.decode(encoded_run)
        title.running(run.name)
        outcome = invoker.invoke_blocking(run, payload, token=interrupting.token())
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
