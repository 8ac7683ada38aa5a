"""The half of `Runwick` that declares: jobs, handlers, tasks, providers, queues, pools. Any order, at import.

Declaring checks nothing and opens nothing, so that importing an application is cheap and runs through whatever is
wrong in it; all of that is reported together, at first use.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from runwick.contracts.errors import InvalidArgument
from runwick.contracts.jobs import Job, JobDeclaration, JobSettings
from runwick.declarations.declarations import Declarations
from runwick.declarations.handlers import DeclaredHandler
from runwick.declarations.places import calling_frame, place_of_call
from runwick.declarations.pools import Pool
from runwick.declarations.providers import DeclaredProvider, Scope
from runwick.declarations.settings import SettingArguments
from runwick.declarations.tasks import Dispatches, Task

F = TypeVar("F", bound=Callable[..., Any])
J = TypeVar("J", bound=type[Job])
P = ParamSpec("P")
R = TypeVar("R")


class Declaring(Dispatches):
    """What an application says of itself."""

    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations

    def job(self, name: str, *, version: int = 1, **settings: Unpack[SettingArguments]) -> Callable[[J], J]:
        """Name a record, so that it can be dispatched and run::

            @rw.job("image.thumbnail", queue="images", max_executions=5)
            class MakeThumbnail(Job):
                path: str
                width: int = 256

        Args:
            name: the stored name, 1 to 200 characters of ``A-Z a-z 0-9 . _ -``; the class name is never stored.
            version: the payload's version, from 1.
            settings: where the job is routed (`queue`, `priority`) and how often and how long it may run
                (`max_executions`, `execution_timeout`, `retry_delay`, `max_unstarted`, `unstarted_delay`,
                `max_crashes`), as in `runwick.job`.

        Raises:
            InvalidArgument: it was written without a name (code ``invalid_name``).
        """
        declaration = _declaration("job", name, version, settings)

        def declare(record: J) -> J:
            self._declarations.add_job(record, declaration)
            return record

        return declare

    def add_jobs(self, *modules: ModuleType) -> None:
        """Add every record that these modules name with the free decorator `runwick.job`."""
        for module in modules:
            self._declarations.add_module(module, place_of_call())

    def configure_job(self, record: type[Job], **settings: Unpack[SettingArguments]) -> None:
        """Settle a job's settings here, above what its declaration says; the record is declared elsewhere."""
        self._declarations.configure_job(record, JobSettings(**settings), place_of_call())

    def handler(self, target: F) -> F:
        """Bind a function to the job that its first parameter is annotated with::

            @rw.handler
            def make_thumbnail(job: MakeThumbnail, ctx: JobContext, images: ImageStore) -> dict: ...

        It may be ``async``, or a class with a method ``handle``, of which every attempt gets an instance. Further
        parameters are passed by their types: `JobContext`, and whatever a provider yields. What it returns is the
        job's result; what it raises is a failure, retried while executions are left.
        """
        self._declarations.add_handler(DeclaredHandler(target, calling_frame().f_locals))
        return target

    def task(
        self, name: str, *, version: int = 1, **settings: Unpack[SettingArguments]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function with typed parameters a job of its own::

            @rw.task("stats.recalculate")
            def recalculate(day: date, shop: str = "all") -> None: ...

            recalculate(date.today())              # calls it here, as ever
            recalculate.dispatch(date.today())     # stores a job that calls it

        Its parameters are the payload. Arguments and errors are those of `job`.
        """
        declaration = _declaration("task", name, version, settings)

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

    def queue(self, name: str) -> None:
        """Declare a queue that no job has by default, so that a dispatch or a pool can name it."""
        self._declarations.add_queue(name, place_of_call())

    def pool(self, name: str, *, queues: tuple[str, ...] | None = None, concurrency: int = 4) -> None:
        """Give some queues slots of their own in the worker. May be called for several pools::

            rw.pool("main", queues=("default", "mails"), concurrency=8)
            rw.pool("reports", queues=("reports",), concurrency=2)  # a flood of these takes no slot of the others

        Without it, a worker has the pool ``main`` on every queue.

        Args:
            name: how messages and metrics call it.
            queues: those it takes jobs from; None means every queue that a job uses or `queue` declares. Pools may
                have queues in common.
            concurrency: most handlers at once, from 1. `runwick-supervise` runs each of several pools on so many
                executors; where there is one pool, it runs one executor per usable core instead, or as many as it is
                told.
        """
        self._declarations.add_pool(Pool(name, queues, concurrency))


def _declaration(decorator: str, name: str, version: int, settings: SettingArguments) -> JobDeclaration:
    if callable(name):
        example = f'@rw.{decorator}("image.thumbnail")'
        raise InvalidArgument("invalid_name", f"@rw.{decorator} takes the stored name: write {example}")
    return JobDeclaration(name=name, version=version, settings=JobSettings(**settings), where=place_of_call())
