"""What an attempt cost."""

from typing import Annotated, Literal

import msgspec

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""Exact in every store and in every JSON reader; decoding refuses anything else."""


class Usage(msgspec.Struct, frozen=True, gc=False, array_like=True, kw_only=True):
    """The resources of one attempt. What the backend cannot attribute to the attempt is None, never a guess.

    Field order is the stored order; new fields go to the end. Sources on Linux are named at each field;
    `runwick.execution.metering` does the measuring.
    """

    wall_us: Amount | None = None
    """Microseconds from the begun mark to the end of cleanup, on the steady clock."""
    cpu_user_us: Amount | None = None
    """CPU time in user mode of the executor process (getrusage, RUSAGE_SELF, ru_utime)."""
    cpu_system_us: Amount | None = None
    """CPU time in the kernel for the executor process (ru_stime)."""
    cpu_children_us: Amount | None = None
    """CPU time, user and system, of child processes that ended and were waited for (RUSAGE_CHILDREN)."""
    rss_peak_bytes: Amount | None = None
    """Highest resident memory of the executor during the attempt (peak reset through /proc/self/clear_refs)."""
    rss_end_bytes: Amount | None = None
    """Resident memory of the executor when the attempt ended (/proc/self/statm)."""
    faults_minor: Amount | None = None
    """Page faults served without reading from a disk (ru_minflt)."""
    faults_major: Amount | None = None
    """Page faults that read from a disk (ru_majflt)."""
    switches_voluntary: Amount | None = None
    """Times the executor gave up the processor to wait (ru_nvcsw)."""
    switches_involuntary: Amount | None = None
    """Times the kernel took the processor away (ru_nivcsw)."""
    allocated_bytes: Amount | None = None
    """Bytes that Python's allocators handed out during the attempt, freed ones included."""
    allocated_blocks: Amount | None = None
    """How many blocks that were."""
    allocations_by: Literal["counted"] | None = None
    """How they were found out: by the compiled counter, or not at all."""

    @property
    def cpu_us(self) -> int | None:
        """CPU time of the executor process, user and system; None where it was not measured."""
        if self.cpu_user_us is None or self.cpu_system_us is None:
            return None
        return self.cpu_user_us + self.cpu_system_us
