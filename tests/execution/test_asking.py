"""A run that is asked to stop, and what its backend does until it has ended: token, task, bound, cleanup."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.context import JobContext
from runwick.contracts.health import HealthStatus
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.policies import JobPolicy
from tests.attempts import an_attempt
from tests.execution.declared import BuildReport
from tests.execution.heard import FAR_S, attempts
from tests.execution.started import Gate, on_a_loop, started

USER, TIMEOUT = CancellationCause.USER_REQUESTED, CancellationCause.TIMEOUT
SHUTDOWN, LEASE_LOST = CancellationCause.SHUTDOWN, CancellationCause.LEASE_LOST
LONG_S = 3600.0
"""A bound that no test waits for."""


@pytest.mark.parametrize(
    ("cause", "kind", "code"),
    [
        (USER, OutcomeKind.CANCELLED, "cancel_requested"),
        (TIMEOUT, OutcomeKind.TIMED_OUT, "execution_timed_out"),
        (SHUTDOWN, OutcomeKind.INTERRUPTED, "worker_stopping"),
        (LEASE_LOST, OutcomeKind.INTERRUPTED, "lease_lost"),
    ],
)
def test_a_handler_that_does_not_take_its_context_is_cancelled_at_once(
    cause: CancellationCause, kind: OutcomeKind, code: str
) -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.ask(attempts(1), cause, LONG_S)
        (ended,) = await heard.until_completed(1)
        assert (ended.outcome.kind, ended.outcome.code) == (kind, code)
        assert heard.given_up == []

    on_a_loop(scenario)


def test_one_that_takes_its_context_sees_the_token_first_and_may_end_by_itself() -> None:
    async def scenario() -> None:
        entered = asyncio.Event()

        async def handler(job: BuildReport, ctx: JobContext) -> str:
            entered.set()
            while not ctx.cancellation.is_set():
                await asyncio.sleep(0)
            return f"saw {ctx.cancellation.causes.name}"

        backend, heard = await started(handler)
        backend.hand_over(attempts(1), FAR_S)
        await entered.wait()
        backend.ask(None, USER, LONG_S)
        (ended,) = await heard.until_completed(1)
        assert (ended.outcome.kind, ended.outcome.result) == (OutcomeKind.SUCCEEDED, b'"saw USER_REQUESTED"')

    on_a_loop(scenario)


def test_one_that_takes_its_context_and_does_not_look_is_cancelled_at_half_of_its_bound() -> None:
    async def scenario() -> None:
        entered = asyncio.Event()

        async def handler(job: BuildReport, ctx: JobContext) -> None:
            entered.set()
            await asyncio.Event().wait()

        backend, heard = await started(handler)
        backend.hand_over(attempts(1), FAR_S)
        await entered.wait()
        backend.ask(None, USER, LONG_S)
        (held,) = backend._held.values()
        assert held.interrupting is not None
        assert held.giving_up is not None
        assert held.giving_up.when() - held.interrupting.when() == pytest.approx(LONG_S / 2)
        backend.ask(None, SHUTDOWN, 0.02)
        (ended,) = await heard.until_completed(1)
        assert ended.outcome.kind is OutcomeKind.CANCELLED
        assert heard.given_up == []

    on_a_loop(scenario)


def test_one_that_wants_the_token_alone_is_never_cancelled() -> None:
    async def scenario() -> None:
        gate = Gate()

        async def handler(job: BuildReport, ctx: JobContext) -> int:
            return await gate.handle(job)

        backend, heard = await started(handler, interrupt="token")
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.ask(None, SHUTDOWN, 0.01)
        assert await heard.until_given_up(1) == attempts(1)
        gate.open.set()
        (ended,) = await heard.until_completed(1)
        assert ended.outcome.kind is OutcomeKind.SUCCEEDED

    on_a_loop(scenario)


class Stubborn(Gate):
    """A gate that nobody gets out of by a cancellation."""

    cancelled = 0

    async def handle(self, job: BuildReport) -> int:
        self.entered.set()
        while not self.open.is_set():
            try:
                await self.open.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        return job.pages


def test_asking_again_adds_causes_never_gives_more_time_and_cancels_once() -> None:
    async def scenario() -> None:
        gate = Stubborn()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.ask(None, SHUTDOWN, LONG_S)
        backend.ask(None, USER, 0.01)
        backend.ask(None, SHUTDOWN, LONG_S)
        assert await heard.until_given_up(1) == attempts(1)
        (held,) = backend._held.values()
        assert held.token.causes == USER | SHUTDOWN
        backend.ask(None, LEASE_LOST, 0.0)
        gate.open.set()
        await heard.until_completed(1)
        assert gate.cancelled == 1
        assert heard.given_up == attempts(1)

    on_a_loop(scenario)


def test_a_slot_that_a_run_does_not_leave_shows_in_the_health_until_it_ends() -> None:
    async def scenario() -> None:
        gate = Stubborn()
        backend, heard = await started(gate.handle, concurrency=2)
        assert (backend.health().role, backend.health().status) == ("pool main", HealthStatus.HEALTHY)
        backend.hand_over(attempts(1), FAR_S)
        await gate.entered.wait()
        backend.ask(None, USER, 0.0)
        await heard.until_given_up(1)
        assert (backend.health().status, backend.health().code) == (HealthStatus.DEGRADED, "executors_missing")
        backend.hand_over(attempts(2), FAR_S)
        await asyncio.sleep(0)
        backend.ask(None, USER, 0.0)
        await heard.until_given_up(2)
        assert (backend.health().status, backend.health().code) == (HealthStatus.UNHEALTHY, "no_executors")
        assert backend.health().text.startswith("2 of 2 slots")
        assert backend.room().free == 0
        gate.open.set()
        await heard.until_completed(2)
        assert backend.health().status is HealthStatus.HEALTHY

    on_a_loop(scenario)


class Closing:
    """What a provider gives that closes only when it may."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    def provider(self) -> Callable[[], AsyncIterator["Closing"]]:
        async def opened() -> AsyncIterator[Closing]:
            yield self
            self.begun.set()
            await self.may_end.wait()

        return opened


async def closes(job: BuildReport, closing: Closing) -> int:
    return job.pages


def test_what_is_being_closed_is_neither_cancelled_nor_given_up_within_its_budget() -> None:
    async def scenario() -> None:
        closing = Closing()
        backend, heard = await started(closes, attempt=(closing.provider(),), cleanup_s=LONG_S)
        backend.hand_over(attempts(1), FAR_S)
        await closing.begun.wait()
        backend.ask(None, USER, 0.0)
        (held,) = backend._held.values()
        while held.giving_up is not None:
            await asyncio.sleep(0)
        assert heard.given_up == []
        closing.may_end.set()
        (ended,) = await heard.until_completed(1)
        assert (ended.outcome.kind, ended.outcome.result) == (OutcomeKind.SUCCEEDED, b"1")

    on_a_loop(scenario)


def test_what_closes_for_longer_than_its_budget_is_given_up_without_being_asked() -> None:
    async def scenario() -> None:
        closing = Closing()
        backend, heard = await started(closes, attempt=(closing.provider(),), cleanup_s=0.01)
        backend.hand_over(attempts(1), FAR_S)
        assert await heard.until_given_up(1) == attempts(1)
        closing.may_end.set()
        await heard.until_completed(1)
        assert heard.given_up == attempts(1)

    on_a_loop(scenario)


def test_a_lost_lease_waits_for_nothing_that_closes() -> None:
    async def scenario() -> None:
        closing = Closing()
        backend, heard = await started(closes, attempt=(closing.provider(),), cleanup_s=LONG_S)
        backend.hand_over(attempts(1), FAR_S)
        await closing.begun.wait()
        backend.ask(None, USER, 0.0)
        (held,) = backend._held.values()
        while held.giving_up is not None:
            await asyncio.sleep(0)
        backend.ask(None, LEASE_LOST, 0.0)
        assert await heard.until_given_up(1) == attempts(1)
        closing.may_end.set()
        await heard.until_completed(1)

    on_a_loop(scenario)


def test_at_its_time_limit_a_run_that_takes_its_context_is_asked_and_has_timed_out_whatever_it_returns() -> None:
    async def scenario() -> None:
        async def handler(job: BuildReport, ctx: JobContext) -> str:
            while not ctx.cancellation.is_set():
                await asyncio.sleep(0)
            return ctx.cancellation.causes.name or ""

        backend, heard = await started(handler)
        backend.hand_over([an_attempt(1, policy=JobPolicy(execution_timeout_ms=5))], FAR_S)
        (ended,) = await heard.until_completed(1)
        assert (ended.outcome.kind, ended.outcome.result) == (OutcomeKind.TIMED_OUT, None)
        assert heard.given_up == []

    on_a_loop(scenario)


def test_it_tells_what_each_slot_does_and_when_runs_began() -> None:
    async def scenario() -> None:
        gate = Stubborn()
        backend, heard = await started(gate.handle, concurrency=2)
        assert [(slot.number, slot.pool, slot.phase) for slot in backend.doing()] == [
            (1, "main", "idle"),
            (2, "main", "idle"),
        ]
        backend.hand_over(attempts(7), FAR_S)
        assert [(slot.phase, slot.job_id) for slot in backend.doing()] == [("idle", None)] * 2
        assert backend.marks() == []
        await gate.entered.wait()
        (attempt,) = attempts(7)
        (mark,) = backend.marks()
        assert (mark.job, mark.claim_token) == (attempt.job, attempt.claim_token)
        busy, idle = backend.doing()
        assert (busy.phase, busy.name, busy.job_id, busy.attempt_id, busy.begun_at_ms) == (
            "handle",
            "reports.build",
            attempt.job_id,
            attempt.attempt_id,
            mark.begun_at_ms,
        )
        assert idle.phase == "idle"
        backend.ask(None, USER, LONG_S)
        assert backend.doing()[0].phase == "stopping"
        gate.open.set()
        await heard.until_completed(1)
        assert [(slot.phase, slot.attempts) for slot in backend.doing()] == [("idle", 1), ("idle", 0)]
        assert backend.marks() == []

    on_a_loop(scenario)


def test_a_run_that_waits_shows_its_stack_down_to_what_it_waits_in() -> None:
    async def scenario() -> None:
        gate = Gate()
        backend, heard = await started(gate.handle)
        backend.hand_over(attempts(1, 2), FAR_S)
        backend.look([attempts(1)[0].attempt_id])
        assert heard.stacks == [], "it has not begun"
        await gate.entered.wait()
        backend.look([b"another pool's"])
        assert heard.stacks == []
        backend.look([attempts(1)[0].attempt_id])
        (answer,) = heard.stacks
        assert answer.attempt_id == attempts(1)[0].attempt_id
        assert answer.text.index("in invoke") < answer.text.index("in handle") < answer.text.index("in wait")
        assert "await self.open.wait()" in answer.text
        gate.open.set()
        await heard.until_completed(2)
        backend.look([attempts(1)[0].attempt_id])
        assert len(heard.stacks) == 1

    on_a_loop(scenario)
