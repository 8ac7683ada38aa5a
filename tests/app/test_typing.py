"""A type checker completes and refuses what an application's users write. mypy runs once, over one small program."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
from datetime import date, timedelta
from runwick import BatchReceipt, Job, JobContext, JobView, Prepared, PreparedBatch, Receipt, Runwick

rw = Runwick("thumbs", store="memory://")


@rw.job("image.thumbnail", queue="images", max_executions=5, execution_timeout=timedelta(minutes=2))
class MakeThumbnail(Job):
    path: str
    width: int = 256


@rw.handler
def make_thumbnail(job: MakeThumbnail, ctx: JobContext) -> dict[str, int]:
    return {"width": job.width, "try": ctx.execution_number}


@rw.task("stats.recalculate")
def recalculate(day: date, shop: str = "all") -> int:
    return 1


@rw.provider
def name() -> str:
    return "x"


receipt: Receipt = rw.dispatch(MakeThumbnail("a.png", width=5), queue="images", not_before=timedelta(seconds=5))
receipt = recalculate.dispatch(date.today(), shop="north")
number: int = recalculate(date.today())
view: JobView = rw.wait(receipt, timeout=timedelta(seconds=1))
width: int = view.result(int)
text: str = name()
prepared: Prepared = rw.prepare(MakeThumbnail("a.png"), queue="images")
receipt = rw.dispatch_prepared(prepared)
several: BatchReceipt = rw.dispatch_prepared(rw.prepare_many([MakeThumbnail("a.png")]))
either: Receipt | BatchReceipt = rw.dispatch_prepared(rw.import_prepared(prepared.export()))


async def dispatch_again(one: Prepared, batch: PreparedBatch) -> tuple[Receipt, BatchReceipt]:
    return await rw.dispatch_prepared_async(one), await rw.dispatch_prepared_async(batch)


rw.dispatch(MakeThumbnail(5))  # refused
rw.dispatch(MakeThumbnail("a.png", height=5))  # refused
rw.dispatch(MakeThumbnail("a.png"), queue=5)  # refused
rw.dispatch(MakeThumbnail("a.png"), que="images")  # refused
rw.dispatch("a.png")  # refused
recalculate.dispatch("today")  # refused
recalculate.dispatch(date.today(), shops="north")  # refused
recalculate.dispatch()  # refused
recalculate("today")  # refused
rw.wait(receipt)  # refused
rw.prepare(MakeThumbnail("a.png"), que="images")  # refused
rw.dispatch_prepared(MakeThumbnail("a.png"))  # refused
receipt = rw.dispatch_prepared(rw.prepare_many([]))  # refused
rw.import_prepared("text")  # refused
rw.resolve(prepared)  # refused
text = view.result(int)  # refused
rw.configure_job(MakeThumbnail, max_execution=5)  # refused
rw.job("x", max_executions="5")  # refused
rw.provider(scope="request")  # refused
"""


def test_wrong_types_are_refused_where_they_are_written(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ["--strict", "--follow-imports=silent", f"--config-file={ROOT}/pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    lines = PROGRAM.splitlines()
    assert refused == {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}, done.stdout
