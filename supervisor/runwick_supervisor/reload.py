"""Loads the application anew while its jobs go on.

    HUP ─▶ a second zygote imports it ─▶ compared with the first ─┬─ refused: told why, everything stays as it is
                                                                  └─ the worker serves its pools and kinds
                     seat by seat, executors of the second zygote take over ◀──┘
                     the first zygote ends with its last executor

A run that is under way ends on the code that it began with. What was handed over goes only to executors that know its
kind, so nothing is lost and nothing runs twice. A HUP meanwhile makes one more round of it; a worker that stops is left
alone.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from runwick.cli.reporter import Reporter
from runwick.contracts.errors import ConfigurationError, Problem, RunwickError
from runwick.worker.engine import Worker
from runwick_supervisor.planning import Orders, Plan, make_next_plan
from runwick_supervisor.staff import Staff
from runwick_supervisor.zygote_handle import Zygote


class Reload:
    """Of one worker.

    Args:
        plan, zygote: what it began with.
        another: makes a zygote of the same family; nothing is executed yet.
    """

    def __init__(
        self,
        orders: Orders,
        plan: Plan,
        zygote: Zygote,
        staff: Staff,
        worker: Worker,
        reporter: Reporter,
        another: Callable[[], Zygote],
    ) -> None:
        self._orders = orders
        self._plan = plan
        self._zygote = zygote
        self._staff = staff
        self._worker = worker
        self._reporter = reporter
        self._another = another
        self._once_more = False
        self._rounds: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """Load it anew; when that is being done, once more after it."""
        if self._worker.is_stopping:
            return
        self._once_more = True
        if self._rounds is None or self._rounds.done():
            self._rounds = self._in_background(self._go(), "loading anew")

    async def end(self) -> None:
        """The worker has ended: leave off whatever is under way."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _go(self) -> None:
        while self._once_more and not self._worker.is_stopping:
            self._once_more = False
            began_s = time.monotonic()
            refused = await self._try()
            seconds = time.monotonic() - began_s
            if not refused:
                text = f"loaded anew in {seconds:.2f} s; executors are replaced as they become free"
                self._reporter.happened("reloaded", text, {"seconds": round(seconds, 4)})
            elif not self._worker.is_stopping:
                self._refuse(refused)

    async def _try(self) -> Sequence[Problem]:
        """One round; answers why it came to nothing."""
        next_zygote = self._another()
        try:
            await self._change_to(next_zygote)
        except ConfigurationError as refused:
            return refused.problems
        except RunwickError as refused:
            return [Problem("reload_refused", "worker", f"{refused}")]
        finally:
            if self._zygote is not next_zygote:
                await next_zygote.stop()
        return []

    async def _change_to(self, next_zygote: Zygote) -> None:
        """Let this one make all executors from now on, or change nothing.

        Raises:
            ConfigurationError: the application cannot be loaded, or differs in what only a restart changes.
            RunwickError: the store does not let it be served, executors cannot be brought up, or the worker stops.
        """
        plan = await make_next_plan(self._orders, self._plan, next_zygote)
        engagement = self._staff.propose(plan, next_zygote)
        manifest = plan.manifest
        await self._worker.reconfigure(engagement.served, frozenset(manifest.kinds), manifest.limits)
        self._staff.accept(engagement, next_zygote.family.numbers)
        former, self._zygote, self._plan = self._zygote, next_zygote, plan
        former.step_down()
        self._in_background(self._see_off(former), "the end of the former zygote")

    async def _see_off(self, former: Zygote) -> None:
        """Its last executors may have long runs."""
        await former.outlive_children()
        await former.stop()
        self._reporter.happened("renewed", "nothing runs on the former code any more", {})

    def _in_background(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            text = f"{task.get_name()} failed: {type(error).__name__}: {error}"
            self._reporter.happened("reload_failed", text, {})

    def _refuse(self, problems: Sequence[Problem]) -> None:
        listed = "; ".join(f"{problem.code} {problem.setting}: {problem.message}" for problem in problems)
        facts = [{"code": problem.code, "setting": problem.setting, "message": problem.message} for problem in problems]
        text = f"not loaded anew, everything goes on as it was: {listed}"
        self._reporter.happened("reload_refused", text, {"problems": facts})
