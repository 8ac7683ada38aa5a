"""A type checker completes and refuses what an application's users write. mypy runs once, over one small program."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
from collections.abc import Generator
from datetime import date, timedelta
from runwick import BatchReceipt, Job, JobContext, JobView, Prepared, PreparedBatch, Receipt, Runwick
from runwick import Failed, Next, NextAsync, Result, Retry, UseMiddleware
from runwick import DispatchUniqueness, LaneSelection, PerResource, RollingWindow, RollingWindowPerResource
from runwick import UniqueWithinWindow, job

rw = Runwick("thumbs", store="memory://")


@rw.job("image.thumbnail", queue="images", max_executions=5, execution_timeout=timedelta(minutes=2),
        version=2, middleware=("audit", UseMiddleware("tenant", order=-5)))
class MakeThumbnail(Job):
    path: str
    width: int = 256


def by_path(job: MakeThumbnail) -> str:
    return job.path


@job("image.shared", max_concurrent=5, per_resource=(PerResource(by_path, 1),), unique_while_active=by_path)
class Shared(Job):
    path: str


rw.configure_job(Shared, max_concurrent=None, unique_while_active=None, rolling_window=RollingWindow(9, timedelta(1)),
                 rolling_window_per_resource=(RollingWindowPerResource(lambda job: job.path, 9, timedelta(1)),),
                 unique_within_window=UniqueWithinWindow(lambda job: job.path, timedelta(hours=1)))
rw.queue("pdf", max_concurrent=20)
rw.pool("main", queues={"pdf": 3, "images": 1}, lane_weights=(10, 3, 1), lane_selection=LaneSelection.STRICT)


@rw.handler
def make_thumbnail(job: MakeThumbnail, ctx: JobContext) -> dict[str, int]:
    return {"width": job.width, "try": ctx.execution_number}


class MakeThumbnailV1(Job):
    path: str


@rw.upgrade(MakeThumbnail, from_version=1)
def with_width(old: MakeThumbnailV1) -> MakeThumbnail:
    return MakeThumbnail(old.path)


@rw.middleware
def tenant(ctx: JobContext) -> Generator[None, Result, Result]:
    if ctx.tenant is None:
        return Failed("tenant_missing", "Every job needs a tenant.")
    result = yield
    return result


@rw.middleware(alias="audit")
class Audit:
    async def handle(self, ctx: JobContext, proceed: NextAsync) -> Result:
        try:
            return await proceed()
        except ConnectionError:
            return Retry("unreachable", timedelta(minutes=1))


def around(ctx: JobContext, proceed: Next) -> Result:
    return proceed()


rw.configure_job(MakeThumbnail, middleware=[around], error_detail="message")


@rw.task("stats.recalculate", version=2)
def recalculate(day: date, shop: str = "all") -> int:
    return 1


class RecalculateV1(Job):
    day: date


@rw.upgrade(recalculate, from_version=1)
def of_all(old: RecalculateV1) -> Job:
    return recalculate.job(old.day)


@rw.handler(interrupt="token")
def careful(job: MakeThumbnail, ctx: JobContext) -> None:
    ctx.cancellation.raise_if_set()


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


receipt = rw.dispatch(MakeThumbnail("a.png"), uniqueness=DispatchUniqueness("a", "b", timedelta(1)))
several = rw.dispatch_many([MakeThumbnail("a.png")], continue_on_conflict=True)
failed: list[str] = [item.failure.code for item in several.items if item.failure]


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
rw.configure_job(MakeThumbnail, max_concurrent="5")  # refused
rw.configure_job(MakeThumbnail, per_resource=PerResource(by_path, 1))  # refused
rw.configure_job(MakeThumbnail, unique_while_active="path")  # refused
rw.pool("main", lane_selection="strict")  # refused
rw.pool("main", lane_weights=(1, 2))  # refused
rw.queue("pdf", max_concurrent="5")  # refused
rw.dispatch(MakeThumbnail("a.png"), uniqueness="a")  # refused
rw.handler(interrupt="never")  # refused
rw.upgrade(MakeThumbnail)  # refused
rw.middleware(alias=5)  # refused
rw.configure_job(MakeThumbnail, error_detail="none")  # refused
"""


def test_wrong_types_are_refused_where_they_are_written(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    options = ["--strict", "--follow-imports=silent", f"--config-file={ROOT}/pyproject.toml"]
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    refused = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    lines = PROGRAM.splitlines()
    assert refused == {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}, done.stdout
