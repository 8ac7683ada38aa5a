"""The inline backend on a loop of its own: hand-over, take-back, completions, stop."""

import asyncio

import pytest

from runwick.contracts.backends import Backend
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.execution.inline import InlineBackend
from runwick.runtime.ambient import SystemClock
from tests.ambient import FakeClock
from tests.attempts import an_attempt
from tests.execution.declared import BuildReport, a_catalog, an_invoker
from tests.execution.heard import FAR_S, attempts
from tests.execution.started import Gate, on_a_loop, started


def test_it_is_a_backend() -> None:
    def handler(job: BuildReport) -> None: ...

    backend: Backend = InlineBackend(
        an_invoker(a_catalog(handler), alone=False), "main", concurrency=1, clock=SystemClock()
    )
    assert backend.name == "inline"


def test_attempts_run_at_once_and_are_reported_with_their_results() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        assert backend.room().free == 2
        backend.hand_over(attempts(1, 2), FAR_S)
        assert (backend.room().free, backend.room().worthwhile, backend.running()) == (0, False, 2)
        await gate.entered.wait()
        await asyncio.sleep(0)
        assert gate.running == 2
        gate.open.set()
        done = await heard.until_completed(2)
        assert {(each.attempt.job, each.outcome.result) for each in done} == {(1, b"1"), (2, b"2")}
        assert (backend.room().free, backend.room().worthwhile, backend.running()) == (2, True, 0)
        assert heard.changes == 2
        await backend.stop()

    on_a_loop(scenario)


def test_only_wall_time_is_attributed() -> None:
    async def scenario() -> None:
        def handler(job: BuildReport) -> None: ...

        backend, heard = await started(handler)
        backend.hand_over(attempts(1), FAR_S)
        usage = (await heard.until_completed(1))[0].outcome.usage
        assert usage is not None
        assert usage.wall_us is not None
        assert usage.cpu_us is None
        await backend.stop()

    on_a_loop(scenario)


def test_what_has_not_begun_is_taken_back_and_never_runs() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle, concurrency=3)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.hand_over(attempts(2, 3), FAR_S)
        assert [attempt.job for attempt in backend.take_back()] == [2, 3]
        assert backend.take_back() == []
        gate.open.set()
        await heard.until_completed(1)
        await backend.stop()
        assert gate.running == 1
        assert [each.attempt.job for each in heard.completions] == [1]

    on_a_loop(scenario)


def test_stopping_by_force_interrupts_what_runs_and_releases_the_rest() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.hand_over(attempts(2), FAR_S)
        backend.ask(None, CancellationCause.SHUTDOWN, 0.0)
        assert [attempt.job for attempt in heard.released] == [2]
        await backend.stop()
        assert [(each.attempt.job, each.outcome.kind) for each in heard.completions] == [(1, OutcomeKind.INTERRUPTED)]

    on_a_loop(scenario)


def test_only_the_runs_that_were_named_are_stopped() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1, 2), FAR_S)
        await gate.entered.wait()
        await asyncio.sleep(0)
        backend.ask([*attempts(2), *attempts(7)], CancellationCause.SHUTDOWN, 10.0)
        first = (await heard.until_completed(1))[0]
        assert (first.attempt.job, first.outcome.kind) == (2, OutcomeKind.INTERRUPTED)
        gate.open.set()
        assert (await heard.until_completed(2))[1].outcome.result == b"1"
        await backend.stop()

    on_a_loop(scenario)


def test_a_handler_that_swallows_the_cancellation_runs_to_its_end() -> None:
    async def scenario() -> None:
        entered = asyncio.Event()

        async def handler(job: BuildReport) -> str:
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "done after all"
            return "never"

        backend, heard = await started(handler)
        backend.hand_over(attempts(1), FAR_S)
        await entered.wait()
        backend.ask(None, CancellationCause.SHUTDOWN, 0.0)
        await backend.stop()
        assert heard.completions[0].outcome.result == b'"done after all"'

    on_a_loop(scenario)


def test_a_run_is_stopped_at_its_time_limit_and_others_go_on() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle, concurrency=3)
        overdue = an_attempt(1, policy=JobPolicy(execution_timeout_ms=5))
        backend.hand_over([overdue, an_attempt(2), an_attempt(3, policy=JobPolicy(execution_timeout_ms=60_000))], FAR_S)
        (ended,) = await heard.until_completed(1)
        assert ended.attempt == overdue
        assert (ended.outcome.kind, ended.outcome.code) == (OutcomeKind.TIMED_OUT, "execution_timed_out")
        gate.open.set()
        await backend.stop()
        assert [one.outcome.kind for one in heard.completions[1:]] == [OutcomeKind.SUCCEEDED] * 2

    on_a_loop(scenario)


def test_what_ends_after_its_limit_is_timed_out_whatever_it_returned() -> None:
    async def scenario() -> None:
        clock = FakeClock()

        def handler(job: BuildReport) -> str:
            clock.advance_ms(job.pages)
            return "done"

        backend, heard = await started(handler, clock=clock, concurrency=3)
        limited = JobPolicy(execution_timeout_ms=20)
        backend.hand_over([an_attempt(n, policy=limited, payload=b'{"pages":%d}' % n) for n in (19, 21)], FAR_S)
        within, over = [each.outcome for each in await heard.until_completed(2)]
        assert (within.kind, within.result) == (OutcomeKind.SUCCEEDED, b'"done"')
        assert (over.kind, over.code, over.result) == (OutcomeKind.TIMED_OUT, "execution_timed_out", None)
        assert over.error is not None
        assert over.error.message == "its handler returned after the time limit"
        await backend.stop()

    on_a_loop(scenario)


def test_a_run_that_swallows_its_time_limit_is_given_up_and_still_reported() -> None:
    async def scenario() -> None:
        gate = Gate()

        async def handler(job: BuildReport) -> str:
            try:
                await gate.handle(job)
            except asyncio.CancelledError:
                await gate.open.wait()
            return "late"

        backend, heard = await started(handler, concurrency=1, grace_s=0.02)
        overdue = an_attempt(1, policy=JobPolicy(execution_timeout_ms=5))
        backend.hand_over([overdue], FAR_S)
        assert await heard.until_given_up(1) == [overdue]
        assert (backend.room().free, backend.running(), heard.completions) == (0, 1, [])
        gate.open.set()
        (ended,) = await heard.until_completed(1)
        assert (ended.attempt, ended.outcome.kind, ended.outcome.result) == (overdue, OutcomeKind.TIMED_OUT, None)
        await backend.stop()

    on_a_loop(scenario)


def test_stop_waits_for_what_runs() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        stopping = asyncio.create_task(backend.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        gate.open.set()
        await stopping
        assert heard.completions[0].outcome.result == b"1"

    on_a_loop(scenario)


def test_the_next_completion_is_expected_as_the_kind_took_before() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        gate = Gate()

        async def handler(job: BuildReport) -> int:
            clock.advance_ms(job.pages)
            return await gate.handle(job)

        backend, heard = await started(handler, clock=clock, concurrency=1)
        assert backend.next_completion_ms() is None
        gate.open.set()
        backend.hand_over([an_attempt(1, payload=b'{"pages":10}')], FAR_S)
        assert backend.next_completion_ms() == float("inf")
        await heard.until_completed(1)
        backend.hand_over([an_attempt(2, payload=b'{"pages":20}')], FAR_S)
        assert backend.next_completion_ms() == pytest.approx(10)
        await heard.until_completed(2)
        backend.hand_over([an_attempt(3, payload=b'{"pages":20}')], FAR_S)
        assert backend.next_completion_ms() == pytest.approx(12)
        await heard.until_completed(3)
        await backend.stop()

    on_a_loop(scenario)
