"""The application of the example: one job type, its handler and where its jobs are kept."""

import os
import sysconfig
from pathlib import Path
from typing import Any

from examples.stdlib.examine import examine
from runwick import Job, Runwick

STDLIB = Path(sysconfig.get_path("stdlib"))
DATABASE = Path(".runwick/demo.db")

rw = Runwick("stdlib", store=f"sqlite:///{DATABASE}")


@rw.job("stdlib.examine")
class ExamineModule(Job):
    """Examine one module of the running Python's standard library."""

    path: str
    """Its file, relative to the library's directory."""


@rw.handler
def examine_module(job: ExamineModule) -> dict[str, Any]:
    measures = examine((STDLIB / job.path).read_bytes())
    return {**measures, "process": os.getpid()}


def stdlib_paths() -> list[str]:
    """Every module's file, without what was installed beside the library. Its own tests are more than half of it."""
    foreign = {"site-packages", "dist-packages"}
    paths = (path.relative_to(STDLIB) for path in STDLIB.rglob("*.py"))
    return sorted(str(path) for path in paths if not foreign.intersection(path.parts))
