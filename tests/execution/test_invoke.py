"""What an attempt ends in, whatever its handler does."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from runwick.contracts.context import JobContext
from runwick.contracts.errors import PermanentJobFailure
from runwick.contracts.jobs import Job, job
from runwick.contracts.outcomes import RESULT_MAX_BYTES, Outcome, OutcomeKind
from runwick.contracts.policies import JobPolicy
from tests.ambient import FakeClock
from tests.execution.declared import PAYLOAD, BuildReport, DropReport, a_catalog, a_run, an_invoker


def outcome_of(handler: Any, payload: bytes | memoryview = PAYLOAD) -> Outcome:
    invoker = an_invoker(a_catalog(handler))
    try:
        return invoker.invoke_blocking(a_run(), payload)
    finally:
        invoker.close()


# Success ------------------------------------------------------------------------------------------------------------


def test_what_a_handler_returns_is_its_result() -> None:
    def handler(job: BuildReport) -> dict[str, int]:
        return {"pages": job.pages}

    outcome = outcome_of(handler)
    assert (outcome.kind, outcome.code, outcome.error, outcome.result) == (
        OutcomeKind.SUCCEEDED,
        None,
        None,
        b'{"pages":3}',
    )


def test_returning_nothing_is_no_result() -> None:
    def handler(job: BuildReport) -> None: ...

    assert outcome_of(handler).kind is OutcomeKind.SUCCEEDED
    assert outcome_of(handler).result is None


def test_a_payload_is_decoded_where_it_lies() -> None:
    def handler(job: BuildReport) -> int:
        return job.pages

    assert outcome_of(handler, memoryview(bytearray(PAYLOAD))).result == b"3"


def test_each_attempt_has_an_instance_of_a_handler_class() -> None:
    class Handler:
        def __init__(self) -> None:
            self.runs = 0

        def handle(self, job: BuildReport, ctx: JobContext) -> int:
            self.runs += ctx.execution_number
            return self.runs

    invoker = an_invoker(a_catalog(Handler))
    assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(2)] == [b"1", b"1"]


def test_each_kind_has_its_handler() -> None:
    def build(job: BuildReport) -> str:
        return "built"

    def drop(job: DropReport) -> str:
        return "dropped"

    invoker = an_invoker(a_catalog(build, drop))
    assert invoker.invoke_blocking(a_run("reports.drop"), PAYLOAD).result == b'"dropped"'
    assert invoker.invoke_blocking(a_run("reports.build"), PAYLOAD).result == b'"built"'


# Failure ------------------------------------------------------------------------------------------------------------


def test_an_exception_is_a_retryable_failure_told_from_the_handler_on() -> None:
    def handler(job: BuildReport) -> None:
        raise ValueError("out of ink")

    outcome = outcome_of(handler)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("ValueError", "out of ink")
    assert 'raise ValueError("out of ink")' in outcome.error.text
    assert outcome.error.text.count('File "') == 1


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(0),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration("early"),
        MemoryError(),
        RecursionError(),
        asyncio.CancelledError(),
        BaseExceptionGroup("many", [SystemExit(1)]),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_nothing_that_a_handler_raises_ends_the_process(error: BaseException, is_async: bool) -> None:
    def plain(job: BuildReport) -> None:
        raise error

    async def with_loop(job: BuildReport) -> None:
        await asyncio.sleep(0)
        raise error

    outcome = outcome_of(with_loop if is_async else plain)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")


class Secretive(Exception):
    """Answers no question, not even for its class or its traceback."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class Agreeable(PermanentJobFailure):
    """Answers with what answers nothing."""

    @property
    def code(self) -> Any:
        return Secretive()

    @code.setter
    def code(self, value: Any) -> None: ...


@pytest.mark.parametrize("provided", [False, True], ids=["alone", "with a provider"])
def test_an_error_that_answers_no_question_is_an_outcome(provided: bool) -> None:
    def pages() -> Iterator[int]:
        yield 1

    def handler(job: BuildReport) -> None:
        raise Secretive

    def handler_with_provider(job: BuildReport, pages: int) -> None:
        raise Secretive

    catalog = a_catalog(handler_with_provider if provided else handler, attempt=(pages,))
    outcome = an_invoker(catalog).invoke_blocking(a_run(), PAYLOAD)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert outcome.error is not None
    assert outcome.error.type.endswith("Secretive")


def test_two_errors_that_answer_no_question_are_an_outcome() -> None:
    def pages() -> Iterator[int]:
        yield 1
        raise Secretive

    def shop() -> Iterator[str]:
        yield "north"
        raise Secretive

    def handler(job: BuildReport, pages: int, shop: str) -> None: ...

    outcome = an_invoker(a_catalog(handler, attempt=(pages, shop))).invoke_blocking(a_run(), PAYLOAD)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "provider_failed")


def test_a_permanent_failure_carries_its_own_code_and_message() -> None:
    def handler(job: BuildReport) -> None:
        raise PermanentJobFailure("order_not_found", "Order 7 does not exist.")

    outcome = outcome_of(handler)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "order_not_found")
    assert outcome.error is not None
    assert outcome.error.message == "Order 7 does not exist."


@pytest.mark.parametrize("size", [1023, 1024, 1025, 5000])
def test_the_message_of_a_permanent_failure_is_cut_at_1024_bytes(size: int) -> None:
    def handler(job: BuildReport) -> None:
        raise PermanentJobFailure("too_long", "ä" * (size // 2) + "x" * (size % 2))

    error = outcome_of(handler).error
    assert error is not None
    assert len(error.message.encode()) <= 1024
    assert ("left out" in error.message) == (size > 1024)


class Bare(PermanentJobFailure):
    def __init__(self) -> None:
        pass


class Raising(PermanentJobFailure):
    @property
    def code(self) -> str:
        raise OSError

    @code.setter
    def code(self, value: str) -> None: ...


@pytest.mark.parametrize(
    "error",
    [
        PermanentJobFailure("no spaces please"),
        PermanentJobFailure(""),
        PermanentJobFailure("x" * 129),
        PermanentJobFailure("nul\0"),
        PermanentJobFailure(5),  # type: ignore[arg-type]
        Bare(),
        Raising("kept", "but not readable"),
        Agreeable("kept", "but not shown"),
    ],
    ids=repr,
)
def test_a_code_that_is_no_name_becomes_a_fixed_one(error: BaseException) -> None:
    def handler(job: BuildReport) -> None:
        raise error

    outcome = outcome_of(handler)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "permanent_failure")


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'{"pages":"3"}', b'{"sheets":3}', b"\xff"])
def test_an_undecodable_payload_fails_for_good_and_calls_nothing(payload: bytes) -> None:
    def handler(job: BuildReport) -> None:
        pytest.fail("called")

    outcome = outcome_of(handler, payload)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "payload_undecodable")
    assert outcome.error is not None
    assert outcome.error.message.startswith("the payload is no BuildReport")


def test_too_little_memory_to_decode_is_worth_another_try() -> None:
    @job("reports.vast")
    class Vast(Job):
        pages: int = 1

        def __post_init__(self) -> None:
            raise MemoryError

    def handler(job: Vast) -> None: ...

    outcome = an_invoker(a_catalog(handler)).invoke_blocking(a_run("reports.vast"), PAYLOAD)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")


@pytest.mark.parametrize(
    ("value", "code"),
    [("x" * RESULT_MAX_BYTES, "result_too_large"), (object(), "invalid_result"), ("a\0b", "invalid_result")],
    ids=["large", "object", "nul"],
)
def test_a_result_that_cannot_be_stored_fails_for_good(value: object, code: str) -> None:
    def handler(job: BuildReport) -> object:
        return value

    outcome = outcome_of(handler)
    assert (outcome.kind, outcome.code, outcome.result) == (OutcomeKind.FAILED_PERMANENTLY, code, None)


def test_a_kind_without_a_handler_is_worth_another_try() -> None:
    def handler(job: BuildReport) -> None: ...

    outcome = an_invoker(a_catalog(handler)).invoke_blocking(a_run("reports.drop"), PAYLOAD)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert outcome.error is not None
    assert outcome.error.message == "no handler for reports.drop version 1 is loaded here"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("out of ink"), "out of ink"),
        (PermanentJobFailure("no_ink", "The ink is gone."), "The ink is gone."),
        (ValueError("\U0001f4a5" * 1001), "\U0001f4a5" * 999 + "…"),
    ],
    ids=["error", "permanent", "long"],
)
def test_only_type_and_message_are_kept_where_the_policy_says_so(error: Exception, message: str) -> None:
    def shop() -> Iterator[str]:
        yield "north"

    def closing() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise OSError("while closing")

    def handler(job: BuildReport, shop: str, closing: int) -> None:
        raise error

    invoker = an_invoker(a_catalog(handler, attempt=(shop, closing)))
    detail = invoker.invoke_blocking(a_run(policy=JobPolicy(error_detail="message")), PAYLOAD).error
    assert detail is not None
    assert (detail.type.rpartition(".")[2], detail.message, detail.text) == (type(error).__name__, message, "")


def test_what_a_failed_handler_held_is_freed_at_once() -> None:
    class Picture:
        pass

    seen: list[weakref.ref[Picture]] = []

    def handler(job: BuildReport) -> None:
        picture = Picture()
        seen.append(weakref.ref(picture))
        raise ValueError

    gc.disable()
    try:
        assert outcome_of(handler).kind is OutcomeKind.FAILED
        assert seen[0]() is None
    finally:
        gc.enable()


# Begin, measure, isolate --------------------------------------------------------------------------------------------


def test_begun_comes_first_and_is_counted_for_every_attempt() -> None:
    order: list[str] = []

    @job("reports.watch")
    class Watched(Job):
        pages: int = 1

        def __post_init__(self) -> None:
            order.append("decoded")

    def handler(job: Watched) -> None:
        order.append("handled")

    catalog = a_catalog(handler)
    order.clear()
    clock = FakeClock()
    invoker = an_invoker(catalog, begun=lambda: order.append("begun"), clock=clock)
    outcome = invoker.invoke_blocking(a_run("reports.watch"), PAYLOAD)
    assert order == ["begun", "decoded", "handled"]
    assert outcome.begun_at_ms == clock.now_ms()
    assert invoker.invoke_blocking(a_run("reports.watch"), b"{").begun_at_ms == clock.now_ms()
    assert order.count("begun") == 2


def test_usage_is_recorded_when_asked_for() -> None:
    def handler(job: BuildReport) -> None: ...

    def failing(job: BuildReport) -> None:
        raise ValueError

    for each in (handler, failing):
        catalog = a_catalog(each)
        usage = an_invoker(catalog, record_usage=True).invoke_blocking(a_run(), PAYLOAD).usage
        assert usage is not None
        assert usage.cpu_us is not None
        shared = an_invoker(catalog, record_usage=True, alone=False).invoke_blocking(a_run(), PAYLOAD).usage
        assert shared is not None
        assert shared.wall_us is not None
        assert shared.cpu_us is None
        assert an_invoker(catalog, record_usage=False).invoke_blocking(a_run(), PAYLOAD).usage is None


COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("COLOUR", default="none")


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_context_variables_do_not_leak_into_the_next_attempt(is_async: bool) -> None:
    def plain(job: BuildReport) -> str:
        was = COLOUR.get()
        COLOUR.set("red")
        return was

    async def with_loop(job: BuildReport) -> str:
        return plain(job)

    invoker = an_invoker(a_catalog(with_loop if is_async else plain))
    try:
        assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(2)] == [b'"none"', b'"none"']
    finally:
        invoker.close()


# Async --------------------------------------------------------------------------------------------------------------


def test_async_attempts_share_one_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def handler(job: BuildReport) -> int:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return job.pages

    invoker = an_invoker(a_catalog(handler))
    assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(2)] == [b"3", b"3"]
    assert loops[0] is loops[1]
    invoker.close()
    assert loops[0].is_closed()


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_a_task_that_wants_to_end_the_process_does_not(stop: type[BaseException]) -> None:
    async def quitting() -> None:
        raise stop

    async def handler(job: BuildReport) -> str:
        task = asyncio.create_task(quitting())
        try:
            await task
        except BaseException as error:
            return type(error).__name__
        return "nothing"

    async def next_handler(job: DropReport) -> str:
        return "fine"

    invoker = an_invoker(a_catalog(handler, next_handler))
    try:
        assert invoker.invoke_blocking(a_run(), PAYLOAD).kind is OutcomeKind.SUCCEEDED
        assert invoker.invoke_blocking(a_run("reports.drop"), PAYLOAD).result == b'"fine"'
    finally:
        invoker.close()


def test_a_handler_that_stops_the_loop_goes_on() -> None:
    async def handler(job: BuildReport) -> int:
        for _ in range(3):
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0)
        return job.pages

    assert outcome_of(handler).result == b"3"


@pytest.mark.parametrize("waits", [False, True], ids=["and returns", "and waits"])
def test_a_handler_that_cancels_itself_was_not_interrupted(waits: bool) -> None:
    async def handler(job: BuildReport) -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.sleep(60)
        return job.pages

    outcome = outcome_of(handler)
    if waits:  # nobody stopped a worker, so it must not run again at once
        assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    else:
        assert outcome.result == b"3"


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_a_task_that_ends_the_process_after_its_handler_does_not(stop: type[BaseException]) -> None:
    left: list[asyncio.Task[None]] = []

    async def quitting() -> None:
        raise stop

    async def handler(job: BuildReport) -> int:
        left.append(asyncio.create_task(quitting()))
        return job.pages

    invoker = an_invoker(a_catalog(handler))
    try:
        assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(3)] == [b"3"] * 3
    finally:
        invoker.close()
    assert all(isinstance(task.exception(), stop) for task in left)


def test_the_same_source_runs_on_the_callers_loop() -> None:
    async def handler(job: BuildReport) -> int:
        await asyncio.sleep(0)
        return job.pages

    def plain(job: DropReport) -> int:
        return job.pages

    async def both() -> list[Outcome]:
        invoker = an_invoker(a_catalog(handler, plain), alone=False)
        names = ["reports.build", "reports.drop"]
        return list(await asyncio.gather(*(invoker.invoke(a_run(name), PAYLOAD) for name in names)))

    assert [outcome.result for outcome in asyncio.run(both())] == [b"3", b"3"]


def test_an_attempt_whose_task_is_cancelled_was_interrupted() -> None:
    async def scenario() -> Outcome:
        started = asyncio.Event()

        async def handler(job: BuildReport) -> None:
            started.set()
            await asyncio.Event().wait()

        invoker = an_invoker(a_catalog(handler), alone=False)
        task = asyncio.create_task(invoker.invoke(a_run(), PAYLOAD))
        await started.wait()
        task.cancel()
        return await task

    outcome = asyncio.run(scenario())
    assert (outcome.kind, outcome.code) == (OutcomeKind.INTERRUPTED, "worker_stopping")


RUNS_PLAIN_HANDLERS = """
import sys
from tests.execution.declared import PAYLOAD, BuildReport, a_catalog, a_run, an_invoker

def handler(job: BuildReport) -> int:
    if job.pages > 3:
        raise ValueError
    return job.pages

invoker = an_invoker(a_catalog(handler), record_usage=True)
print(invoker.invoke_blocking(a_run(), PAYLOAD).result, invoker.invoke_blocking(a_run(), b'{"pages":4}').code)
invoker.close()
print("asyncio" in sys.modules)
"""


def test_a_process_without_async_handlers_never_loads_asyncio() -> None:
    told = subprocess.run(
        [sys.executable, "-c", RUNS_PLAIN_HANDLERS],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert told.stdout.split("\n")[:2] == ["b'3' handler_failed", "False"]
