"""The application of the benchmarks, with two jobs more: between them, an executor counts what it does."""

from runwick import Job
from scripts.benchmarks.application import application
from tests.hot_paths.instructions import Instructions
from tests.hot_paths.system_calls import mark


class Begin(Job):
    """Counts from here on."""


class End(Job):
    """Says how many instructions that were."""


_instructions = Instructions()

rw = application("sqlite:///nowhere")
rw.job("bench.begin")(Begin)
rw.job("bench.end")(End)


@rw.handler
def begin(job: Begin) -> None:
    mark()
    _instructions.count = 0
    _instructions.begin()


@rw.handler
def end(job: End) -> int:
    _instructions.end()
    mark()
    return _instructions.count
