"""What the figures of a run depend on beside the systems: day, machine, servers."""

import datetime
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def surroundings_of(servers: Mapping[str, Any]) -> dict[str, Any]:
    """All of it, with version and settings of each server."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpus": len(os.sched_getaffinity(0)),
        "machine": _machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "servers": dict(servers),
    }


def lines_of(surroundings: Mapping[str, Any]) -> list[str]:
    """The same for people, as a list in Markdown."""
    machine = f"{surroundings['machine']}, {surroundings['cpus']} cores, Linux {surroundings['kernel']}"
    lines = [f"Measured on {surroundings['date']}: {machine}, Python {surroundings['python']}."]
    for store, server in surroundings["servers"].items():
        settings = ", ".join(f"{name} {value or 'none'}" for name, value in server["settings"].items())
        lines.append(f"{store}: version {server['version']}, over {server['connection']}; {settings}.")
    return [f"* {line}" for line in lines]


def _machine() -> str:
    """The processor's name, as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
