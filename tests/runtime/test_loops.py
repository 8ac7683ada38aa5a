import asyncio
import threading

from runwick.runtime.ambient import SystemIds
from runwick.runtime.loops import keep_running
from runwick.runtime.wake import Wake


class CountingLoop:
    name = "counting"
    pause_after_failure_s = 0.0

    def __init__(self, answers: list[float | Exception | None]) -> None:
        self.wake = Wake()
        self.rounds = 0
        self._answers = answers

    async def run_once(self) -> float | None:
        self.rounds += 1
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_round_that_raises_is_told_and_does_not_end_the_loop() -> None:
    loop = CountingLoop([0.0, ValueError("broken"), 0.0])
    told: list[tuple[str, str]] = []
    asyncio.run(
        keep_running(loop, until=lambda: loop.rounds == 3, failed=lambda name, error: told.append((name, str(error))))
    )
    assert loop.rounds == 3
    assert told == [("counting", "broken")]


def test_a_ring_from_another_thread_ends_an_endless_sleep() -> None:
    loop = CountingLoop([None, None])

    async def scenario() -> None:
        running = asyncio.create_task(keep_running(loop, until=lambda: loop.rounds == 2, failed=_unexpected))
        while loop.rounds == 0:
            await asyncio.sleep(0)
        thread = threading.Thread(target=loop.wake.ring)
        thread.start()
        await asyncio.wait_for(running, 5)
        thread.join()

    asyncio.run(scenario())
    assert loop.rounds == 2


def test_a_ring_while_awake_is_kept_for_the_next_sleep() -> None:
    async def scenario() -> bool:
        wake = Wake()
        wake.ring()
        return await asyncio.wait_for(wake.sleep(None), 5)

    assert asyncio.run(scenario()) is True


def test_a_sleep_that_nobody_ends_ends_by_itself() -> None:
    assert asyncio.run(Wake().sleep(0.001)) is False


def test_ids_of_one_process_rise() -> None:
    ids = SystemIds()
    made = [ids.ordered() for _ in range(2_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {raw[6] >> 4 for raw in made} == {7}
    assert {raw[8] >> 6 for raw in made} == {2}


def _unexpected(name: str, error: Exception) -> None:
    raise AssertionError(f"{name}: {error}")


def test_a_ring_after_its_loop_was_closed_reaches_nobody() -> None:
    wake = Wake()

    async def rest() -> None:
        await wake.sleep(0.0)

    asyncio.run(rest())
    ringing = threading.Thread(target=wake.ring)
    raised: list[object] = []
    hook, threading.excepthook = threading.excepthook, raised.append
    try:
        ringing.start()
        ringing.join()
    finally:
        threading.excepthook = hook
    assert raised == []
