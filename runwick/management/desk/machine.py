"""What the machine at hand has."""

import os

import msgspec
import psutil


class Machine(msgspec.Struct, frozen=True):
    """A machine, as advice looks at it."""

    cores: int
    memory_bytes: int

    @classmethod
    def here(cls) -> "Machine":
        """This one: the cores that this process may use, and all of its memory."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(cores, psutil.virtual_memory().total)
