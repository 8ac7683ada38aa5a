"""The directory in which run files and status files lie, as ``--run-dir``, the environment or the system names it."""

import os

from runwick.config.sources import RUN_DIR
from runwick.runtime.rundir import RunDir, find_run_dir


def run_dir_of(said: str | None, *, make: bool) -> RunDir:
    """Where run files lie, by ``--run-dir``, the environment, or what is usual; `make` creates the directory."""
    by = "--run-dir"
    if said is None and RUN_DIR in os.environ:
        said, by = os.environ[RUN_DIR], RUN_DIR
    return find_run_dir(said, by, os.environ, make=make)
