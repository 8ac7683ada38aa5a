"""A run that is asked to stop: by its token, by an exception raised in it, by the cancellation of its task."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from types import FrameType
from typing import Any

import pytest

from runwick import Cancellation, CancellationCause, Failed, JobCancelled, JobContext, NextAsync, Result
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.declarations.catalog import Catalog
from runwick.execution.cancellation import NEVER, Token
from runwick.execution.failures import Step
from runwick.execution.invoke import Invoker
from tests.execution.declared import PAYLOAD, BuildReport, DropReport, a_catalog, a_run, an_invoker

USER, TIMEOUT = CancellationCause.USER_REQUESTED, CancellationCause.TIMEOUT
SHUTDOWN, LEASE_LOST = CancellationCause.SHUTDOWN, CancellationCause.LEASE_LOST


class Asking:
    """An executor's way to interrupt, with the signal raised by the test."""

    def __init__(self) -> None:
        self.token = Token()
        self.cause = USER
        self.insist = False
        self.invoker: Invoker | None = None

    def run(self, catalog: Catalog, token: Cancellation | None = None, **changes: Any) -> Outcome:
        self.invoker = invoker = an_invoker(catalog, **changes)
        try:
            return invoker.invoke_blocking(a_run(), PAYLOAD, token=self.token if token is None else token)
        finally:
            invoker.close()

    def now(self, cause: CancellationCause = USER, *, insist: bool = False) -> None:
        """The signal comes, in this thread and at this place."""
        self.cause, self.insist = cause, insist
        self.token.ask(cause)
        signal.raise_signal(signal.SIGUSR1)

    def heard(self, *_: object) -> None:
        assert self.invoker is not None
        self.invoker.interrupt(self.cause, insist=self.insist)


@pytest.fixture
def ask() -> Iterator[Asking]:
    asking = Asking()
    before = signal.signal(signal.SIGUSR1, asking.heard)
    yield asking
    signal.signal(signal.SIGUSR1, before)


def ended(outcome: Outcome) -> tuple[OutcomeKind, str | None]:
    return outcome.kind, outcome.code


CANCELLED = (OutcomeKind.CANCELLED, "cancel_requested")
TIMED_OUT = (OutcomeKind.TIMED_OUT, "execution_timed_out")
SUCCEEDED = (OutcomeKind.SUCCEEDED, None)

# The token ------------------------------------------------------------------------------------------------------------

ENDINGS = [
    (USER, CANCELLED),
    (TIMEOUT, TIMED_OUT),
    (SHUTDOWN, (OutcomeKind.INTERRUPTED, "worker_stopping")),
    (LEASE_LOST, (OutcomeKind.INTERRUPTED, "lease_lost")),
    (LEASE_LOST | SHUTDOWN, (OutcomeKind.INTERRUPTED, "worker_stopping")),
    (SHUTDOWN | USER, CANCELLED),
    (USER | TIMEOUT | SHUTDOWN | LEASE_LOST, TIMED_OUT),
]


@pytest.mark.parametrize(("causes", "ending"), ENDINGS, ids=str)
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_handler_that_heeds_its_token_ends_by_the_cause(
    ask: Asking, causes: CancellationCause, ending: Any, is_async: bool
) -> None:
    def plain(job: BuildReport, ctx: JobContext) -> None:
        ask.token.ask(causes)
        assert ctx.cancellation.is_set()
        ctx.cancellation.raise_if_set()

    async def with_loop(job: BuildReport, ctx: JobContext) -> None:
        ask.token.ask(causes)
        raise asyncio.CancelledError

    outcome = ask.run(a_catalog(with_loop if is_async else plain))
    assert ended(outcome) == ending
    assert outcome.error is not None


@pytest.mark.parametrize(("causes", "ending"), ENDINGS, ids=str)
def test_only_a_time_limit_wins_over_a_normal_return(ask: Asking, causes: CancellationCause, ending: Any) -> None:
    def handler(job: BuildReport) -> int:
        ask.token.ask(causes)
        return job.pages

    outcome = ask.run(a_catalog(handler))
    if TIMEOUT in causes:
        assert ended(outcome) == TIMED_OUT
        assert (outcome.result, outcome.error and outcome.error.type) == (None, "time limit")
    else:
        assert (ended(outcome), outcome.result) == (SUCCEEDED, b"3")


@pytest.mark.parametrize("causes", [USER, SHUTDOWN, LEASE_LOST, TIMEOUT], ids=str)
def test_any_other_exception_is_an_ordinary_failure_unless_the_time_is_up(
    ask: Asking, causes: CancellationCause
) -> None:
    def handler(job: BuildReport) -> None:
        ask.token.ask(causes)
        raise ValueError("out of ink")

    outcome = ask.run(a_catalog(handler))
    assert ended(outcome) == (TIMED_OUT if causes is TIMEOUT else (OutcomeKind.FAILED, "handler_failed"))
    assert outcome.error is not None
    assert outcome.error.message == "out of ink"


def test_a_time_limit_counts_to_the_end_of_cleanup(ask: Asking) -> None:
    def shop() -> Iterator[str]:
        try:
            yield "north"
        finally:
            ask.token.ask(TIMEOUT)

    def handler(job: BuildReport, shop: str) -> Any:
        return Failed("closed")

    def succeeding(job: BuildReport, shop: str) -> str:
        return shop

    for each in (handler, succeeding):
        outcome = ask.run(a_catalog(each, attempt=(shop,)))
        assert (ended(outcome), outcome.result) == (TIMED_OUT, None)


def test_stopping_without_being_asked_is_a_failure(ask: Asking) -> None:
    def plain(job: BuildReport) -> None:
        raise JobCancelled(USER)

    async def with_loop(job: BuildReport) -> None:
        raise asyncio.CancelledError

    for handler in (plain, with_loop):
        assert ended(ask.run(a_catalog(handler), NEVER)) == (OutcomeKind.FAILED, "handler_failed")


# Raised in a plain handler --------------------------------------------------------------------------------------------


def test_a_handler_without_context_is_interrupted_at_once(ask: Asking) -> None:
    order: list[str] = []

    def shop() -> Iterator[str]:
        try:
            yield "north"
        except JobCancelled as error:
            order.append(f"rolled back: {error.causes.name}")
            raise

    def handler(job: BuildReport, shop: str) -> None:
        try:
            ask.now()
            order.append("went on")
        except Exception:
            order.append("swallowed")
        finally:
            order.append("cleaned up")

    outcome = ask.run(a_catalog(handler, attempt=(shop,)))
    assert (ended(outcome), order) == (CANCELLED, ["cleaned up", "rolled back: USER_REQUESTED"])
    assert ask.invoker is not None
    assert ask.invoker.was_interrupted


def test_what_interrupts_counts_where_the_token_says_nothing(ask: Asking) -> None:
    def handler(job: BuildReport) -> None:
        ask.now(SHUTDOWN)

    assert ended(ask.run(a_catalog(handler), NEVER)) == (OutcomeKind.INTERRUPTED, "worker_stopping")


def test_a_handler_with_context_is_interrupted_when_it_is_insisted(ask: Asking) -> None:
    order: list[str] = []

    def handler(job: BuildReport, ctx: JobContext) -> None:
        ask.now()
        order.append("went on")
        ask.now(insist=True)
        order.append("went on for ever")

    assert ended(ask.run(a_catalog(handler))) == CANCELLED
    assert order == ["went on"]


def test_one_that_asked_for_the_token_alone_is_never_interrupted(ask: Asking) -> None:
    def handler(job: BuildReport, ctx: JobContext) -> int:
        ask.now()
        ask.now(insist=True)
        return job.pages

    assert ended(ask.run(a_catalog(handler, interrupt="token"))) == SUCCEEDED
    assert ask.invoker is not None
    assert not ask.invoker.was_interrupted


def test_an_attempt_is_interrupted_once(ask: Asking) -> None:
    def handler(job: BuildReport) -> int:
        with contextlib.suppress(JobCancelled):
            ask.now()
        ask.now()
        ask.now(insist=True)
        return job.pages

    assert ended(ask.run(a_catalog(handler))) == SUCCEEDED
    assert ask.invoker is not None
    assert ask.invoker.was_interrupted


def test_a_blocking_call_is_interrupted(ask: Asking) -> None:
    began, over = threading.Event(), threading.Event()

    def signalling() -> None:
        began.wait()
        ask.token.ask(USER)
        # Again and again, as an executor's parent does: one that comes just before the call blocks is not seen by it.
        while not over.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    def handler(job: BuildReport) -> None:
        began.set()
        time.sleep(60)

    thread = threading.Thread(target=signalling)
    thread.start()
    assert ended(ask.run(a_catalog(handler))) == CANCELLED
    over.set()
    thread.join()


def test_nothing_is_interrupted_before_the_providers_and_after_the_handler(ask: Asking) -> None:
    steps: list[Step] = []

    def shop() -> Iterator[str]:
        yield "north"
        ask.now(insist=True)

    def handler(job: BuildReport, shop: str) -> str:
        return shop

    def moved(step: Step) -> None:
        steps.append(step)
        if step in (Step.ENCODE, Step.CLOSE):
            ask.now(insist=True)

    outcome = ask.run(a_catalog(handler, attempt=(shop,)), begun=lambda: ask.now(insist=True), moved=moved)
    assert (ended(outcome), outcome.result) == (SUCCEEDED, b'"north"')
    assert steps == [Step.PROVIDE, Step.HANDLE, Step.ENCODE, Step.CLOSE]
    ask.now(insist=True)  # nothing runs: nothing happens


@pytest.mark.parametrize("step", [Step.PROVIDE, Step.HANDLE])
def test_it_may_be_tried_again_at_the_first_step_that_lets_it_through(ask: Asking, step: Step) -> None:
    def shop() -> str:
        return "north"

    def handler(job: BuildReport, shop: str) -> None:
        pytest.fail("called")

    outcome = ask.run(a_catalog(handler, attempt=(shop,)), moved=lambda at: ask.now() if at is step else None)
    assert ended(outcome) == CANCELLED


def test_what_needs_no_provider_lets_it_through_at_its_handler(ask: Asking) -> None:
    steps: list[Step] = []

    def handler(job: BuildReport) -> None:
        pytest.fail("called")

    def moved(step: Step) -> None:
        steps.append(step)
        ask.now()

    assert ended(ask.run(a_catalog(handler), moved=moved)) == CANCELLED
    assert steps == [Step.HANDLE, Step.CLOSE]


def test_middleware_cannot_mistake_it_for_an_error(ask: Asking) -> None:
    order: list[str] = []

    def soothing(ctx: JobContext) -> Generator[None, Result, Result]:
        try:
            return (yield)
        except Exception:
            order.append("swallowed")
            raise
        finally:
            order.append("passed")

    def handler(job: BuildReport) -> None:
        ask.now()

    assert ended(ask.run(a_catalog(handler, middleware=(soothing,)))) == CANCELLED
    assert order == ["passed"]


def interrupted_at(catalog: Catalog, line: int, own: Callable[..., Any]) -> Outcome | None:
    """What an attempt ends in that is interrupted before that line, counted over the invoker's and the handler's `own`;
    None when it has not so many."""
    invoker, token, count = an_invoker(catalog), Token(), 0
    token.ask(USER)

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if "runwick/execution" not in frame.f_code.co_filename and frame.f_code is not own.__code__:
            return None
        count += 1
        if count == line:
            invoker.interrupt(USER, insist=True)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome = invoker.invoke_blocking(a_run(), PAYLOAD, token=token)
    finally:
        sys.settrace(before)
    return outcome if count >= line else None


def test_an_attempt_ends_in_an_outcome_wherever_it_is_interrupted() -> None:
    def shop() -> Iterator[str]:
        yield "north"

    def handler(job: BuildReport, shop: str) -> str:
        return shop

    def failing(job: BuildReport, shop: str) -> str:
        raise ValueError(shop)

    def layer(ctx: JobContext) -> Generator[None, Result, Result]:
        return (yield)

    for own, middleware in ((handler, ()), (failing, ()), (handler, (layer,))):
        catalog = a_catalog(own, attempt=(shop,), middleware=middleware)
        kinds = []
        for line in itertools.count(1):
            outcome = interrupted_at(catalog, line, own)
            if outcome is None:
                break
            kinds.append(outcome.kind)
        undisturbed = OutcomeKind.FAILED if own is failing else OutcomeKind.SUCCEEDED
        assert set(kinds) == {undisturbed, OutcomeKind.CANCELLED}
        assert [kinds[0], kinds[-1]] == [undisturbed, undisturbed]


# The task of an async handler -----------------------------------------------------------------------------------------


def test_the_task_of_an_async_handler_is_cancelled(ask: Asking) -> None:
    order: list[str] = []

    async def shop() -> AsyncIterator[str]:
        try:
            yield "north"
        finally:
            async with asyncio.timeout(10):  # would be hit by a cancellation that is still pending
                await asyncio.sleep(0)
            task = asyncio.current_task()
            assert task is not None
            order.append(f"closed, cancelling {task.cancelling()}")

    async def handler(job: BuildReport, shop: str) -> None:
        asyncio.get_running_loop().call_later(0.01, ask.now)
        try:
            await asyncio.sleep(60)
        finally:
            order.append("cleaned up")

    assert ended(ask.run(a_catalog(handler, attempt=(shop,)))) == CANCELLED
    assert order == ["cleaned up", "closed, cancelling 0"]
    assert ask.invoker is not None
    assert not ask.invoker.was_interrupted  # nothing was torn out of anybody's hands


def test_an_async_handler_that_takes_the_context_is_cancelled_when_it_is_insisted(ask: Asking) -> None:
    async def handler(job: BuildReport, ctx: JobContext) -> None:
        ask.now()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ask.now(insist=True)
        await asyncio.sleep(60)

    assert ended(ask.run(a_catalog(handler))) == CANCELLED


def test_a_task_that_has_come_to_its_cleanup_is_left_alone(ask: Asking) -> None:
    async def shop() -> AsyncIterator[str]:
        yield "north"
        await asyncio.sleep(0)

    async def handler(job: BuildReport, shop: str) -> str:
        ask.now()  # in this moment, so that its cancellation comes when the handler has returned
        return shop

    outcome = ask.run(a_catalog(handler, attempt=(shop,)))
    assert (ended(outcome), outcome.result) == (SUCCEEDED, b'"north"')


def test_a_plain_handler_on_the_loop_is_interrupted_where_it_is(ask: Asking) -> None:
    async def shop() -> str:
        return "north"

    def handler(job: BuildReport, shop: str) -> None:
        ask.now()
        pytest.fail("went on")

    assert ended(ask.run(a_catalog(handler, attempt=(shop,)))) == CANCELLED
    assert ask.invoker is not None
    assert ask.invoker.was_interrupted


def test_async_middleware_is_cancelled_around_a_plain_handler(ask: Asking) -> None:
    async def waiting(ctx: JobContext, proceed: NextAsync) -> Result:
        asyncio.get_running_loop().call_soon(ask.now)
        await asyncio.sleep(60)
        return await proceed()

    def handler(job: BuildReport) -> None:
        pytest.fail("called")

    assert ended(ask.run(a_catalog(handler, middleware=(waiting,)))) == CANCELLED


def test_async_middleware_is_cancelled_after_a_plain_handler_that_raised(ask: Asking) -> None:
    async def trying_again(ctx: JobContext, proceed: NextAsync) -> Result:
        with contextlib.suppress(ValueError):
            await proceed()
        asyncio.get_running_loop().call_soon(ask.now)
        await asyncio.sleep(60)
        return Failed("too_late")

    def handler(job: BuildReport) -> None:
        raise ValueError

    assert ended(ask.run(a_catalog(handler, middleware=(trying_again,)))) == CANCELLED


def test_the_next_attempt_is_not_interrupted(ask: Asking) -> None:
    def handler(job: BuildReport) -> None:
        ask.now()

    def other(job: DropReport) -> int:
        return job.pages

    invoker = ask.invoker = an_invoker(a_catalog(handler, other))
    assert ended(invoker.invoke_blocking(a_run(), PAYLOAD, token=ask.token)) == CANCELLED
    assert invoker.was_interrupted
    assert ended(invoker.invoke_blocking(a_run("reports.drop"), PAYLOAD)) == SUCCEEDED
    assert not invoker.was_interrupted


def test_what_a_backend_asks_of_a_handler() -> None:
    def blind(job: BuildReport) -> None: ...
    def seeing(job: DropReport, ctx: JobContext) -> None: ...

    invoker = an_invoker(a_catalog(blind, seeing))
    told = [
        (invoker.takes_context(run), invoker.may_be_interrupted(run))
        for run in map(a_run, ("reports.build", "reports.drop"))
    ]
    assert told == [(False, True), (True, True)]
    assert not an_invoker(a_catalog(seeing, interrupt="token")).may_be_interrupted(a_run("reports.drop"))
