"""Providers: in which order they open and close, how often, and what they see of the attempt."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from runwick.contracts.context import JobContext
from runwick.contracts.errors import PermanentJobFailure
from runwick.contracts.outcomes import Outcome, OutcomeKind
from tests.execution.declared import PAYLOAD, BuildReport, a_catalog, a_run, an_invoker


class Connection:
    pass


class Session:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection


class Mailer:
    pass


class Story:
    """What happened, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def connection(self) -> Iterator[Connection]:
        yield from self._telling("connection", Connection())

    def session(self, connection: Connection) -> Iterator[Session]:
        yield from self._telling("session", Session(connection))

    async def connection_async(self) -> AsyncIterator[Connection]:
        await asyncio.sleep(0)
        with self._around("connection"):
            yield Connection()
        await asyncio.sleep(0)

    async def session_async(self, connection: Connection) -> AsyncIterator[Session]:
        await asyncio.sleep(0)
        with self._around("session"):
            yield Session(connection)

    def _telling(self, name: str, value: Any) -> Iterator[Any]:
        with self._around(name):
            yield value

    @contextlib.contextmanager
    def _around(self, name: str) -> Iterator[None]:
        self.told.append(f"{name} opened")
        try:
            yield
        except BaseException as error:
            self.told.append(f"{name} saw {type(error).__name__}")
            raise
        else:
            self.told.append(f"{name} closed")


def run_once(
    handler: Callable[..., Any],
    *,
    attempt: tuple[Any, ...] = (),
    process: tuple[Any, ...] = (),
    payload: bytes = PAYLOAD,
) -> Outcome:
    invoker = an_invoker(a_catalog(handler, attempt=attempt, process=process))
    try:
        return invoker.invoke_blocking(a_run(), payload)
    finally:
        invoker.close()


def sources(story: Story, is_async: bool) -> tuple[Any, Any]:
    if is_async:
        return story.session_async, story.connection_async
    return story.session, story.connection


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_what_is_needed_opens_first_and_closes_last(is_async: bool) -> None:
    story = Story()

    def handler(job: BuildReport, session: Session) -> None:
        story.told.append("handled")

    assert run_once(handler, attempt=sources(story, is_async)).kind is OutcomeKind.SUCCEEDED
    assert story.told == ["connection opened", "session opened", "handled", "session closed", "connection closed"]


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_the_failure_is_thrown_into_every_provider(is_async: bool) -> None:
    story = Story()

    def handler(job: BuildReport, session: Session) -> None:
        raise ValueError("first")

    outcome = run_once(handler, attempt=sources(story, is_async))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert story.told[2:] == ["session saw ValueError", "connection saw ValueError"]


def test_a_refused_result_is_a_failure_for_providers_too() -> None:
    story = Story()

    def handler(job: BuildReport, connection: Connection) -> object:
        return object()

    outcome = run_once(handler, attempt=(story.connection,))
    assert outcome.code == "invalid_result"
    assert story.told == ["connection opened", "connection saw ResultRefused"]


def test_each_provider_opens_once_per_attempt_and_only_if_needed() -> None:
    story = Story()

    def mailer() -> Mailer:
        pytest.fail("opened")

    def handler(job: BuildReport, session: Session, connection: Connection) -> bool:
        return session.connection is connection

    invoker = an_invoker(a_catalog(handler, attempt=(story.session, story.connection, mailer)))
    assert [invoker.invoke_blocking(a_run(), PAYLOAD).result for _ in range(2)] == [b"true", b"true"]
    assert story.told.count("connection opened") == 2


def test_every_form_gives_its_value() -> None:
    def connection() -> Connection:
        return Connection()

    @contextlib.contextmanager
    def session(connection: Connection) -> Iterator[Session]:
        yield Session(connection)

    class Mailing:
        def __enter__(self) -> Mailer:
            return Mailer()

        def __exit__(self, *_: object) -> None: ...

    def mailer() -> AbstractContextManager[Mailer]:
        return Mailing()

    def handler(job: BuildReport, connection: Connection, session: Session, mailer: Mailer) -> list[str]:
        return [type(each).__name__ for each in (connection, session, mailer)]

    outcome = run_once(handler, attempt=(connection, session, mailer))
    assert outcome.result == b'["Connection","Session","Mailer"]'


def test_every_async_form_gives_its_value() -> None:
    async def connection() -> Connection:
        await asyncio.sleep(0)
        return Connection()

    @contextlib.asynccontextmanager
    async def session(connection: Connection) -> AsyncIterator[Session]:
        await asyncio.sleep(0)
        yield Session(connection)

    async def handler(job: BuildReport, connection: Connection, session: Session) -> bool:
        return session.connection is connection

    assert run_once(handler, attempt=(connection, session)).result == b"true"


def test_a_provider_may_ask_for_the_context_and_gets_the_handlers() -> None:
    def mailer(ctx: JobContext) -> Mailer:
        ctx.items["seen"] = ctx.job_name
        return Mailer()

    def handler(job: BuildReport, mailer: Mailer, ctx: JobContext) -> str:
        return str(ctx.items["seen"])

    assert run_once(handler, attempt=(mailer,)).result == b'"reports.build"'


# Failing providers --------------------------------------------------------------------------------------------------


def test_a_provider_that_does_not_open_fails_the_attempt_and_closes_what_is_open() -> None:
    story = Story()

    def session(connection: Connection) -> Iterator[Session]:
        raise ConnectionError("refused")
        yield

    def handler(job: BuildReport, session: Session) -> None:
        pytest.fail("called")

    outcome = run_once(handler, attempt=(session, story.connection))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "provider_failed")
    assert outcome.error is not None
    assert outcome.error.message == "refused"
    assert outcome.error.text.count('File "') == 1
    assert story.told == ["connection opened", "connection saw ConnectionError"]


def test_nothing_opens_for_a_payload_that_cannot_be_decoded() -> None:
    story = Story()

    def handler(job: BuildReport, connection: Connection) -> None: ...

    assert run_once(handler, attempt=(story.connection,), payload=b"{").code == "payload_undecodable"
    assert story.told == []


def test_a_provider_that_fails_to_close_fails_the_attempt_and_the_rest_roll_back() -> None:
    """What closes is what commits: when it fails, the work is not there."""
    story = Story()

    def session(connection: Connection) -> Iterator[Session]:
        yield Session(connection)
        raise ConnectionError("the commit was refused")

    def handler(job: BuildReport, session: Session) -> str:
        return "done"

    outcome = run_once(handler, attempt=(session, story.connection))
    assert (outcome.kind, outcome.code, outcome.result) == (OutcomeKind.FAILED, "provider_failed", None)
    assert outcome.error is not None
    assert outcome.error.message == "the commit was refused"
    assert story.told == ["connection opened", "connection saw ConnectionError"]


def test_a_provider_that_closes_may_say_that_retrying_cannot_help() -> None:
    def connection() -> Iterator[Connection]:
        yield Connection()
        raise PermanentJobFailure("order_closed", "The order was closed meanwhile.")

    def handler(job: BuildReport, connection: Connection) -> None: ...

    outcome = run_once(handler, attempt=(connection,))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "order_closed")


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_provider_cannot_swallow_the_failure(is_async: bool) -> None:
    def swallowing() -> Iterator[Connection]:
        with contextlib.suppress(ValueError):
            yield Connection()

    async def swallowing_async() -> AsyncIterator[Connection]:
        with contextlib.suppress(ValueError):
            yield Connection()

    def handler(job: BuildReport, connection: Connection) -> None:
        raise ValueError("still here")

    outcome = run_once(handler, attempt=(swallowing_async if is_async else swallowing,))
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")


def test_a_second_failure_is_told_after_the_first() -> None:
    story = Story()

    def session(connection: Connection) -> Iterator[Session]:
        try:
            yield Session(connection)
        finally:
            raise OSError("and then this")

    def handler(job: BuildReport, session: Session) -> None:
        raise ValueError("first")

    outcome = run_once(handler, attempt=(session, story.connection))
    assert outcome.code == "handler_failed"
    assert outcome.error is not None
    assert outcome.error.message == "first"
    assert "OSError: and then this" in outcome.error.text.split("While a provider was closed after that:")[1]
    assert story.told[-1] == "connection saw ValueError"


def test_a_provider_that_raises_the_same_failure_again_adds_nothing() -> None:
    class Connecting:
        def __enter__(self) -> Connection:
            return Connection()

        def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
            if error is not None:
                raise error

    def connection() -> AbstractContextManager[Connection]:
        return Connecting()

    def handler(job: BuildReport, connection: Connection) -> None:
        raise ValueError("once")

    outcome = run_once(handler, attempt=(connection,))
    assert outcome.code == "handler_failed"
    assert outcome.error is not None
    assert outcome.error.text.count("ValueError: once") == 1


# Process scope ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_process_scope_opens_once_and_closes_at_the_end(is_async: bool) -> None:
    story = Story()

    def handler(job: BuildReport, session: Session) -> None:
        story.told.append("handled")
        if job.pages > 3:
            raise ValueError

    invoker = an_invoker(a_catalog(handler, process=sources(story, is_async)))
    assert invoker.invoke_blocking(a_run(), PAYLOAD).kind is OutcomeKind.SUCCEEDED
    assert invoker.invoke_blocking(a_run(), b'{"pages":4}').kind is OutcomeKind.FAILED
    assert story.told == ["connection opened", "session opened", "handled", "handled"]
    invoker.close()
    invoker.close()
    assert story.told[4:] == ["session closed", "connection closed"]


def test_an_attempts_provider_may_need_one_of_the_process() -> None:
    story = Story()

    def handler(job: BuildReport, session: Session) -> None: ...

    invoker = an_invoker(a_catalog(handler, attempt=(story.session,), process=(story.connection,)))
    for _ in range(2):
        invoker.invoke_blocking(a_run(), PAYLOAD)
    invoker.close()
    assert story.told.count("session opened") == 2
    assert story.told.count("connection opened") == 1
    assert story.told[-1] == "connection closed"


def test_one_that_did_not_open_is_tried_again_by_the_next_attempt() -> None:
    answers = iter([ConnectionError("not yet"), None])

    def connection() -> Connection:
        if error := next(answers):
            raise error
        return Connection()

    def handler(job: BuildReport, connection: Connection) -> None: ...

    invoker = an_invoker(a_catalog(handler, process=(connection,)))
    codes = [invoker.invoke_blocking(a_run(), PAYLOAD).code for _ in range(2)]
    assert codes == ["provider_failed", None]


def test_one_that_fails_to_close_is_logged_and_the_rest_close(caplog: pytest.LogCaptureFixture) -> None:
    story = Story()

    def session(connection: Connection) -> Iterator[Session]:
        yield Session(connection)
        raise OSError("stuck")

    def handler(job: BuildReport, session: Session) -> None: ...

    assert run_once(handler, process=(session, story.connection)).kind is OutcomeKind.SUCCEEDED
    assert "a provider of process scope failed when it was closed" in caplog.text
    assert "OSError: stuck" in caplog.text
    assert story.told == ["connection opened", "connection saw OSError"]


def test_attempts_that_ask_at_once_open_it_once() -> None:
    story = Story()

    async def handler(job: BuildReport, session: Session) -> None:
        await asyncio.sleep(0)

    async def scenario() -> None:
        invoker = an_invoker(a_catalog(handler, process=sources(story, is_async=True)), alone=False)
        outcomes = await asyncio.gather(*(invoker.invoke(a_run(), PAYLOAD) for _ in range(3)))
        assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SUCCEEDED}
        await invoker.close_async()

    asyncio.run(scenario())
    assert story.told == ["connection opened", "session opened", "session closed", "connection closed"]
