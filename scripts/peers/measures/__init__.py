"""One module for each measure; `every_measure` names them in the order in which they are taken."""

from scripts.peers.measure import Measure
from scripts.peers.measures import accounting, cpu, dispatch, floors, growth, kills, latency, limits, memory, noop


def every_measure() -> list[Measure]:
    """All of them. What takes one round comes first, so that a run that is short of time gives up later rounds."""
    return [
        floors.MEASURE,
        latency.MEASURE,
        kills.MEASURE,
        noop.MEASURE,
        *cpu.MEASURES,
        memory.MEASURE,
        dispatch.MEASURE,
        limits.MEASURE,
        accounting.MEASURE,
        growth.MEASURE,
    ]
