"""The live picture of ``runwick top``; it needs the extra ``rich``."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from runwick.cli.executor_text import HEADER, executor_row, headline
from runwick.cli.results import TopBody
from runwick.cli.tables import UNKNOWN, terminal_text
from runwick.contracts.errors import RunwickError
from runwick.management.bodies import WorkerBody


def picture(found: TopBody) -> RenderableType:
    """What is wrong, the figures in a line, and each worker with its executors."""
    troubles = [Text(terminal_text(each.text), style="bold red") for each in found.overview.troubles]
    workers = [_worker(each) for each in found.workers.workers]
    return Group(Text(headline(found.overview), style="bold"), *troubles, *(workers or [Text("no workers")]))


def without_answer(last: RenderableType, error: RunwickError) -> RenderableType:
    """The last picture, and why there is no newer one."""
    return Group(Text(terminal_text(str(error)), style="bold yellow"), last)


def _worker(worker: WorkerBody) -> RenderableType:
    title = f"{terminal_text(worker.host)} · process {worker.process} · {', '.join(worker.queues) or 'no queues'}"
    table = Table(title=Text(title), title_justify="left", expand=True, box=None, pad_edge=False)
    for name in HEADER:
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1 if name in ("type", "job") else None)
    for executor in worker.executors:
        cells = [terminal_text(cell) if cell is not None else UNKNOWN for cell in executor_row(executor)]
        table.add_row(*map(Text, cells), style="" if executor.job_id or executor.attempt_id else "dim")
    return table
