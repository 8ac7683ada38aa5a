"""When the parent hears what executors have finished; the executors are played."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

from runwick_supervisor.completions import CompletionBells
from tests.supervisor.crew import until


class Ringer:
    """Stands for an executor that holds something and can ring."""

    def __init__(self) -> None:
        self.completions_descriptor = os.eventfd(0, os.EFD_NONBLOCK)
        self.held = ["a run"]

    def ring(self, count: int = 1) -> None:
        os.eventfd_write(self.completions_descriptor, count)


def heard(scene: Callable[[CompletionBells, Ringer, list[int]], Any], *, nobody_waits: bool = False) -> None:
    """Play `scene` with bells, who rings them, and how much each collection brought."""

    async def played() -> None:
        counts: list[int] = []

        def collect(ringers: Sequence[Any]) -> int:
            counts.append(sum(os.eventfd_read(each.completions_descriptor) for each in ringers))
            return counts[-1]

        bells, ringer = CompletionBells(collect, lambda: nobody_waits), Ringer()
        bells.add(ringer)  # type: ignore[arg-type]
        try:
            await scene(bells, ringer, counts)
        finally:
            bells.close()
            os.close(ringer.completions_descriptor)

    asyncio.run(played())


def test_a_lone_end_is_heard_at_once() -> None:
    async def scene(bells: CompletionBells, ringer: Ringer, counts: list[int]) -> None:
        bells.foresee(1.0)
        ringer.ring()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert counts == [1], "no timer lies between"

    heard(scene)


def test_many_that_were_foreseen_are_heard_together_a_moment_later() -> None:
    async def scene(bells: CompletionBells, ringer: Ringer, counts: list[int]) -> None:
        bells.foresee(100.0)
        ringer.ring(3)
        await asyncio.sleep(0)
        ringer.ring(4)
        await until(lambda: counts, "the pause to be over")
        assert counts == [7]
        ringer.held.clear()
        ringer.ring()
        await until(lambda: sum(counts) == 8, "the last one, without another look")

    heard(scene)


def test_at_rest_nobody_is_heard_until_somebody_looks() -> None:
    async def scene(bells: CompletionBells, ringer: Ringer, counts: list[int]) -> None:
        bells.look()
        assert bells.rest
        ringer.ring(5)
        for _ in range(3):
            await asyncio.sleep(0)
        assert counts == []
        bells.look()
        assert counts == [5]

    heard(scene, nobody_waits=True)
