"""The thread backend between an engine, on a loop in a thread of its own, and an application: the test's own loop."""

import asyncio
import contextvars
import datetime
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from runwick.contracts.attempts import Kind
from runwick.contracts.backends import Backend
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.context import JobContext
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.policies import JobPolicy
from runwick.execution.held import Held
from runwick.execution.threads import ThreadBackend
from runwick.runtime.ambient import SystemClock
from runwick.runtime.threads import LoopThread
from tests.attempts import an_attempt
from tests.execution.declared import BuildReport, DropReport, a_catalog, an_invoker
from tests.execution.heard import DEADLINE_S, FAR_S, Heard, attempts

T = TypeVar("T")

BUILD, DROP = Kind("reports.build", 1), Kind("reports.drop", 1)


class Engine:
    """What a plain provider of process scope gives."""

    found = ""


class Client:
    """What an async one gives."""


class Place:
    """Backends that share an invoker, and the engine's loop."""

    def __init__(self, *handlers: Callable[..., Any], pools: int = 1, **options: Any) -> None:
        bounds = {name: options.pop(name, 10.0) for name in ("cancellation_grace_s", "cleanup_budget_s")}
        concurrency = options.pop("concurrency", 2)
        loop = asyncio.get_running_loop()
        clock = SystemClock()
        self.invoker = an_invoker(a_catalog(*handlers, **options), record_usage=True, alone=False, loop=loop)
        self.backends = [
            ThreadBackend(self.invoker, f"pool{n}", concurrency=concurrency, clock=clock, loop=loop, **bounds)
            for n in range(pools)
        ]
        self.backend = self.backends[0]
        self.heard = Heard()
        self._over = asyncio.Event()
        self._engine = LoopThread("the engine", self._live)
        self._ready = threading.Event()

    async def __aenter__(self) -> "Place":
        self._engine.start()
        self._ready.wait(DEADLINE_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine(self._stop_backends())
        await self.invoker.close_async()
        self._engine.call_soon(self._over.set)
        await asyncio.wrap_future(self._engine.ended)

    async def engine(self, work: Awaitable[T]) -> T:
        """Have this done on the engine's loop."""

        async def done() -> T:
            return await work

        # The engine has context variables of its own, and none of the application's.
        asked = contextvars.Context().run(asyncio.run_coroutine_threadsafe, done(), self._engine_loop)
        return await asyncio.wrap_future(asked)

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        async def called() -> T:
            return function(*arguments)

        return await self.engine(called())

    async def _live(self) -> None:
        self._engine_loop = asyncio.get_running_loop()
        for backend in self.backends:
            await backend.start(self.heard)
        self._ready.set()
        await self._over.wait()

    async def _stop_backends(self) -> None:
        for backend in self.backends:
            await backend.stop()


def on_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))


def wait_here(event: threading.Event) -> None:
    assert event.wait(DEADLINE_S)


async def wait_beside(event: threading.Event) -> None:
    await asyncio.to_thread(wait_here, event)


def test_it_is_a_backend() -> None:
    async def scenario() -> None:
        def handler(job: BuildReport) -> None: ...

        async with Place(handler) as place:
            backend: Backend = place.backend
            assert backend.name == "threads"

    on_a_loop(scenario)


def test_plain_handlers_run_at_once_each_in_a_thread() -> None:
    async def scenario() -> None:
        both = threading.Barrier(2)
        threads = set()

        def handler(job: BuildReport) -> int:
            threads.add(threading.current_thread())
            both.wait(DEADLINE_S)
            return job.pages

        async with Place(handler) as place:
            assert (await place.call(place.backend.room)).free == 2
            await place.call(place.backend.hand_over, attempts(1, 2), FAR_S)
            done = await place.engine(place.heard.until_completed(2))
            assert {(each.attempt.job, each.outcome.result) for each in done} == {(1, b"1"), (2, b"2")}
            room = await place.call(place.backend.room)
            assert (room.free, room.ahead, room.worthwhile, place.backend.running()) == (2, 0, True, 0)
            assert place.heard.changes == 2
        assert {thread.name for thread in threads} == {"runwick-pool0-1", "runwick-pool0-2"}
        assert all(thread.daemon for thread in threads)
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "it waits for nothing any more"

    on_a_loop(scenario)


def test_async_handlers_run_at_once_on_the_applications_loop() -> None:
    async def scenario() -> None:
        running: list[asyncio.AbstractEventLoop] = []
        both = asyncio.Event()

        async def handler(job: BuildReport) -> int:
            running.append(asyncio.get_running_loop())
            if len(running) == 2:
                both.set()
            await both.wait()
            return job.pages

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1, 2), FAR_S)
            await place.engine(place.heard.until_completed(2))
        assert running == [asyncio.get_running_loop()] * 2

    on_a_loop(scenario)


def test_only_wall_time_is_attributed() -> None:
    async def scenario() -> None:
        def handler(job: BuildReport) -> None: ...

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            (done,) = await place.engine(place.heard.until_completed(1))
        assert done.outcome.usage is not None
        assert done.outcome.usage.wall_us is not None
        assert done.outcome.usage.cpu_us is None

    on_a_loop(scenario)


def test_no_handler_holds_the_engine_up() -> None:
    async def scenario() -> None:
        blocking, answered = threading.Event(), threading.Event()

        async def handler(job: BuildReport) -> None:
            blocking.set()
            wait_here(answered)  # the application's loop stands still

        async with Place(handler) as place:

            def asks() -> None:
                wait_here(blocking)
                asked = asyncio.run_coroutine_threadsafe(_answer(place.backend.room), place._engine_loop)
                assert asked.result(DEADLINE_S).free == 1
                answered.set()

            asking = threading.Thread(target=asks)
            asking.start()
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await place.engine(place.heard.until_completed(1))
            asking.join()
        assert answered.is_set()

    on_a_loop(scenario)


async def _answer(function: Callable[[], T]) -> T:
    return function()


def test_what_has_not_begun_is_taken_back_and_never_runs() -> None:
    async def scenario() -> None:
        ran = []

        async def handler(job: BuildReport) -> None:
            ran.append(job.pages)

        async with Place(handler) as place:

            def hand_over_and_take_back() -> list[int]:
                place.backend.hand_over(attempts(1, 2), FAR_S)
                return [attempt.job for attempt in place.backend.take_back()]

            # The application's loop waits for this, so no task of its own can begin meanwhile.
            asked = asyncio.run_coroutine_threadsafe(_answer(hand_over_and_take_back), place._engine_loop)
            assert asked.result(DEADLINE_S) == [1, 2]
            assert place.backend.running() == 0
            await place.call(place.backend.hand_over, attempts(3), FAR_S)
            await place.engine(place.heard.until_completed(1))
        assert ran == [3]

    on_a_loop(scenario)


def test_a_run_and_who_takes_it_back_exclude_each_other() -> None:
    held = Held(an_attempt(), 1, SystemClock())
    assert held.seize()
    assert not held.seize()


def test_stopping_by_force_interrupts_async_runs_and_waits_for_no_plain_one() -> None:
    async def scenario() -> None:
        begun, ends = threading.Event(), threading.Event()

        def plain(job: BuildReport) -> str:
            begun.set()
            wait_here(ends)
            return "done after all"

        async def awaits(job: DropReport) -> None:
            await asyncio.Event().wait()

        async with Place(plain, awaits) as place:
            drop = an_attempt(2, kind=DROP, payload=b"{}")
            await place.call(place.backend.hand_over, [*attempts(1), drop], FAR_S)
            await wait_beside(begun)
            await asyncio.sleep(0)
            await place.call(place.backend.ask, None, CancellationCause.SHUTDOWN, 0.0)
            (first,) = await place.engine(place.heard.until_completed(1))
            assert (first.attempt, first.outcome.kind) == (drop, OutcomeKind.INTERRUPTED)
            await place.engine(place.backend.stop())
            assert place.backend.running() == 1
            ends.set()
            last = (await place.engine(place.heard.until_completed(2)))[1]
            assert last.outcome.result == b'"done after all"'

    on_a_loop(scenario)


def test_only_the_runs_that_were_named_are_stopped() -> None:
    async def scenario() -> None:
        inside, ends = asyncio.Event(), asyncio.Event()
        running = []

        async def handler(job: BuildReport) -> int:
            running.append(job.pages)
            if len(running) == 2:
                inside.set()
            await ends.wait()
            return job.pages

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1, 2), FAR_S)
            await inside.wait()
            await place.call(place.backend.ask, [*attempts(2), *attempts(7)], CancellationCause.SHUTDOWN, 10.0)
            (stopped,) = await place.engine(place.heard.until_completed(1))
            assert (stopped.attempt.job, stopped.outcome.kind) == (2, OutcomeKind.INTERRUPTED)
            ends.set()
            assert (await place.engine(place.heard.until_completed(2)))[1].outcome.result == b"1"

    on_a_loop(scenario)


def test_an_async_run_is_stopped_at_its_time_limit() -> None:
    async def scenario() -> None:
        async def handler(job: BuildReport) -> None:
            await asyncio.Event().wait()

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, [an_attempt(policy=JobPolicy(execution_timeout_ms=5))], FAR_S)
            (ended,) = await place.engine(place.heard.until_completed(1))
            assert (ended.outcome.kind, ended.outcome.code) == (OutcomeKind.TIMED_OUT, "execution_timed_out")
            assert place.heard.given_up == []

    on_a_loop(scenario)


def test_a_plain_run_past_its_limit_is_given_up_and_ends_late() -> None:
    async def scenario() -> None:
        ends = threading.Event()

        def handler(job: BuildReport) -> str:
            wait_here(ends)
            return "late"

        async with Place(handler, cancellation_grace_s=0.02, concurrency=1) as place:
            overdue = an_attempt(policy=JobPolicy(execution_timeout_ms=5))
            await place.call(place.backend.hand_over, [overdue], FAR_S)
            assert await place.engine(place.heard.until_given_up(1)) == [overdue]
            assert place.heard.overdue == [(overdue, CancellationCause.TIMEOUT)]
            assert (await place.call(place.backend.room)).free == 0
            ends.set()
            (ended,) = await place.engine(place.heard.until_completed(1))
            assert (ended.outcome.kind, ended.outcome.result) == (OutcomeKind.TIMED_OUT, None)

    on_a_loop(scenario)


def test_a_run_that_ends_in_time_is_not_asked_to_stop_later() -> None:
    async def scenario() -> None:
        ends = threading.Event()

        def handler(job: BuildReport) -> None:
            wait_here(ends)

        async with Place(handler) as place:
            limited = an_attempt(policy=JobPolicy(execution_timeout_ms=60_000))
            await place.call(place.backend.hand_over, [limited], FAR_S)
            (held,) = place.backend._held.values()
            ends.set()
            await place.engine(place.heard.until_completed(1))
            assert held.limiting is not None
            assert held.limiting.cancelled()

    on_a_loop(scenario)


def test_a_plain_run_sees_its_token_and_ends_by_it() -> None:
    async def scenario() -> None:
        begun = threading.Event()

        def handler(job: BuildReport, ctx: JobContext) -> None:
            begun.set()
            assert ctx.cancellation.wait(datetime.timedelta(seconds=DEADLINE_S))
            ctx.cancellation.raise_if_set()

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await wait_beside(begun)
            await place.call(place.backend.ask, attempts(1), CancellationCause.USER_REQUESTED, 3600.0)
            (ended,) = await place.engine(place.heard.until_completed(1))
            assert (ended.outcome.kind, ended.outcome.code) == (OutcomeKind.CANCELLED, "cancel_requested")
            assert place.heard.given_up == []

    on_a_loop(scenario)


def test_a_plain_run_that_does_not_look_is_given_up_at_the_bound() -> None:
    async def scenario() -> None:
        begun, ends = threading.Event(), threading.Event()

        def handler(job: BuildReport) -> None:
            begun.set()
            wait_here(ends)

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await wait_beside(begun)
            await place.call(place.backend.ask, None, CancellationCause.USER_REQUESTED, 0.01)
            assert await place.engine(place.heard.until_given_up(1)) == attempts(1)
            health = await place.call(place.backend.health)
            assert (health.role, health.code) == ("pool pool0", "executors_missing")
            ends.set()
            await place.engine(place.heard.until_completed(1))

    on_a_loop(scenario)


def test_a_plain_run_shows_the_stack_of_its_thread_while_it_runs() -> None:
    async def scenario() -> None:
        begun, ends = threading.Event(), threading.Event()

        def handler(job: BuildReport) -> None:
            begun.set()
            wait_here(ends)

        async with Place(handler) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await wait_beside(begun)
            wanted = [attempts(1)[0].attempt_id]
            await place.call(place.backend.look, wanted)
            (answer,) = place.heard.stacks
            assert answer.attempt_id == wanted[0]
            assert answer.text.index("in handler") < answer.text.index("in wait_here")
            assert "wait_here(ends)" in answer.text
            ends.set()
            await place.engine(place.heard.until_completed(1))
            await place.call(place.backend.look, wanted)
            assert len(place.heard.stacks) == 1

    on_a_loop(scenario)


@pytest.mark.parametrize("blocks", [False, True], ids=["waits", "blocks its loop"])
def test_an_async_run_shows_its_own_stack_also_when_it_holds_its_loop_up(blocks: bool) -> None:
    async def scenario() -> None:
        inside, looked, ends = threading.Event(), threading.Event(), asyncio.Event()

        async def holds_up(job: BuildReport) -> None:
            inside.set()
            wait_here(looked)

        async def waits(job: BuildReport) -> None:
            inside.set()
            await ends.wait()

        async with Place(holds_up if blocks else waits) as place:

            def look() -> None:
                wait_here(inside)
                place._engine.call_soon(lambda: place.backend.look([attempts(1)[0].attempt_id]))
                place._engine.call_soon(looked.set)
                wait_here(looked)

            looking = threading.Thread(target=look)
            looking.start()
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await asyncio.to_thread(looking.join)
            ends.set()
            await place.engine(place.heard.until_completed(1))
            (answer,) = place.heard.stacks
            called, within = ("in holds_up", "in wait_here") if blocks else ("in waits", "in wait")
            assert answer.text.index("in invoke") < answer.text.index(called) < answer.text.rindex(within)

    on_a_loop(scenario)


def test_context_variables_are_the_applications_and_each_attempts_own() -> None:
    async def scenario() -> None:
        variable = contextvars.ContextVar("variable", default="nobody's")
        variable.set("the application's")

        def engine() -> Engine:
            engine = Engine()
            engine.found = variable.get()
            return engine

        def plain(job: BuildReport, engine: Engine) -> str:
            assert engine.found == "the application's"
            found = variable.get()
            variable.set("an attempt's")
            return found

        async def awaits(job: DropReport, engine: Engine) -> str:
            return plain(BuildReport(), engine)

        async with Place(plain, awaits, concurrency=1, process=(engine,)) as place:
            for number in range(4):
                kind = DROP if number % 2 else BUILD
                await place.call(place.backend.hand_over, [an_attempt(number, kind=kind, payload=b"{}")], FAR_S)
                done = await place.engine(place.heard.until_completed(number + 1))
                assert done[-1].outcome.result == b'"the application\'s"'
        assert variable.get() == "the application's"

    on_a_loop(scenario)


def where() -> tuple[Any, Any]:
    """The thread and the task that one is in."""
    try:
        return threading.current_thread(), asyncio.current_task()
    except RuntimeError:
        return threading.current_thread(), None


def test_process_scope_is_opened_once_for_all_pools_threads_and_tasks() -> None:
    async def scenario() -> None:
        told: list[tuple[str, Any]] = []
        all_in = threading.Barrier(2)
        application = threading.current_thread()

        async def client() -> AsyncIterator[Client]:
            told.append(("client opened", where()))
            await asyncio.sleep(0)
            yield Client()
            told.append(("client closed", where()))

        def engine(client: Client) -> Iterator[Engine]:
            told.append(("engine opened", where()))
            yield Engine()
            told.append(("engine closed", where()))

        given: list[Engine] = []

        def plain(job: BuildReport, engine: Engine) -> None:
            given.append(engine)
            all_in.wait(DEADLINE_S)

        async def awaits(job: DropReport, engine: Engine, client: Client) -> None:
            given.append(engine)

        async with Place(plain, awaits, pools=2, process=(client, engine)) as place:
            for number, backend in enumerate(place.backends):
                drop = an_attempt(10 + number, kind=DROP, payload=b"{}")
                await place.call(backend.hand_over, [*attempts(number), drop], FAR_S)
            await place.engine(place.heard.until_completed(4))
            assert all(each.outcome.kind is OutcomeKind.SUCCEEDED for each in place.heard.completions)
        assert [what for what, _ in told] == ["client opened", "engine opened", "engine closed", "client closed"]
        assert len(given) == 4
        assert len(set(given)) == 1
        (_, client_opened), (_, engine_opened), (_, engine_closed), (_, client_closed) = told
        assert client_opened == client_closed
        assert client_opened[0] is application
        assert engine_opened == engine_closed
        assert engine_opened[0] is not application

    on_a_loop(scenario)


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_one_of_process_scope_that_does_not_open_fails_the_attempt_and_is_tried_again(is_async: bool) -> None:
    async def scenario() -> None:
        tries = []

        def engine() -> Engine:
            tries.append(1)
            if len(tries) == 1:
                raise ValueError("not yet")
            return Engine()

        async def awaits(job: BuildReport, engine: Engine) -> None: ...

        def plain(job: BuildReport, engine: Engine) -> None: ...

        async with Place(awaits if is_async else plain, process=(engine,)) as place:
            for number in (1, 2):
                await place.call(place.backend.hand_over, attempts(number), FAR_S)
                await place.engine(place.heard.until_completed(number))
            failed, succeeded = [each.outcome for each in place.heard.completions]
        assert (failed.kind, failed.code) == (OutcomeKind.FAILED, "provider_failed")
        assert failed.error is not None
        first_frame = failed.error.text.splitlines()[1]
        assert "test_threads.py" in first_frame
        assert succeeded.kind is OutcomeKind.SUCCEEDED

    on_a_loop(scenario)


def test_who_asks_after_the_end_gets_no_value_of_process_scope() -> None:
    async def scenario() -> None:
        def engine() -> Engine:
            return Engine()

        def handler(job: BuildReport, engine: Engine) -> None: ...

        async with Place(handler, process=(engine,)) as place:
            await place.invoker.close_async()
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            (ended,) = await place.engine(place.heard.until_completed(1))
        assert (ended.outcome.code, ended.outcome.error.message) == (  # type: ignore[union-attr]
            "provider_failed",
            "the worker has stopped, and what lives as long as it is closed",
        )

    on_a_loop(scenario)


def test_a_plain_handler_may_need_what_is_async() -> None:
    async def scenario() -> None:
        told: list[tuple[str, Any]] = []
        token: contextvars.ContextVar[str] = contextvars.ContextVar("token")

        async def client() -> AsyncIterator[Client]:
            was = token.set("the client's")
            told.append(("opened", where()))
            try:
                async with asyncio.timeout(DEADLINE_S):
                    yield Client()
            except ValueError as error:
                told.append((f"saw {error}", where()))
                raise
            finally:
                await asyncio.sleep(0)
                token.reset(was)

        def session(client: Client) -> Iterator[Engine]:
            told.append(("session", where()))
            yield Engine()

        def handler(job: BuildReport, session: Engine) -> None:
            told.append(("handled", where()))
            asyncio.run(asyncio.sleep(0))  # as on an executor, a plain handler may have loops of its own
            raise ValueError("its failure")

        async with Place(handler, attempt=(client, session)) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            (ended,) = await place.engine(place.heard.until_completed(1))
        assert (ended.outcome.code, ended.outcome.error.message) == ("handler_failed", "its failure")  # type: ignore[union-attr]
        assert [what for what, _ in told] == ["opened", "session", "handled", "saw its failure"]
        opened, session_opened, handled, saw = [at for _, at in told]
        assert opened == saw
        assert opened[0] is threading.current_thread()
        assert opened[1] is not None
        assert session_opened == handled
        assert handled[0] is not threading.current_thread()

    on_a_loop(scenario)


def test_a_loop_that_is_closed_ends_the_worker_and_nothing_is_charged() -> None:
    async def scenario() -> None:
        async def handler(job: BuildReport) -> None: ...

        reasons: list[str] = []
        elsewhere = asyncio.new_event_loop()
        elsewhere.close()
        backend = ThreadBackend(
            an_invoker(a_catalog(handler), alone=False, loop=elsewhere),
            "main",
            concurrency=1,
            clock=SystemClock(),
            loop=elsewhere,
        )
        heard = Heard()
        heard.failed = reasons.append  # type: ignore[method-assign,assignment]
        await backend.start(heard)
        backend.hand_over(attempts(1), FAR_S)
        assert ([attempt.job for attempt in heard.released], backend.running()) == ([1], 0)
        assert reasons == ["the event loop of its async handlers is closed"]
        await backend.stop()

    on_a_loop(scenario)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
def test_a_child_that_a_handler_forked_ends_where_the_handler_does(is_async: bool) -> None:
    async def scenario() -> None:
        children: list[int] = []

        def plain(job: BuildReport) -> None:
            child = os.fork()
            if child == 0:
                return  # nothing keeps it from coming back
            children.append(child)

        async def awaits(job: BuildReport) -> None:
            plain(job)

        async with Place(awaits if is_async else plain) as place:
            await place.call(place.backend.hand_over, attempts(1), FAR_S)
            await place.engine(place.heard.until_completed(1))
            assert await asyncio.to_thread(_status_of, children[0]) == 0

    on_a_loop(scenario)


def _status_of(child: int) -> int:
    until_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < until_s:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the child goes on")
