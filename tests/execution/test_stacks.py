"""The stack of a run, however deep it is and whatever it waits for."""

import asyncio
import threading
import types
from collections.abc import Generator
from typing import Any

from runwick.execution.stacks import STACK_MAX_BYTES, stack_of_task, stack_of_thread
from tests.execution.heard import DEADLINE_S


def test_a_deep_stack_is_cut_and_keeps_where_it_is() -> None:
    there, ends = threading.Event(), threading.Event()

    def descend(levels: int) -> None:
        if levels == 0:
            there.set()
            ends.wait(DEADLINE_S)
        elif levels % 2:
            descend(levels - 1)
        else:
            also_descend(levels - 1)

    def also_descend(levels: int) -> None:
        descend(levels)

    thread = threading.Thread(target=descend, args=(300,))
    thread.start()
    assert there.wait(DEADLINE_S)
    assert thread.ident is not None
    text = stack_of_thread(thread.ident)
    ends.set()
    thread.join(DEADLINE_S)
    assert len(text.encode()) <= STACK_MAX_BYTES
    assert "characters left out" in text
    assert "in wait" in text[-600:]
    assert stack_of_thread(thread.ident) == ""


class Odd:
    """An iterator that knows two methods, and minds being asked for more."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self._steps = future.__await__()

    def __iter__(self) -> "Odd":
        return self

    def __next__(self) -> Any:
        return next(self._steps)

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)


def test_a_task_shows_every_frame_that_it_waits_in_as_far_as_python_knows() -> None:
    async def scenario() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        @types.coroutine
        def old_style() -> Generator[Any, None, None]:
            yield from Odd(future)

        async def outer() -> None:
            await old_style()

        task = asyncio.create_task(outer())
        await asyncio.sleep(0)
        text = stack_of_task(task, threading.get_ident())
        assert text.index("in outer") < text.index("in old_style")
        future.set_result(None)
        await task
        assert stack_of_task(task, threading.get_ident()) == ""

    asyncio.run(scenario())


class Loader:
    """A module's loader that cannot say what its source is."""

    def get_source(self, name: str) -> str:
        raise LookupError(name)


def test_a_module_whose_source_cannot_be_had_costs_the_stack_and_no_more() -> None:
    there, ends = threading.Event(), threading.Event()
    module: dict[str, Any] = {"__name__": "odd", "__loader__": Loader(), "there": there, "ends": ends}
    exec(compile("def work():\n    there.set()\n    ends.wait(10)\n", "nowhere", "exec"), module)
    thread = threading.Thread(target=module["work"])
    thread.start()
    assert there.wait(DEADLINE_S)
    assert thread.ident is not None
    text = stack_of_thread(thread.ident)
    ends.set()
    thread.join(DEADLINE_S)
    assert text == "(no stack: reading it raised LookupError)"
