"""The companion of a thread: everything in one task of the other loop, and honest when there is none any more."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from runwick.execution.companion import Companion
from runwick.execution.steps import run_at_once

DEADLINE_S = 10


def in_a_thread(work: Callable[[], Any]) -> Any:
    """Run it in a thread while this loop goes on."""
    return asyncio.wait_for(asyncio.to_thread(work), DEADLINE_S)


async def named_task() -> str:
    task = asyncio.current_task()
    assert task is not None
    await asyncio.sleep(0)
    return f"{task.get_name()} {id(task)}"


def test_all_visits_are_one_task_that_ends_with_it() -> None:
    async def scenario() -> None:
        companion = Companion(asyncio.get_running_loop())

        def visits() -> set[str]:
            return {run_at_once(companion.visit(named_task())) for _ in range(3)}

        (one,) = await in_a_thread(visits)
        assert one.startswith("runwick companion ")
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "runwick companion"]
        companion.end()
        await asyncio.wait_for(task, DEADLINE_S)

    asyncio.run(scenario())


def test_errors_come_back_whatever_they_are() -> None:
    caught: list[SystemExit] = []

    async def stop() -> None:
        raise SystemExit("not this loop's affair")

    async def scenario() -> None:
        companion = Companion(asyncio.get_running_loop())

        def visits() -> None:
            try:
                run_at_once(companion.visit(stop()))
            except SystemExit as error:
                caught.append(error)

        await in_a_thread(visits)
        companion.end()

    asyncio.run(scenario())
    assert [str(error) for error in caught] == ["not this loop's affair"]


def test_one_that_was_cancelled_over_there_says_so() -> None:
    async def scenario() -> None:
        companion = Companion(asyncio.get_running_loop())
        await in_a_thread(lambda: run_at_once(companion.visit(named_task())))
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "runwick companion"]
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(RuntimeError, match="was cancelled"):
            await in_a_thread(lambda: run_at_once(companion.visit(named_task())))

    asyncio.run(scenario())


def test_a_closed_loop_is_an_error_and_nothing_is_left_unawaited() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    companion = Companion(loop)
    visit = named_task()
    with pytest.raises(RuntimeError, match="closed"):
        run_at_once(companion.visit(visit))
    assert inspect.getcoroutinestate(visit) == inspect.CORO_CLOSED
    companion.end()
