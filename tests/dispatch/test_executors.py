"""Dispatching from handlers that run on executors: forked, with one connection of their own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runwick import JobState, Runwick
from runwick.contracts.attempts import Lane
from runwick.contracts.states import Priority

PATIENCE_S = 90.0

APPLICATION = """
from runwick import Job, Runwick

rw = Runwick("tree")  # RUNWICK_STORE names the store

@rw.job("tree.branch", queue="tree")
class Branch(Job):
    height: int

@rw.job("tree.twig", queue="tree")
class Twig(Job):
    height: int

@rw.job("tree.leaf", queue="tree")
class Leaf(Job):
    pass

@rw.handler
def branch(job: Branch) -> None:
    if job.height:
        rw.dispatch(Branch(job.height - 1))
    rw.dispatch_many([Twig(job.height), Leaf()])

@rw.handler
async def twig(job: Twig) -> None:
    if job.height:
        await rw.dispatch_async(Twig(job.height - 1))
    prepared = rw.prepare(Leaf())
    first = await rw.dispatch_prepared_async(prepared)
    assert (await rw.dispatch_prepared_async(rw.import_prepared(prepared.export()))) == first

@rw.handler
def leaf(job: Leaf) -> None: ...
"""
HEIGHT = 6


def jobs_of(height: int) -> int:
    """A branch with its leaf, and its twigs with theirs; then the branch above it."""
    return 2 + 2 * (height + 1) + (jobs_of(height - 1) if height else 0)


@pytest.mark.parametrize("executors", [1, 2])
def test_what_handlers_dispatch_is_run(store_url: str, tmp_path: Path, executors: int) -> None:
    (tmp_path / "tree.py").write_text(textwrap.dedent(APPLICATION))
    plant = f"import tree; print(tree.rw.dispatch(tree.Branch({HEIGHT})).job_id)"
    environment = {**os.environ, "RUNWICK_STORE": store_url}
    first = subprocess.check_output([sys.executable, "-c", plant], cwd=tmp_path, env=environment, text=True).strip()
    command = [sys.executable, "-m", "runwick_supervisor.command", "tree", f"--executors={executors}", "--until-empty"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 0, ran.stderr
    rw = Runwick("tree", store=store_url)
    assert rw.get(first).state is JobState.SUCCEEDED
    costly = rw.store.run(rw.store.costliest("tree", "cpu_us", 1000))
    assert len({run.job_id for run in costly}) == len(costly) == jobs_of(HEIGHT)
    assert {run.outcome for run in costly} == {"succeeded"}
    outlook = rw.store.run(rw.store.outlook("tree", [Lane("tree", each) for each in Priority], frozenset()))
    assert (outlook.due, outlook.later, outlook.leased, outlook.undecodable) == (0, 0, 0, 0)
    rw.close()
