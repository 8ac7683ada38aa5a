"""The application of `executors`: jobs that compute with numpy and pandas, which nothing here imports before a handler
does. ``--preload numpy,pandas`` makes of it an application that imports both.

With ``BENCH_UNFREEZE`` in the environment executors have what they were forked with among the objects that the garbage
collector looks at, as if the zygote had not frozen it.
"""

import gc
import importlib
import os
from typing import Any

from runwick import Job, Runwick

UNFREEZE = "BENCH_UNFREEZE"
MODULES = ("numpy", "pandas")


class Multiply(Job):
    """Multiplies matrices of `size` rows, so many times."""

    size: int
    times: int


class Group(Job):
    """Groups so many rows, and collects garbage after that."""

    rows: int


def application(store: str) -> Runwick:
    """The application on the store at this URL."""
    rw = Runwick("numeric", store=store)
    rw.job("numeric.multiply")(Multiply)
    rw.job("numeric.group")(Group)
    rw.handler(multiply)
    rw.handler(group)
    return rw


def multiply(job: Multiply) -> None:
    numpy: Any = importlib.import_module("numpy")
    matrix = numpy.random.default_rng(1).random((job.size, job.size))
    for _ in range(job.times):
        matrix @ matrix


def group(job: Group) -> int:
    """Answers which process did it."""
    pandas: Any = importlib.import_module("pandas")
    keys = [number % 100 for number in range(job.rows)]
    frame = pandas.DataFrame({"key": keys, "text": [f"row {number}" for number in range(job.rows)]})
    assert len(frame.groupby("key").count()) == min(100, job.rows)
    gc.collect()
    return os.getpid()


if UNFREEZE in os.environ:
    os.register_at_fork(after_in_child=gc.unfreeze)

rw = application("sqlite:///numeric.db")
