"""What can still be known of an executor that is dead: how it ended, what it had used, and what killed it.

    dead ─▶ /proc/PID/stat of the zombie: what it used alone, what its own children used
         ─▶ wait4: how it ended, its peak             ─▶ minus what it had used when its attempt began
         ─▶ oom_kill of the cgroup, or of the machine ─▶ one more than before: the kernel killed it for memory

What cannot be told apart from what others used is None, never a guess.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from runwick.contracts.attempts import Attempt
from runwick.contracts.backends import Completion
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome
from runwick.contracts.usage import Usage
from runwick_supervisor.control import Baseline, Progress
from runwick_supervisor.fence import now_ns
from runwick_supervisor.processes import Ending
from runwick_supervisor.stopping import Verdict

_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")
_AMOUNT_MAX: Final = 2**53 - 1


class Books(NamedTuple):
    """What a dead process had used all its life, without the children that it had waited for."""

    user_us: int
    system_us: int
    children_us: int
    """In steps of 10 ms."""
    minflt: int
    majflt: int
    nvcsw: int | None
    nivcsw: int | None
    maxrss_kib: int | None
    """These three are None when it had waited for children, whose share in them is not known."""


def post_mortem(pid: int, pidfd: int) -> tuple[Ending, Books | None]:
    """Take the status of a dead child, and what it had used; what somebody else took before is unknown."""
    try:
        if os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return Ending(), None
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        _, status, used = os.wait4(pid, os.WNOHANG)
    except (ChildProcessError, OSError):
        return Ending(), None
    ending = Ending(signal=os.WTERMSIG(status)) if os.WIFSIGNALED(status) else Ending(status=os.WEXITSTATUS(status))
    # From the 8th field of what follows the name: minflt cminflt majflt cmajflt utime stime cutime cstime.
    minflt, children_minflt, majflt, _, _, _, children_utime, children_stime = map(int, stat[7:15])
    had_children = children_minflt > 0
    return ending, Books(
        user_us=max(0, round(used.ru_utime * 1e6) - children_utime * _TICK_US),
        system_us=max(0, round(used.ru_stime * 1e6) - children_stime * _TICK_US),
        children_us=(children_utime + children_stime) * _TICK_US,
        minflt=minflt,
        majflt=majflt,
        nvcsw=None if had_children else used.ru_nvcsw,
        nivcsw=None if had_children else used.ru_nivcsw,
        maxrss_kib=None if had_children else used.ru_maxrss,
    )


class Leavings(NamedTuple):
    """What an executor that is dead left in its hand-off."""

    victims: Sequence[Attempt]
    """What it had taken and not answered; of the first of them is the rest."""
    progress: Progress
    box: BlackBox
    seen: "Seen"


class Seen(NamedTuple):
    """What the parent read of a living executor just before it killed it."""

    peak_bytes: int | None = None
    rss_bytes: int | None = None


def usage_so_far(progress: Progress, books: Books | None, seen: Seen, wall_us: int) -> Usage:
    """What the attempt had cost when its executor died."""
    usage: dict[str, int | None] = {"wall_us": wall_us}
    usage |= {"rss_peak_bytes": seen.peak_bytes, "rss_end_bytes": seen.rss_bytes}
    if progress.allocated is not None:
        usage["allocated_bytes"], usage["allocated_blocks"] = progress.allocated
    before = progress.before
    if before is not None and books is not None and before.nvcsw + before.minflt > 0:
        usage |= _since(before, books)
        if usage["rss_peak_bytes"] is None and books.maxrss_kib is not None:
            usage["rss_peak_bytes"] = books.maxrss_kib * 1024
    known = {name: amount for name, amount in usage.items() if amount is not None and 0 <= amount <= _AMOUNT_MAX}
    return Usage(**known, allocations_by="counted" if "allocated_bytes" in known else None)


def _since(before: Baseline, books: Books) -> dict[str, int | None]:
    # Both sums are rounded, the one of the children to 10 ms: a little less than before is nothing.
    children_us = books.children_us - before.children_us
    return {
        "cpu_user_us": _grown(books.user_us - before.utime_us),
        "cpu_system_us": _grown(books.system_us - before.stime_us),
        "cpu_children_us": _grown(children_us),
        "faults_minor": books.minflt - before.minflt,
        "faults_major": books.majflt - before.majflt,
        "switches_voluntary": None if books.nvcsw is None else books.nvcsw - before.nvcsw,
        "switches_involuntary": None if books.nivcsw is None else books.nivcsw - before.nivcsw,
    }


def _grown(difference_us: int) -> int:
    return 0 if -2 * _TICK_US < difference_us < 0 else difference_us


def completions(
    leavings: Leavings, verdict: Verdict, ending: Ending, books: Books | None, *, now_ms: int, record_usage: bool
) -> list[Completion]:
    """What the attempts of a dead executor ended in."""
    progress, box, boot_ns = leavings.progress, leavings.box, now_ns()
    found = []
    for victim in leavings.victims:
        cause = verdict.cause or ending.kind
        message = f"{verdict.text}: {ending}" if verdict.text else str(ending)
        ran_ns = None if progress.begun_at_ns is None else max(0, boot_ns - progress.begun_at_ns)
        usage = None
        if record_usage and ran_ns is not None:
            usage = usage_so_far(progress, books, leavings.seen, ran_ns // 1000)
        keeps_box = victim.policy.error_detail == "full" and (box.lines or box.stack)
        outcome = Outcome(
            verdict.kind,
            verdict.code,
            ErrorDetail(cause, message),
            usage=usage,
            begun_at_ms=None if ran_ns is None else now_ms - ran_ns // 1_000_000,
            death=Death(cause, ending.signal, ending.status, progress.phase),
            black_box=box if keeps_box else None,
        )
        found.append(Completion(victim, outcome))
        progress, box = Progress(), BlackBox()
    return found


class OomWitness:
    """Knows from the kernel's counters whether a process was killed because memory ran out."""

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._files = [*_counters_of_own_cgroup(proc, cgroups), proc / "vmstat"]
        self._known = self._kills()

    def refresh(self) -> None:
        """All kills until now were somebody else's."""
        self._known = self._kills()

    def claims(self) -> bool:
        """Whether the kernel has killed one more since the last time; that one is the one that is asked about."""
        kills = self._kills()
        if kills is None or self._known is None or kills <= self._known:
            return False
        self._known += 1
        return True

    def _kills(self) -> int | None:
        """From the nearest counter that there is."""
        for file in self._files:
            try:
                for line in file.read_text().splitlines():
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        return int(value)
            except (OSError, ValueError):
                continue
        return None


def _counters_of_own_cgroup(proc: Path, cgroups: Path) -> list[Path]:
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":
            files.append(cgroups / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            files.append(cgroups / "memory" / path.lstrip("/") / "memory.oom_control")
    return files
