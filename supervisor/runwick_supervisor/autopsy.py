"""What the death of an executor means, for the run that it was at and for who is told of it."""

import signal
from collections.abc import Sequence

from runwick.contracts.backends import Completion
from runwick.contracts.cancelling import CancellationCause
from runwick.management.amounts import size
from runwick_supervisor.deaths import OomWitness
from runwick_supervisor.events import EventKind, ExecutorEvent
from runwick_supervisor.executor import Executor
from runwick_supervisor.processes import Ending
from runwick_supervisor.stopping import CRASHED, LEASE_LOST, OUT_OF_MEMORY, Verdict


def verdict_of(executor: Executor, ending: Ending, witness: OomWitness) -> Verdict:
    """What its run ended in: why we killed it if we did, otherwise who else may have done so."""
    stopping = executor.stopping
    if executor.killed_for is not None:
        return executor.killed_for
    if stopping is not None and (executor.violation is not None or CancellationCause.TIMEOUT in stopping.causes):
        return stopping.verdict
    if ending.signal == signal.SIGKILL:
        if executor.is_fenced_off():
            return LEASE_LOST
        if witness.claims():
            return OUT_OF_MEMORY
    return CRASHED


def event_of_death(
    executor: Executor, verdict: Verdict, ending: Ending, victims: Sequence[Completion]
) -> ExecutorEvent | None:
    """What people are told of it; nothing of one that ended because it was told to, or was not wanted any more."""
    is_ours = executor.killed_for is not None
    if not victims and not is_ours and (executor.told_to_end or executor.is_unwanted):
        return None
    usage = victims[0].outcome.usage if victims else None
    peak_bytes = None if usage is None else usage.rss_peak_bytes
    peak = "" if peak_bytes is None else f", peak {size(peak_bytes)}"
    return ExecutorEvent(
        kind=EventKind.EXECUTOR_STOPPED if is_ours else EventKind.EXECUTOR_DIED,
        text=(f"was killed: {_why(verdict)}" if is_ours else f"died: {_how(verdict, ending)}") + peak,
        executor=executor.number,
        pid=executor.pid,
        attempt=victims[0].attempt if victims else None,
    )


def _why(verdict: Verdict) -> str:
    """Why we killed it: that it died of SIGKILL needs no words then."""
    return verdict.of_executor or verdict.text


def _how(verdict: Verdict, ending: Ending) -> str:
    """How it died, with who did it where that is known."""
    if verdict is LEASE_LOST:
        return f"{ending} after its lease had run out"
    return verdict.text if verdict is OUT_OF_MEMORY else str(ending)
