"""The half of `Runwick` that declares: jobs, handlers, tasks, middleware, providers, upgrades, queues, pools.
Any order, at import.

Declaring checks nothing and opens nothing, so that importing an application is cheap and runs through whatever is
wrong in it; all of that is reported together, at first use.
"""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from runwick.contracts.errors import InvalidArgument
from runwick.contracts.jobs import Job, JobDeclaration, JobSettings, UseMiddleware
from runwick.contracts.policies import LANE_WEIGHTS, LaneSelection
from runwick.declarations.declarations import Declarations
from runwick.declarations.handlers import DeclaredHandler, Interrupt
from runwick.declarations.middleware import DeclaredMiddleware
from runwick.declarations.places import calling_frame, place_of_call
from runwick.declarations.pools import Pool
from runwick.declarations.providers import DeclaredProvider, Scope
from runwick.declarations.settings import SettingArguments
from runwick.declarations.tasks import Dispatches, Task
from runwick.declarations.upgrades import DeclaredUpgrade

F = TypeVar("F", bound=Callable[..., Any])
J = TypeVar("J", bound=type[Job])
P = ParamSpec("P")
R = TypeVar("R")


class Declaring(Dispatches):
    """What an application says of itself."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations

    def job(
        self,
        name: str,
        *,
        version: int = 1,
        middleware: tuple[str | UseMiddleware, ...] = (),
        **settings: Unpack[SettingArguments],
    ) -> Callable[[J], J]:
        """Name a record, so that it can be dispatched and run::

            @rw.job("image.thumbnail", queue="images", max_executions=5)
            class MakeThumbnail(Job):
                path: str
                width: int = 256

        Args:
            name: the stored name, 1 to 200 characters of ``A-Z a-z 0-9 . _ -``; the class name is never stored.
            version: the payload's version, from 1. Raise it with every change of the record that a stored payload does
                not fit, and declare an `upgrade`.
            middleware: aliases of what wraps each run of it; see `middleware`.
            settings: where the job is routed (`queue`, `priority`) and how often and how long it may run
                (`max_executions`, `execution_timeout`, `retry_delay`, `max_unstarted`, `unstarted_delay`,
                `max_crashes`), what is kept of its errors (`error_detail`), how much of it runs at once or begins in
                a time (`max_concurrent`, `per_resource`, `rolling_window`, `rolling_window_per_resource`), and by which
                keys it is unique (`unique_while_active`, `unique_within_window`), as in `runwick.job`.

        Raises:
            InvalidArgument: it was written without a name (code ``invalid_name``).
        """
        declaration = _declaration("job", name, version, settings, middleware)

        def declare(record: J) -> J:
            self._declarations.add_job(record, declaration)
            return record

        return declare

    def add_jobs(self, *modules: ModuleType) -> None:
        """Add every record that these modules name with the free decorator `runwick.job`."""
        for module in modules:
            self._declarations.add_module(module, place_of_call())

    def configure_job(
        self,
        record: type[Job],
        *,
        middleware: Sequence[Callable[..., Any]] = (),
        **settings: Unpack[SettingArguments],
    ) -> None:
        """Settle a job's settings here, above what its declaration says; the record is declared elsewhere.

        Args:
            record: whose.
            middleware: wraps its runs, inside of all other middleware, the first one outermost; see `middleware`.
            settings: as for `job`.
        """
        names = calling_frame().f_locals
        inner = [DeclaredMiddleware(each, names) for each in middleware]
        self._declarations.configure_job(record, JobSettings(**settings), place_of_call(), inner)

    @overload
    def handler(self, target: F, /) -> F: ...
    @overload
    def handler(self, target: None = None, /, *, interrupt: Interrupt = "raise") -> Callable[[F], F]: ...
    def handler(self, target: F | None = None, /, *, interrupt: Interrupt = "raise") -> F | Callable[[F], F]:
        """Bind a function to the job that its first parameter is annotated with::

            @rw.handler
            def make_thumbnail(job: MakeThumbnail, ctx: JobContext, images: ImageStore) -> dict: ...

        It may be ``async``, or a class with a method ``handle``, of which every attempt gets an instance. Further
        parameters are passed by their types: `JobContext`, and whatever a provider yields. What it returns is the
        job's result; what it raises is a failure, retried while executions are left. To say more it returns `Retry`,
        `Failed` or `Cancelled`.

        Args:
            target: the function or class; left out when the decorator has arguments.
            interrupt: how a run on an executor is asked to stop, beside ``ctx.cancellation``, before it is killed.
                ``"raise"`` raises `JobCancelled` in it, or cancels its task if it is async: at once if it does not take
                the context, after half of its time if it does. ``"token"`` never does; it looks at the token itself.
        """

        def declare(handler: F) -> F:
            self._declarations.add_handler(DeclaredHandler(handler, calling_frame().f_locals, interrupt))
            return handler

        return declare if target is None else declare(target)

    @overload
    def middleware(self, target: F, /) -> F: ...
    @overload
    def middleware(self, target: None = None, /, *, alias: str | None = None) -> Callable[[F], F]: ...
    def middleware(self, target: F | None = None, /, *, alias: str | None = None) -> F | Callable[[F], F]:
        """Wrap every run of every job, or of those jobs that name an alias::

            @rw.middleware
            def tenant(ctx: JobContext) -> Generator[None, Result, Result]:
                if ctx.tenant is None:
                    return Failed("tenant_missing", "Every job needs a tenant.")
                ctx.items["tenant"] = ctx.tenant
                result = yield  # runs the rest; what that raises is raised here
                return result

        A generator as here fits around everything. ``async def tenant(ctx, next)`` awaits ``next()`` instead, and then
        everything inside it runs on an event loop, plain handlers too, which therefore hold that loop up and cannot
        start one; ``def tenant(ctx, next)`` calls it, and nothing inside may be async. It may be a class with a method
        ``handle``, of which every run gets an instance. Further parameters are passed by their types, as to a handler.

        It runs the rest exactly once and returns a result, or returns one without. Anything else, such as running it
        twice or returning None, fails the job for good (``middleware_contract_fault``). From the outside in come:
        those without alias as registered, a declaration's aliases by their order, those of `configure_job`, the
        handler with its own providers.

        Args:
            target: the function or class; left out when the decorator has arguments.
            alias: wrap only the jobs whose declaration names it.
        """

        def declare(middleware: F) -> F:
            self._declarations.add_middleware(DeclaredMiddleware(middleware, calling_frame().f_locals), alias)
            return middleware

        return declare if target is None else declare(target)

    def upgrade(self, record: type[Job] | Task[..., Any], *, from_version: int) -> Callable[[F], F]:
        """Say how a payload that was stored in an older shape becomes the next one::

            class SendWelcomeV1(Job):  # the old shape: it has no name
                user: int

            @rw.upgrade(SendWelcome, from_version=1)  # SendWelcome is at version 2
            def with_locale(old: SendWelcomeV1) -> SendWelcome:
                return SendWelcome(user=old.user, locale="en")

        Each step goes one version up, and the last one gives the current record. Steps run on the worker before the
        handler, and again with every retry, so they must be pure; one that raises fails the job for good
        (``payload_upgrade_failed``). For a task, the step gives ``the_task.job(…)`` and is annotated ``-> Job``.

        Args:
            record: the current record, or the task.
            from_version: the version that the step takes.
        """

        def declare(function: F) -> F:
            frame = calling_frame()
            declared = DeclaredUpgrade(record, from_version, function, frame.f_locals, place_of_call())
            self._declarations.add_upgrade(declared)
            return function

        return declare

    def task(
        self,
        name: str,
        *,
        version: int = 1,
        middleware: tuple[str | UseMiddleware, ...] = (),
        **settings: Unpack[SettingArguments],
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function with typed parameters a job of its own::

            @rw.task("stats.recalculate")
            def recalculate(day: date, shop: str = "all") -> None: ...

            recalculate(date.today())              # calls it here, as ever
            recalculate.dispatch(date.today())     # stores a job that calls it

        Its parameters are the payload. Arguments and errors are those of `job`.
        """
        declaration = _declaration("task", name, version, settings, middleware)

        def declare(function: Callable[P, R]) -> Task[P, R]:
            task = Task(function, calling_frame().f_locals, self)
            self._declarations.add_task(task, declaration)
            return task

        return declare

    @overload
    def provider(self, source: F, /) -> F: ...
    @overload
    def provider(self, source: None = None, /, *, scope: Scope = "attempt") -> Callable[[F], F]: ...
    def provider(self, source: F | None = None, /, *, scope: Scope = "attempt") -> F | Callable[[F], F]:
        """Let handlers take what this function returns or yields, found by the type in its annotation::

            @rw.provider
            def session(engine: Engine) -> Iterator[Session]:
                with Session(engine) as session:
                    yield session

        A function that returns, a generator that yields once and cleans up after it, or a context manager; plain or
        ``async``. It may take `JobContext` and what other providers yield.

        Args:
            source: the function; left out when the decorator has arguments.
            scope: ``"attempt"``, opened and closed around every attempt that needs it; or ``"process"``, opened once
                in each executor and closed at its end. Beside an application (`worker`) there is one for all threads.
        """

        def declare(function: F) -> F:
            self._declarations.add_provider(DeclaredProvider(function, scope, calling_frame().f_locals))
            return function

        return declare if source is None else declare(source)

    def queue(self, name: str, max_concurrent: int | None = None) -> None:
        """Declare a queue: one that no job has by default, so that a dispatch or a pool can name it, or one whose jobs
        are limited.

        Args:
            name: 1 to 128 characters of ``A-Z a-z 0-9 . _ -``.
            max_concurrent: most of its jobs that run at once, in all workers together, from 1. The store takes it over
                once; after that an operator changes it there, and another figure here is reported.
        """
        self._declarations.add_queue(name, max_concurrent, place_of_call())

    def pool(
        self,
        name: str,
        *,
        queues: tuple[str, ...] | Mapping[str, int] | None = None,
        concurrency: int = 4,
        lane_weights: tuple[int, int, int] = LANE_WEIGHTS,
        lane_selection: LaneSelection = LaneSelection.WEIGHTED,
    ) -> None:
        """Give some queues slots of their own in the worker. May be called for several pools::

            rw.pool("main", queues=("default", "mails"), concurrency=8)
            rw.pool("reports", queues=("reports",), concurrency=2)  # a flood of these takes no slot of the others

        Without it, a worker has the pool ``main`` on every queue.

        Args:
            name: how messages and metrics call it.
            queues: those it takes jobs from; None means every queue that a job uses or `queue` declares. Pools may
                have queues in common. ``{"reports": 1, "pdf": 3}`` gives each a weight, 1 to 1,000: while both have
                work, three of four free slots go to ``pdf``.
            concurrency: most handlers at once, from 1. `runwick-supervise` runs each of several pools on so many
                executors; where there is one pool, it runs one executor per usable core instead, or as many as it is
                told.
            lane_weights: how a queue's high, medium and low jobs share the slots when all three wait, 1 to 1,000 each.
            lane_selection: `LaneSelection.WEIGHTED` by these weights, or the highest lane that has work, with or
                without a turn for lower ones that have waited for a minute. Between queues it is always by weight.
        """
        self._declarations.add_pool(Pool(name, queues, concurrency, lane_weights, lane_selection))


def _declaration(
    decorator: str,
    name: str,
    version: int,
    settings: SettingArguments,
    middleware: tuple[str | UseMiddleware, ...],
) -> JobDeclaration:
    if callable(name):
        example = f'@rw.{decorator}("image.thumbnail")'
        raise InvalidArgument("invalid_name", f"@rw.{decorator} takes the stored name: write {example}")
    return JobDeclaration(
        name=name, version=version, settings=JobSettings(**settings), where=place_of_call(), middleware=middleware
    )
