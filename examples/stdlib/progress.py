"""Shows a supervisor's events while it works: a bar on a terminal, a line every few seconds elsewhere."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 2.0
"""Pace of the plain lines."""
EXPECTED = frozenset({"opened", "ready", "draining"})
"""Events of every run; all others are told."""


def progress(console: Console, events: Iterable[dict[str, Any]], *, total: int) -> dict[str, Any]:
    """Follow the events of ``runwick-supervise --log-format json`` to their end.

    Anything unusual (an executor died, a write was delayed) is printed as the sentence that the event carries.

    Returns:
        The last event of each name; ``summary`` is missing when the supervisor ended without one.
    """
    last = {}
    with _Bar(console, total) as bar:
        for event in events:
            last[event["event"]] = event
            if event["event"] in ("progress", "summary"):
                bar.show(event)
            elif event["event"] not in EXPECTED:
                console.print(event["text"])
    return last


class _Bar:
    """The bar, or its plain twin when the console is no terminal."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._next_line_s = LINE_EVERY_S
        self._shown_s = 0.0
        self._in_handlers_s = 0.0
        self._bar = Progress(
            TextColumn("examined"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
            TextColumn("{task.fields[pace]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total, pace="")

    def __enter__(self) -> "_Bar":
        self._bar.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._bar.stop()

    def show(self, event: dict[str, Any]) -> None:
        """Take over the counts of a progress or summary event."""
        done, elapsed_s = event["succeeded"] + event["failed"], event["elapsed_s"]
        pace = pace_text(done, elapsed_s, self._share(event))
        self._bar.update(self._task, completed=done, pace=pace)
        if not self._console.is_terminal and (elapsed_s >= self._next_line_s or event["event"] == "summary"):
            self._next_line_s = elapsed_s + LINE_EVERY_S
            self._console.print(f"{elapsed_s:5.1f} s  {done:,} of {self._total:,} examined · {pace}")

    def _share(self, event: dict[str, Any]) -> float:
        """The share since the start: a progress event has the one since the event before it, the summary all."""
        elapsed_s = event["elapsed_s"]
        if event["event"] == "summary":
            return float(event["share_in_handlers"])
        self._in_handlers_s += event["share_in_handlers"] * (elapsed_s - self._shown_s)
        self._shown_s = elapsed_s
        return self._in_handlers_s / elapsed_s if elapsed_s else 0.0


def pace_text(done: int, elapsed_s: float, share: float) -> str:
    """How fast it goes, and how much of the cores does the work itself."""
    rate = done / elapsed_s if elapsed_s else 0.0
    return f"{rate:,.0f} jobs/s · {100 * share:.1f} % of the cores in handlers"
