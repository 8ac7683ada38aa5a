"""What the processes of the workers hold in memory, idle, after some jobs."""

from typing import Final

from scripts.peers.measure import Bench, Column, Figures, Measure
from scripts.peers.system import System
from scripts.peers.tree import pss_bytes
from scripts.peers.trial import trial

JOBS: Final = 400


def once(bench: Bench, system: System) -> Figures:
    """Run some jobs, then look."""
    jobs = bench.count(JOBS)
    with trial(bench.grounds, system) as tried, tried.working() as tree:
        before = tried.board.standing().ended
        tried.dispatch("nothing", jobs)
        tried.wait_for(tree, before + jobs)
        members = tree.members()
        return {"pss_mb": round(pss_bytes(members) / 1e6, 1), "processes": len(members)}


MEASURE: Final = Measure(
    name="memory",
    title="Memory of the worker tree",
    text=f"Proportional set size of all processes of the workers, after {JOBS} jobs, of an application that imports "
    "nothing but its job system.",
    columns=(Column("pss_mb", "MB (PSS)", 1, compared="less"), Column("processes", "processes")),
    once=once,
    round_s=10,
    full=True,
)
