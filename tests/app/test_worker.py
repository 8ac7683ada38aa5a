"""A worker inside an application: entered, at work, left; on a real file, in real threads."""

import asyncio
import contextlib
import contextvars
import datetime
import gc
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runwick import (
    AdmissionClosed,
    ConfigurationError,
    InvalidArgument,
    Job,
    JobContext,
    Pool,
    ProducerOptions,
    Receipt,
    Runwick,
    StoreHistoryBroken,
    WorkerOptions,
)
from runwick.app.stores import open_administration
from runwick.app.worker import EmbeddedWorker
from runwick.contracts.administration import Admission
from runwick.contracts.controls import ControlAction, ControlCommand, ManagementActor
from runwick.contracts.stores import Outlook
from runwick.runtime.threads import LoopThread
from runwick.stores.memory.store import MemoryStore
from runwick.worker.drain import Stop
from runwick.worker.engine import nothing_left
from tests.redis.asking import execute

DEADLINE_S = 20
LONG = datetime.timedelta(seconds=DEADLINE_S)

ms = datetime.timedelta(milliseconds=1)

SERVED = {"postgres": "database", "redis": "empty_redis"}
"""Which fixture gives the store of a server."""


class Note(Job):
    text: str = ""


class Errand(Job):
    text: str = ""


class Hour:
    """What a provider of process scope gives."""


class Shop:
    """An application whose handlers wait for the test where it says so."""

    def __init__(self, rw: Runwick) -> None:
        self.rw = rw
        rw.job("shop.note", queue="notes")(Note)
        rw.job("shop.errand", queue="errands", retry_delay=(ms, ms))(Errand)
        self.plain_in, self.plain_goes_on = threading.Event(), threading.Event()
        self.async_in, self.async_goes_on = asyncio.Event(), asyncio.Event()

        @rw.handler
        def note(job: Note) -> str:
            if job.text == "wait":
                self.plain_in.set()
                assert self.plain_goes_on.wait(DEADLINE_S)
            return threading.current_thread().name

        @rw.handler
        async def errand(job: Errand, ctx: JobContext) -> str:
            if job.text == "wait" and ctx.execution_number == 1:
                self.async_in.set()
                await self.async_goes_on.wait()
            return threading.current_thread().name

    async def ended(self, receipt: Receipt) -> Any:
        return await self.rw.wait_async(receipt, timeout=LONG)


@pytest.fixture
def open_shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    opened: list[Runwick] = []

    def make(application: str = "shop", **changes: Any) -> Shop:
        shop = Shop(Runwick(application, **{"store": f"sqlite:///{tmp_path}/jobs.db", **changes}))
        opened.append(shop.rw)
        return shop

    yield make
    for rw in opened:
        rw.close()


@pytest.fixture
def shop(open_shop: Callable[..., Shop]) -> Shop:
    shop = open_shop()
    shop.rw.migrate()
    return shop


def in_an_application(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 2 * DEADLINE_S))


def engines() -> list[threading.Thread]:
    """The engines' threads that are alive."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("runwick-engine")]


async def engines_gone() -> None:
    async with asyncio.timeout(DEADLINE_S):
        while engines():
            await asyncio.sleep(0.001)


def test_it_runs_plain_handlers_in_threads_and_async_ones_on_the_applications_loop(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.rw.worker() as worker:
            receipts = [await shop.rw.dispatch_async(job) for job in (Note(), Errand())]
            results = [(await shop.ended(receipt)).result() for receipt in receipts]
            assert results == ["runwick-main-1", threading.current_thread().name]
            async with asyncio.timeout(DEADLINE_S):
                while worker.tally.succeeded < 2:
                    await asyncio.sleep(0.001)
            assert (worker.running, worker.failure) == (0, None)
        assert worker.failure is None
        await engines_gone()

    in_an_application(scenario)


def test_attempts_see_the_context_in_which_it_was_entered(shop: Shop) -> None:
    variable = contextvars.ContextVar("variable", default="nobody's")

    @shop.rw.task("shop.look")
    def look() -> str:
        return variable.get()

    async def scenario() -> None:
        variable.set("the application's")
        async with shop.rw.worker():
            receipt = await shop.rw.dispatch_async(look.job())
            assert (await shop.ended(receipt)).result() == "the application's"

    in_an_application(scenario)


def test_being_cancelled_while_entering_leaves_nothing_behind(
    open_shop: Callable[..., Shop], caplog: pytest.LogCaptureFixture
) -> None:
    asked, answers = threading.Event(), threading.Event()

    class SlowStore(MemoryStore):
        def check(self) -> None:
            asked.set()
            assert answers.wait(DEADLINE_S)

    shop = open_shop(store="memory://")

    async def scenario() -> None:
        entering = asyncio.create_task(shop.rw.worker().__aenter__())
        await asyncio.to_thread(asked.wait, DEADLINE_S)
        entering.cancel()
        asyncio.get_running_loop().call_soon(answers.set)
        with pytest.raises(asyncio.CancelledError):
            await entering
        await engines_gone()
        assert shop.rw.at_work == {}

    with shop.rw.store_replaced(SlowStore(clock=shop.rw.clock, ids=shop.rw.ids)):
        in_an_application(scenario)
    assert "failed" not in caplog.text


@pytest.mark.parametrize("store", ["sqlite", "memory", "postgres", "redis"])
def test_a_dispatch_of_the_same_process_wakes_it_at_once(
    store: str, open_shop: Callable[..., Shop], request: pytest.FixtureRequest
) -> None:
    changes = {"sqlite": {}, "memory": {"store": "memory://"}}.get(store)
    if changes is None:
        changes = {"store": request.getfixturevalue(SERVED[store])}
    shop = open_shop(worker=WorkerOptions(safety_poll_interval=datetime.timedelta(minutes=5)), **changes)
    shop.rw.migrate()

    async def scenario() -> None:
        async with shop.rw.worker():
            for _ in range(20):
                await shop.ended(await shop.rw.dispatch_async(Note()))

    in_an_application(scenario)


def test_f061_leaving_lets_what_runs_end_and_begins_nothing_new(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.rw.worker([Pool("one", concurrency=1)]) as worker:
            held = await shop.rw.dispatch_async(Errand("wait"))
            await shop.async_in.wait()
            waiting = await shop.rw.dispatch_async(Note())
            asyncio.get_running_loop().call_soon(shop.async_goes_on.set)
        assert worker.tally.succeeded == 1
        assert [(await shop.rw.get_async(each)).state for each in (held, waiting)] == ["succeeded", "pending"]

    in_an_application(scenario)


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_f082_handlers_that_dispatch_through_few_connections_hold_nobody_up(
    store: str, open_shop: Callable[..., Shop], request: pytest.FixtureRequest
) -> None:
    changes = {} if store == "sqlite" else {"store": request.getfixturevalue(SERVED[store])}
    shop = open_shop(producer=ProducerOptions(max_concurrent_calls=1), **changes)
    rw = shop.rw
    rw.migrate()

    @rw.task("shop.call", queue="notes")
    def call(number: int) -> None:
        rw.dispatch(Note())

    @rw.job("shop.write", queue="notes")
    class Write(Job):
        number: int

    @rw.handler
    async def write(job: Write) -> None:
        await rw.dispatch_async(Note())

    async def scenario() -> None:
        await rw.dispatch_many_async([call.job(number) for number in range(24)])
        await rw.dispatch_many_async([Write(number) for number in range(24)])
        async with EmbeddedWorker(rw, [Pool("main", concurrency=16)], until=nothing_left) as worker:
            await worker.wait()
        assert (worker.tally.succeeded, worker.tally.retried, worker.tally.failed) == (96, 0, 0)

    in_an_application(scenario)


def test_being_cancelled_while_leaving_stops_by_force_what_runs(open_shop: Callable[..., Shop]) -> None:
    # Without force it would wait for longer than this test does.
    minute = datetime.timedelta(minutes=1)
    shop = open_shop(worker=WorkerOptions(shutdown_drain=minute, shutdown_budget=2 * minute))
    shop.rw.migrate()

    async def scenario() -> None:
        leaving = asyncio.Event()

        async def application() -> None:
            async with shop.rw.worker():
                await shop.async_in.wait()
                leaving.set()

        held = await shop.rw.dispatch_async(Errand("wait"))
        task = asyncio.create_task(application())
        await leaving.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        view = await shop.rw.get_async(held)
        assert (view.state, [attempt.outcome for attempt in view.attempts]) == ("retrying", ["interrupted"])
        await engines_gone()
        async with shop.rw.worker():
            assert (await shop.ended(held)).state == "succeeded"

    in_an_application(scenario)


def test_it_can_be_stopped_and_waited_for(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.rw.worker() as worker:
            waiting = asyncio.create_task(worker.wait())
            await asyncio.sleep(0)
            worker.stop()
            assert await waiting is None
            assert await worker.wait() is None
        assert worker.failure is None

    in_an_application(scenario)


def test_a_more_urgent_stop_asks_runs_to_end_and_plain_ones_see_it_by_their_token(
    open_shop: Callable[..., Shop],
) -> None:
    minute = datetime.timedelta(minutes=1)
    shop = open_shop(worker=WorkerOptions(shutdown_drain=minute, shutdown_budget=2 * minute))
    shop.rw.migrate()
    begun = threading.Event()

    @shop.rw.job("shop.patience", queue="notes")
    class Patience(Job): ...

    @shop.rw.handler
    def patience(job: Patience, ctx: JobContext) -> None:
        begun.set()
        assert ctx.cancellation.wait(LONG)
        ctx.cancellation.raise_if_set()

    async def scenario() -> None:
        async with shop.rw.worker() as worker:
            receipt = await shop.rw.dispatch_async(Patience())
            await asyncio.to_thread(begun.wait, DEADLINE_S)
            assert worker.health().ready
            worker.stop()
            worker.stop(Stop.CANCEL)
            await worker.wait()
        view = await shop.rw.get_async(receipt)
        assert (view.state, [attempt.code for attempt in view.attempts]) == ("retrying", ["worker_stopping"])

    in_an_application(scenario)


def test_a_run_that_somebody_elsewhere_cancels_is_asked_to_stop_and_ends_cancelled(
    open_shop: Callable[..., Shop],
) -> None:
    shop = open_shop(worker=WorkerOptions(cancellation_grace=100 * ms))
    shop.rw.migrate()
    elsewhere = open_shop().rw  # no hint of what it does reaches the worker

    async def scenario() -> None:
        async with shop.rw.worker():
            receipt = await shop.rw.dispatch_async(Errand("wait"))
            await shop.async_in.wait()
            view = await shop.rw.get_async(receipt)
            command = ControlCommand(
                action=ControlAction.CANCEL,
                command_id=elsewhere.ids.ordered(),
                application=elsewhere.application,
                actor=ManagementActor("ops", "Ops", "service"),
                reason=None,
                targets=[view.target],
            )
            await elsewhere.store.run_async(elsewhere.store.control(command))
            view = await shop.ended(receipt)
            assert (view.state, [attempt.outcome for attempt in view.attempts]) == ("cancelled", ["cancelled"])

    in_an_application(scenario)


def test_jobs_of_an_older_version_run_through_their_upgrades(open_shop: Callable[..., Shop]) -> None:
    older, newer = open_shop(), open_shop()
    newer.rw.migrate()

    @older.rw.job("shop.bill", queue="notes")
    class Bill(Job):
        cents: int

    @newer.rw.job("shop.bill", queue="notes", version=2)
    class BillOfToday(Job):
        amount: str

    class BillOfYesterday(Job):
        cents: int

    @newer.rw.upgrade(BillOfToday, from_version=1)
    def in_words(old: BillOfYesterday) -> BillOfToday:
        return BillOfToday(f"{old.cents} cents")

    @newer.rw.handler
    def pay(job: BillOfToday) -> str:
        return job.amount

    async def scenario() -> None:
        receipt = await older.rw.dispatch_async(Bill(250))
        async with newer.rw.worker():
            assert (await newer.ended(receipt)).result() == "250 cents"

    in_an_application(scenario)


def test_a_middleware_that_nobody_registered_keeps_a_worker_from_starting_but_no_producer(shop: Shop) -> None:
    @shop.rw.job("shop.audited", queue="notes", middleware=("audit",))
    class Audited(Job): ...

    @shop.rw.handler
    def audited(job: Audited) -> None: ...

    async def scenario() -> None:
        await shop.rw.dispatch_async(Audited())
        with pytest.raises(ConfigurationError) as refused:
            async with shop.rw.worker():
                pytest.fail("it was entered")
        assert [problem.code for problem in refused.value.problems] == ["unknown_middleware_alias"]

    in_an_application(scenario)


def test_it_ends_by_itself_when_told_when(shop: Shop) -> None:
    async def scenario() -> None:
        receipt = await shop.rw.dispatch_async(Note())
        async with EmbeddedWorker(shop.rw, until=nothing_left) as worker:
            left = await worker.wait()
        assert left is not None
        assert (left.due, left.later) == (0, 0)
        assert (await shop.rw.get_async(receipt)).state == "succeeded"

    in_an_application(scenario)


def test_only_the_queues_of_its_pools_are_served(shop: Shop) -> None:
    async def scenario() -> None:
        note, errand = [await shop.rw.dispatch_async(job) for job in (Note(), Errand())]
        async with EmbeddedWorker(shop.rw, [Pool("paper", ("notes",), 1)], until=nothing_left) as worker:
            await worker.wait()
        assert (await shop.rw.get_async(note)).result() == "runwick-paper-1"
        assert (await shop.rw.get_async(errand)).state == "pending"

    in_an_application(scenario)


def test_one_pools_work_never_takes_anothers_slots(shop: Shop) -> None:
    async def scenario() -> None:
        pools = [Pool("paper", ("notes",), 1), Pool("ways", ("errands",), 1)]
        async with shop.rw.worker(pools):
            held = [await shop.rw.dispatch_async(Note("wait")) for _ in range(3)]
            await asyncio.to_thread(shop.plain_in.wait, DEADLINE_S)
            assert (await shop.ended(await shop.rw.dispatch_async(Errand()))).state == "succeeded"
            shop.plain_goes_on.set()
            assert [(await shop.ended(each)).result() for each in held] == ["runwick-paper-1"] * 3

    in_an_application(scenario)


def test_everything_that_is_wrong_is_said_at_once(open_shop: Callable[..., Shop]) -> None:
    shop = open_shop(worker=WorkerOptions(lease_duration=datetime.timedelta(seconds=30)))

    async def scenario() -> None:
        pools = [Pool("paper", ("nots",), 10), Pool("paper", ("errands",), 10)]
        with pytest.raises(ConfigurationError) as refused:
            async with shop.rw.worker(pools):
                pytest.fail("it was entered")
        codes = sorted(problem.code for problem in refused.value.problems)
        assert codes == ["invalid_pool", "invalid_pool", "invalid_timing", "store_not_installed"]
        await engines_gone()
        assert shop.rw.at_work == {}

    in_an_application(scenario)


def test_slots_must_fit_into_what_may_be_outstanding(shop: Shop) -> None:
    async def scenario() -> None:
        with pytest.raises(ConfigurationError, match=r"adds up to 17 .* must be ≤ max_outstanding_attempts"):
            async with shop.rw.worker([Pool("paper", ("notes",), 12), Pool("ways", ("errands",), 5)]):
                pytest.fail("it was entered")

    in_an_application(scenario)


def test_an_application_without_handlers_has_nothing_to_run(tmp_path: Path) -> None:
    rw = Runwick("empty", store=f"sqlite:///{tmp_path}/jobs.db")
    rw.job("shop.note")(Note)
    rw.migrate()
    with pytest.raises(ConfigurationError, match="registers no handler"):
        rw.worker().serving.check()
    rw.close()


@pytest.mark.parametrize("pools", [[], Pool("main"), ["main"], 4], ids=repr)
def test_pools_are_pools(shop: Shop, pools: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"give at least one Pool\(…\)"):
        shop.rw.worker(pools)


def test_an_application_has_one_at_a_time_and_several_applications_one_each(open_shop: Callable[..., Shop]) -> None:
    shop, other = open_shop(), open_shop("other")
    shop.rw.migrate()

    async def scenario() -> None:
        async with shop.rw.worker(), other.rw.worker():
            with pytest.raises(
                InvalidArgument, match=r"a worker of Runwick\('shop'\) is at work in this process already"
            ):
                async with shop.rw.worker():
                    pytest.fail("it was entered")
            receipts = [await each.rw.dispatch_async(Note()) for each in (shop, other)]
            assert [(await each.ended(r)).state for each, r in zip((shop, other), receipts, strict=True)] == [
                "succeeded",
                "succeeded",
            ]
        async with shop.rw.worker() as worker:
            pass
        with pytest.raises(InvalidArgument, match="has been entered before"):
            await worker.__aenter__()

    in_an_application(scenario)


def test_an_application_that_is_drained_gets_no_worker(shop: Shop) -> None:
    async def scenario() -> None:
        async with shop.rw.worker():
            pass
        with contextlib.closing(open_administration(shop.rw.store_url, shop.rw.clock, shop.rw.ids)) as administration:
            administration.set_admission(Admission.DRAIN, "shop")
            with pytest.raises(AdmissionClosed):
                async with shop.rw.worker():
                    pytest.fail("it was entered")
            await engines_gone()
            assert shop.rw.at_work == {}
            administration.set_admission(Admission.OPEN, "shop")
        async with shop.rw.worker():
            pass

    in_an_application(scenario)


def test_before_it_has_begun_there_is_nothing_to_read(shop: Shop) -> None:
    worker = shop.rw.worker()
    assert (worker.running, worker.failure) == (0, None)
    with pytest.raises(InvalidArgument, match="has not begun"):
        _ = worker.tally


def test_an_error_of_the_engine_is_told_and_raised(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    def until(_: Outlook) -> bool:
        raise ZeroDivisionError("the engine's own fault")

    async def application(own_error: Exception | None) -> None:
        async with EmbeddedWorker(shop.rw, until=until) as worker:
            with pytest.raises(ZeroDivisionError):
                await worker.wait()
            assert worker.failure == "ZeroDivisionError: the engine's own fault"
            if own_error is not None:
                raise own_error

    async def scenario() -> None:
        with pytest.raises(ZeroDivisionError, match="own fault"):
            await application(None)
        with pytest.raises(KeyError, match="the application's"):
            await application(KeyError("the application's own"))

    in_an_application(scenario)
    assert caplog.text.count("the worker of shop has ended: the engine's own fault") == 2
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_it_lives_in_a_lifespan(shop: Shop) -> None:
    """As an ASGI server runs it: entered at start-up, left at shut-down, in a task of its own beside the requests."""

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with shop.rw.worker():
            yield

    async def application(receive: Callable[[], Awaitable[str]], send: Callable[[str], Awaitable[None]]) -> None:
        assert await receive() == "lifespan.startup"
        async with lifespan():
            await send("lifespan.startup.complete")
            assert await receive() == "lifespan.shutdown"
        await send("lifespan.shutdown.complete")

    async def server() -> None:
        to_application: asyncio.Queue[str] = asyncio.Queue()
        from_application: asyncio.Queue[str] = asyncio.Queue()
        living = asyncio.create_task(application(to_application.get, from_application.put))
        await to_application.put("lifespan.startup")
        assert await from_application.get() == "lifespan.startup.complete"
        receipts = await asyncio.gather(*(shop.rw.dispatch_async(Note()) for _ in range(8)))  # requests
        assert {(await shop.ended(receipt)).state for receipt in receipts} == {"succeeded"}
        await to_application.put("lifespan.shutdown")
        assert await from_application.get() == "lifespan.shutdown.complete"
        await living

    in_an_application(server)


def test_what_lives_as_long_as_the_process_is_closed_when_it_is_left(shop: Shop) -> None:
    told: list[str] = []

    @shop.rw.provider(scope="process")
    def hour() -> Iterator[Hour]:
        told.append("opened")
        yield Hour()
        told.append("closed")

    @shop.rw.task("shop.strike", queue="notes")
    def strike() -> None: ...

    @shop.rw.job("shop.chime", queue="notes")
    class Chime(Job): ...

    @shop.rw.handler
    def chime(job: Chime, hour: Hour) -> None:
        told.append("struck")

    async def scenario() -> None:
        async with shop.rw.worker():
            await shop.ended(await shop.rw.dispatch_async(Chime()))
            assert told == ["opened", "struck"]
        assert told == ["opened", "struck", "closed"]

    in_an_application(scenario)


def test_one_that_does_not_close_is_left_behind(
    open_shop: Callable[..., Shop], caplog: pytest.LogCaptureFixture
) -> None:
    shop = open_shop(
        worker=WorkerOptions(
            shutdown_drain=5 * ms, shutdown_cancellation=5 * ms, shutdown_finalization=10 * ms, shutdown_budget=50 * ms
        )
    )
    shop.rw.migrate()
    goes_on = threading.Event()

    @shop.rw.provider(scope="process")
    def hour() -> Iterator[Hour]:
        yield Hour()
        assert goes_on.wait(DEADLINE_S)

    @shop.rw.job("shop.chime", queue="notes")
    class Chime(Job): ...

    @shop.rw.handler
    def chime(job: Chime, hour: Hour) -> None: ...

    async def scenario() -> None:
        async with shop.rw.worker():
            await shop.ended(await shop.rw.dispatch_async(Chime()))
        assert "providers of process scope had not closed after" in caplog.text

    in_an_application(scenario)
    goes_on.set()


def test_a_plain_run_that_cannot_be_stopped_loses_its_lease_and_runs_again(open_shop: Callable[..., Shop]) -> None:
    options = WorkerOptions(
        lease_duration=400 * ms,
        lease_safety_margin=50 * ms,
        renewal_interval=50 * ms,
        renewal_jitter=0 * ms,
        scheduler_allowance=10 * ms,
        control_request_timeout=100 * ms,
        control_retry_initial_backoff=10 * ms,
        control_retry_max_backoff=10 * ms,
        minimum_invocation_margin=220 * ms,
        recovery_scan_interval=50 * ms,
        recovery_scan_jitter=0 * ms,
        safety_poll_interval=50 * ms,
        cancellation_grace=10 * ms,
    )
    shop = open_shop(worker=options)
    shop.rw.migrate()
    shop.rw.configure_job(Note, execution_timeout=20 * ms, retry_delay=(ms, ms))

    async def scenario() -> None:
        async with shop.rw.worker([Pool("main", concurrency=2)]) as worker:
            held = await shop.rw.dispatch_async(Note("wait"))
            async with asyncio.timeout(DEADLINE_S):
                while worker.tally.recovered < 1:
                    await asyncio.sleep(0.005)
            assert worker.tally.lost >= 1
            shop.plain_goes_on.set()
            view = await shop.ended(held)
            assert view.state == "succeeded"
            assert view.attempts[0].outcome == "abandoned"

    in_an_application(scenario)


def test_a_worker_that_was_never_entered_is_left_at_once() -> None:
    async def leave() -> None:
        async with asyncio.timeout(DEADLINE_S), contextlib.AsyncExitStack() as stack:
            stack.push_async_exit(Runwick("shop", store="memory://").worker())

    asyncio.run(leave())


def test_a_thread_that_cannot_be_started_leaves_room_for_the_next_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    rw = Runwick("shop", store="memory://")
    Shop(rw)

    def no_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def enter() -> None:
        async with rw.worker():
            pass

    with monkeypatch.context() as patch:
        patch.setattr(LoopThread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            asyncio.run(enter())
    asyncio.run(enter())


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_another_store_in_its_place_ends_it_and_leaving_says_so(
    store: str, tmp_path: Path, open_shop: Callable[..., Shop], request: pytest.FixtureRequest
) -> None:
    changes = {} if store == "sqlite" else {"store": request.getfixturevalue(SERVED[store])}
    shop = open_shop(worker=WorkerOptions(safety_poll_interval=50 * ms), **changes)
    shop.rw.migrate()

    def replace_the_store() -> None:
        if store == "postgres":
            with psycopg.connect(shop.rw.store_url, autocommit=True) as connection:
                connection.execute("UPDATE runwick.store SET id = gen_random_uuid()")
        elif store == "redis":
            execute(shop.rw.store_url, "HSET", "rw:store", "id", uuid.uuid4().bytes)
        else:
            for file in tmp_path.glob("jobs.db*"):
                file.rename(file.with_name(f"moved-{file.name}"))
            open_shop().rw.migrate()

    async def at_work(worker: EmbeddedWorker) -> None:
        async with worker:
            await asyncio.to_thread(replace_the_store)
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(StoreHistoryBroken):
                    await worker.wait()

    async def scenario() -> None:
        worker = shop.rw.worker()
        with pytest.raises(StoreHistoryBroken) as broken:
            await at_work(worker)
        assert worker.failure == str(broken.value)
        await engines_gone()

    in_an_application(scenario)
