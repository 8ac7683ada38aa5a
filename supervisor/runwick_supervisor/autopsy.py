"""What the death of an executor means, for the run that it was at and for who is told of it."""

import signal
from collections.abc import Sequence

from runwick.contracts.backends import Completion
from runwick.contracts.cancelling import CancellationCause
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
    """What people are told of it; nothing of one that ended because it was told to."""
    is_ours = executor.killed_for is not None
    if executor.told_to_end and not victims and not is_ours:
        return None
    text = f"{verdict.text}: {ending}" if verdict.text else str(ending)
    usage = victims[0].outcome.usage if victims else None
    if usage is not None and usage.rss_peak_bytes is not None:
        text += f" (peak {usage.rss_peak_bytes / 2**30:.2f} GiB)"
    return ExecutorEvent(
        kind=EventKind.EXECUTOR_STOPPED if is_ours else EventKind.EXECUTOR_DIED,
        text=f"was killed: {text}" if is_ours else f"died: {text}",
        executor=executor.number,
        pid=executor.pid,
        attempt=victims[0].attempt if victims else None,
    )
