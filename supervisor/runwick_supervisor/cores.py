"""How many cores this process may use: its affinity and its cgroup's quota, whichever is smaller."""

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP) -> int:
    """At least 1. A quota counts in whole cores, rounded up; cgroup versions 1 and 2 are read."""
    affinity = len(os.sched_getaffinity(0))
    quota = _quota_v2(cgroup / "cpu.max") or _quota_v1(cgroup / "cpu")
    return max(1, min(affinity, quota) if quota else affinity)


def _quota_v2(file: Path) -> int | None:
    try:
        quota, period = file.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else -(-int(quota) // int(period))


def _quota_v1(folder: Path) -> int | None:
    try:
        quota = int((folder / "cpu.cfs_quota_us").read_text())
        period = int((folder / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return None if quota <= 0 else -(-quota // period)
