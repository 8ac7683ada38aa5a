"""What middleware does to a run, in its three forms, and how it is held to its contract."""

import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from runwick import Cancelled, Failed, JobContext, Next, NextAsync, PermanentJobFailure, Result, Retry, Succeeded
from runwick.contracts.outcomes import ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.declarations.catalog import Catalog
from tests.execution.declared import PAYLOAD, BuildReport, a_catalog, a_run, an_invoker


def outcome_of(catalog: Catalog) -> Outcome:
    invoker = an_invoker(catalog)
    try:
        return invoker.invoke_blocking(a_run(), PAYLOAD)
    finally:
        invoker.close()


def just(answer: Any, result: Result) -> Any:
    return answer


def on_a_loop(catalog: Catalog) -> Outcome:
    return asyncio.run(an_invoker(catalog, alone=False).invoke(a_run(), PAYLOAD))


def pages(job: BuildReport) -> int:
    return job.pages


async def pages_async(job: BuildReport) -> int:
    await asyncio.sleep(0)
    return job.pages


# Three forms that do the same: what they do before and after the rest is noted, and `change` makes the answer --------

Change = Callable[[Result], Any]


def as_generator(notes: list[str], name: str, change: Change = lambda result: result) -> Callable[..., Any]:
    def layer(ctx: JobContext) -> Generator[None, Result, Result]:
        notes.append(f"{name} {ctx.payload.pages}")
        result = yield
        notes.append(f"after {name}")
        answer: Result = change(result)
        return answer

    return layer


def as_plain(notes: list[str], name: str, change: Change = lambda result: result) -> Callable[..., Any]:
    def layer(ctx: JobContext, proceed: Next) -> Result:
        notes.append(f"{name} {ctx.payload.pages}")
        result = proceed()
        notes.append(f"after {name}")
        answer: Result = change(result)
        return answer

    return layer


def as_async(notes: list[str], name: str, change: Change = lambda result: result) -> Callable[..., Any]:
    async def layer(ctx: JobContext, proceed: NextAsync) -> Result:
        notes.append(f"{name} {ctx.payload.pages}")
        result = await proceed()
        notes.append(f"after {name}")
        answer: Result = change(result)
        return answer

    return layer


FORMS = [as_generator, as_plain, as_async]
each_form = pytest.mark.parametrize("form", FORMS, ids=["generator", "plain", "async"])


@each_form
def test_it_runs_around_the_handler(form: Any) -> None:
    notes: list[str] = []

    def handler(job: BuildReport) -> int:
        notes.append("handler")
        return job.pages

    outcome = outcome_of(a_catalog(handler, middleware=(form(notes, "outer"), as_generator(notes, "inner"))))
    assert (outcome.kind, outcome.result) == (OutcomeKind.SUCCEEDED, b"3")
    assert notes == ["outer 3", "inner 3", "handler", "after inner", "after outer"]


def test_an_async_handler_fits_inside_what_can_wait() -> None:
    notes: list[str] = []
    layers = (as_async(notes, "async"), as_generator(notes, "generator"))
    outcome = outcome_of(a_catalog(pages_async, middleware=layers))
    assert outcome.result == b"3"
    assert notes == ["async 3", "generator 3", "after generator", "after async"]


def test_a_class_is_made_anew_for_every_run() -> None:
    class Counting:
        def __init__(self) -> None:
            self.runs = 0

        def handle(self, ctx: JobContext, proceed: Next) -> Result:
            self.runs += 1
            proceed()
            return Succeeded(self.runs)

    invoker = an_invoker(a_catalog(pages, middleware=(Counting,)))
    assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(2)] == [b"1", b"1"]


def test_the_context_is_the_handlers() -> None:
    def noting(ctx: JobContext) -> Generator[None, Result, Result]:
        ctx.items["shop"] = "north"
        result = yield
        assert ctx.items["seen"] == "north"
        return result

    def handler(job: BuildReport, ctx: JobContext) -> None:
        ctx.items["seen"] = ctx.items["shop"]

    assert outcome_of(a_catalog(handler, middleware=(noting,))).kind is OutcomeKind.SUCCEEDED


@each_form
def test_it_shares_providers_with_the_handler_and_a_short_cut_opens_none_of_the_handlers(form: Any) -> None:
    opened: list[str] = []

    def shop() -> Iterator[str]:
        opened.append("shop")
        yield "north"
        opened.append("shop closed")

    def weight() -> float:
        opened.append("weight")
        return 1.5

    def handler(job: BuildReport, shop: str, weight: float) -> str:
        return shop

    def naming(ctx: JobContext, shop: str) -> Generator[None, Result, Result]:
        return (yield) if shop == "north" else Failed("unknown_shop")

    def short(ctx: JobContext, shop: str) -> Generator[None, Result, Result]:
        return Succeeded("skipped")
        yield  # pragma: no cover

    assert (
        outcome_of(a_catalog(handler, attempt=(shop, weight), middleware=(form([], "x"), naming))).result == b'"north"'
    )
    assert opened == ["shop", "weight", "shop closed"]
    opened.clear()
    outcome = outcome_of(a_catalog(handler, attempt=(shop, weight), middleware=(form([], "x"), short)))
    assert outcome.result == b'"skipped"'
    assert opened == ["shop", "shop closed"]


# Results --------------------------------------------------------------------------------------------------------------

RESULTS: list[tuple[Any, OutcomeKind, str | None, str | None, int | None]] = [
    (Succeeded(), OutcomeKind.SUCCEEDED, None, None, None),
    (Retry("paper_jam"), OutcomeKind.FAILED, "paper_jam", "paper_jam", None),
    (Retry("out of ink", timedelta(seconds=90)), OutcomeKind.FAILED, "retry_requested", "out of ink", 90_000),
    (Retry("now", timedelta(0)), OutcomeKind.FAILED, "now", "now", 0),
    (Retry("huge", timedelta.max), OutcomeKind.FAILED, "huge", "huge", 36_500 * 86_400_000),
    (
        Failed("no_such_shop", "Shop 7 is closed."),
        OutcomeKind.FAILED_PERMANENTLY,
        "no_such_shop",
        "Shop 7 is closed.",
        None,
    ),
    (Failed("not a name", ""), OutcomeKind.FAILED_PERMANENTLY, "permanent_failure", "", None),
    (Cancelled("withdrawn"), OutcomeKind.CANCELLED, "withdrawn", "withdrawn", None),
    (Cancelled("by the shop"), OutcomeKind.CANCELLED, "cancel_requested", "by the shop", None),
]


@pytest.mark.parametrize(("result", "kind", "code", "message", "delay_ms"), RESULTS, ids=lambda value: None)
@pytest.mark.parametrize("place", [*FORMS, None], ids=["generator", "plain", "async", "handler"])
@pytest.mark.parametrize("runs", [outcome_of, on_a_loop], ids=["blocking", "loop"])
def test_what_each_result_becomes(
    runs: Any, place: Any, result: Any, kind: OutcomeKind, code: str | None, message: str | None, delay_ms: int | None
) -> None:
    def handler(job: BuildReport) -> Any:
        return result

    catalog = a_catalog(handler) if place is None else a_catalog(pages, middleware=(place([], "x", lambda _: result),))
    outcome = runs(catalog)
    assert (outcome.kind, outcome.code, outcome.retry_after_ms) == (kind, code, delay_ms)
    assert (outcome.error and outcome.error.message) == message
    assert outcome.result is None
    if outcome.error is not None:
        assert (outcome.error.type, outcome.error.text) == (type(result).__name__, ""), "it was answered, not raised"


def test_a_result_other_than_success_rolls_back_and_is_told_to_providers() -> None:
    seen: list[str] = []

    def shop() -> Iterator[str]:
        try:
            yield "north"
        except Exception as error:
            seen.append(str(error))
            raise

    def handler(job: BuildReport, shop: str) -> Any:
        return Retry("out of ink")

    outcome = outcome_of(a_catalog(handler, attempt=(shop,)))
    assert (outcome.kind, seen) == (OutcomeKind.FAILED, ["Retry: out of ink"])


def test_what_providers_raise_when_they_are_closed_after_a_result_is_told() -> None:
    def shop() -> Iterator[str]:
        try:
            yield "north"
        finally:
            raise OSError("the door jams")

    def handler(job: BuildReport, shop: str) -> Any:
        return Retry("out of ink")

    error = outcome_of(a_catalog(handler, attempt=(shop,))).error
    assert error is not None
    assert (error.type, error.message) == ("Retry", "out of ink")
    assert error.text.startswith("While a provider was closed after that:")
    assert "OSError: the door jams" in error.text


def test_where_only_the_message_is_kept_a_result_has_its_own_name_too() -> None:
    def handler(job: BuildReport) -> Any:
        return Failed("no_such_shop", "Shop 7 is closed.")

    run = a_run(policy=JobPolicy(error_detail="message"))
    error = an_invoker(a_catalog(handler)).invoke_blocking(run, PAYLOAD).error
    assert error == ErrorDetail("Failed", "Shop 7 is closed.")


@pytest.mark.parametrize("delay", [timedelta(microseconds=-1), timedelta(days=-9), 5, "1s"], ids=repr)
def test_a_delay_that_is_none_is_a_contract_fault(delay: Any) -> None:
    outcome = outcome_of(a_catalog(pages, middleware=(as_generator([], "x", lambda _: Retry("later", delay)),)))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "middleware_contract_fault")
    assert outcome.retry_after_ms is None


@pytest.mark.parametrize("size", [1023, 1024, 1025, 9000])
def test_the_message_of_a_failure_is_cut_at_1024_bytes(size: int) -> None:
    outcome = outcome_of(a_catalog(pages, middleware=(as_generator([], "x", lambda _: Failed("long", "x" * size)),)))
    assert outcome.error is not None
    assert len(outcome.error.message.encode()) <= 1024
    assert ("left out" in outcome.error.message) == (size > 1024)


def test_reasons_that_are_no_text_are_an_outcome() -> None:
    for result, kind in [
        (Retry(None), OutcomeKind.FAILED),  # type: ignore[arg-type]
        (Failed(5, object()), OutcomeKind.FAILED_PERMANENTLY),  # type: ignore[arg-type]
        (Cancelled("\ud800\0"), OutcomeKind.CANCELLED),
    ]:
        outcome = outcome_of(a_catalog(pages, middleware=(as_generator([], "x", functools.partial(just, result)),)))
        assert outcome.kind is kind
        assert outcome.error is not None
        outcome.error.message.encode()


# Exceptions -----------------------------------------------------------------------------------------------------------


@each_form
def test_what_the_handler_raises_passes_through_unchanged(form: Any) -> None:
    def handler(job: BuildReport) -> None:
        raise PermanentJobFailure("order_not_found", "Order 7 does not exist.")

    outcome = outcome_of(a_catalog(handler, middleware=(form([], "outer"), as_generator([], "inner"))))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "order_not_found")


def test_what_the_handler_raises_may_become_a_result() -> None:
    def handler(job: BuildReport) -> None:
        raise ConnectionError("printer")

    def yielding(ctx: JobContext) -> Generator[None, Result, Result]:
        try:
            return (yield)
        except ConnectionError:
            return Retry("printer_off", timedelta(minutes=5))

    def calling(ctx: JobContext, proceed: Next) -> Result:
        try:
            return proceed()
        except ConnectionError:
            return Retry("printer_off", timedelta(minutes=5))

    async def awaiting(ctx: JobContext, proceed: NextAsync) -> Result:
        with contextlib.suppress(ConnectionError):
            await proceed()
        return Retry("printer_off", timedelta(minutes=5))

    for each in (yielding, calling, awaiting):
        outcome = outcome_of(a_catalog(handler, middleware=(each,)))
        assert (outcome.kind, outcome.code, outcome.retry_after_ms) == (OutcomeKind.FAILED, "printer_off", 300_000)


@each_form
def test_its_own_exception_is_a_retryable_failure(form: Any) -> None:
    def broken(result: Result) -> Any:
        raise OSError("disk")

    outcome = outcome_of(a_catalog(pages, middleware=(form([], "x", broken),)))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert outcome.error is not None
    assert outcome.error.message == "disk"


def test_a_provider_that_fails_for_it_is_told_as_one() -> None:
    def shop() -> str:
        raise OSError("closed")

    def naming(ctx: JobContext, shop: str) -> Generator[None, Result, Result]:
        return (yield)

    outcome = outcome_of(a_catalog(pages, attempt=(shop,), middleware=(naming,)))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "provider_failed")


@each_form
def test_what_a_failed_handler_held_is_freed_at_once(form: Any) -> None:
    class Picture:
        pass

    seen: list[weakref.ref[Picture]] = []

    def handler(job: BuildReport) -> None:
        picture = Picture()
        seen.append(weakref.ref(picture))
        raise ValueError

    invoker = an_invoker(a_catalog(handler, middleware=(form([], "x"),)), alone=False)
    gc.collect()
    gc.disable()
    try:
        if form is as_async:
            assert asyncio.run(invoker.invoke(a_run(), PAYLOAD)).kind is OutcomeKind.FAILED
        else:
            assert invoker.invoke_blocking(a_run(), PAYLOAD).kind is OutcomeKind.FAILED
        assert seen[0]() is None
    finally:
        gc.enable()


# The contract ---------------------------------------------------------------------------------------------------------


def fault_of(layer: Callable[..., Any], handler: Callable[..., Any] = pages, **parts: Any) -> str:
    outcome = outcome_of(a_catalog(handler, middleware=(layer,), **parts))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "middleware_contract_fault")
    assert outcome.error is not None
    return outcome.error.message


@each_form
@pytest.mark.parametrize("answer", [None, 5, "fine"], ids=repr)
def test_it_must_return_a_result(form: Any, answer: object) -> None:
    message = fault_of(form([], "x", lambda _: answer))
    assert "return what next() gave, or a result such as Succeeded" in message
    assert "layer returned" in message


def test_running_the_rest_twice_is_a_fault_even_if_it_is_swallowed() -> None:
    runs: list[int] = []

    def handler(job: BuildReport) -> int:
        runs.append(1)
        return 1

    def calling(ctx: JobContext, proceed: Next) -> Any:
        result = proceed()
        with contextlib.suppress(Exception):
            proceed()
        return result

    async def awaiting(ctx: JobContext, proceed: NextAsync) -> Any:
        result = await proceed()
        with contextlib.suppress(Exception):
            await proceed()
        return result

    async def at_once(ctx: JobContext, proceed: NextAsync) -> Any:
        with contextlib.suppress(Exception):
            await asyncio.gather(proceed(), proceed())
        return Succeeded()

    def yielding(ctx: JobContext) -> Any:
        result = yield
        yield
        return result

    for each, expected in ((calling, [1]), (awaiting, [1]), (at_once, [])):
        runs.clear()
        assert fault_of(each, handler).endswith("called next() twice; call it once")
        assert runs == expected
    runs.clear()
    assert fault_of(yielding, handler).endswith("yielded twice; it runs the rest once")
    assert runs == [1]


def test_a_fault_wins_over_what_it_raises_itself() -> None:
    def calling(ctx: JobContext, proceed: Next) -> Any:
        proceed()
        with contextlib.suppress(Exception):
            proceed()
        raise ValueError("something else")

    assert fault_of(calling).endswith("called next() twice; call it once")


def test_a_fault_of_an_inner_one_is_not_swallowed_by_an_outer_one() -> None:
    def forgetful(ctx: JobContext) -> Any:
        yield

    def soothing(ctx: JobContext, proceed: Next) -> Result:
        with contextlib.suppress(Exception):
            return proceed()
        return Succeeded()

    outcome = outcome_of(a_catalog(pages, middleware=(soothing, forgetful)))
    assert outcome.code == "middleware_contract_fault"


def test_returning_while_the_rest_still_runs_ends_that_first() -> None:
    events: list[str] = []

    async def shop() -> AsyncIterator[str]:
        yield "north"
        events.append("closed")

    async def handler(job: BuildReport, shop: str) -> None:
        events.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("ended")

    async def leaving(ctx: JobContext, proceed: NextAsync) -> Result:
        ctx.items["task"] = asyncio.create_task(proceed())
        while not events:
            await asyncio.sleep(0)
        return Succeeded()

    async def failing(ctx: JobContext, proceed: NextAsync) -> Result:
        await leaving(ctx, proceed)
        raise ValueError

    for each in (leaving, failing):
        events.clear()
        message = fault_of(each, handler, attempt=(shop,))
        assert message.endswith("ended before next() had; await next() and return its result")
        assert events[:2] == ["began", "ended"]


@pytest.mark.parametrize("forgotten", ["task", "coroutine", "returned"])
def test_never_awaiting_the_rest_is_a_fault_and_runs_nothing(forgotten: str, caplog: pytest.LogCaptureFixture) -> None:
    def handler(job: BuildReport) -> None:
        pytest.fail("called")

    async def leaving(ctx: JobContext, proceed: NextAsync) -> Any:
        rest: Coroutine[Any, Any, Result] = proceed()
        if forgotten == "returned":
            return rest
        if forgotten == "task":
            ctx.items["task"] = asyncio.create_task(rest)
        return Succeeded()

    assert "await next()" in fault_of(leaving, handler)
    gc.collect()
    assert caplog.records == []  # asyncio has nothing to complain about


def test_running_the_rest_after_its_end_or_in_another_thread_is_a_fault() -> None:
    kept: list[Next] = []

    def keeping(ctx: JobContext, proceed: Next) -> Result:
        kept.append(proceed)
        return Succeeded()

    def late(ctx: JobContext, proceed: Next) -> Result:
        result: Result = proceed()
        with contextlib.suppress(Exception):
            kept.pop()()
        return result

    outcome = outcome_of(a_catalog(pages, middleware=(late, keeping)))
    assert outcome.code == "middleware_contract_fault"
    assert outcome.error is not None
    assert outcome.error.message.endswith("called next() after its end")

    kept_async: list[NextAsync] = []

    async def keeping_async(ctx: JobContext, proceed: NextAsync) -> Result:
        kept_async.append(proceed)
        return Succeeded()

    async def late_async(ctx: JobContext, proceed: NextAsync) -> Result:
        result = await proceed()
        with contextlib.suppress(Exception):
            await kept_async.pop()()
        return result

    outcome = outcome_of(a_catalog(pages, middleware=(late_async, keeping_async)))
    assert outcome.code == "middleware_contract_fault"

    def elsewhere(ctx: JobContext, proceed: Next) -> Result:
        with concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.suppress(Exception):
            return pool.submit(proceed).result()
        return Succeeded()

    assert fault_of(elsewhere).endswith("called next() in another thread; call it in its own")


def test_cancelling_what_waits_for_the_rest_is_no_fault() -> None:
    async def scenario() -> Outcome:
        started = asyncio.Event()

        async def handler(job: BuildReport) -> None:
            started.set()
            await asyncio.Event().wait()

        async def in_a_task(ctx: JobContext, proceed: NextAsync) -> Any:
            return await asyncio.create_task(proceed())

        invoker = an_invoker(a_catalog(handler, middleware=(in_a_task,)), alone=False)
        task = asyncio.create_task(invoker.invoke(a_run(), PAYLOAD))
        await started.wait()
        task.cancel()
        return await task

    outcome = asyncio.run(scenario())
    assert (outcome.kind, outcome.code) == (OutcomeKind.INTERRUPTED, "worker_stopping")


def test_what_is_async_in_it_decides_where_a_run_goes() -> None:
    async def clock() -> float:
        return 1.0

    def timing(ctx: JobContext, clock: float) -> Generator[None, Result, Result]:
        return (yield)

    for middleware, is_async, needs_loop in [
        ((as_generator([], "x"), as_plain([], "x")), False, False),
        ((timing,), False, True),
        ((as_async([], "x"),), True, True),
    ]:
        invoker = an_invoker(a_catalog(pages, attempt=(clock,), middleware=middleware))
        assert (invoker.is_async(a_run()), invoker.needs_loop(a_run())) == (is_async, needs_loop)
        assert invoker.invoke_blocking(a_run(), PAYLOAD).result == b"3"
        invoker.close()
