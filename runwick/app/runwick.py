"""`Runwick`: an application's jobs, its store and its options in one object. The composition root.

::

    declare    job · handler · task · provider · queue · pool · add_jobs · configure_job    (`runwick.app.declaring`)
    dispatch   dispatch · dispatch_many          and their _async twins
    look       get · wait                        and their _async twins
    operate    migrate · check · problems · close

The declarations are checked and frozen at first use, with everything that is wrong in them at once. The store is opened
at first use as well, and again by itself in a forked child, so that one object serves before and after a fork.
"""

import contextlib
import datetime
import os
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from runwick.app.declaring import Declaring
from runwick.app.stores import migrate_store, open_store, resolve_url
from runwick.app.views import JobView
from runwick.app.waiting import pauses_s
from runwick.config.check import (
    check_job_settings,
    check_pools,
    check_producer_options,
    check_store_options,
    check_worker_options,
)
from runwick.config.options import (
    JobDefaults,
    PostgresOptions,
    ProducerOptions,
    SqliteOptions,
    StoreOptions,
    WorkerOptions,
)
from runwick.config.sources import read_environment
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.dispatching import BatchItem, BatchReceipt, DispatchOptions, Receipt
from runwick.contracts.errors import ConfigurationError, InvalidArgument, JobNotFound, Problem, WaitTimeout
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.jobs import Job
from runwick.contracts.stores import JobRecord, Store
from runwick.declarations.catalog import Catalog
from runwick.declarations.declarations import Declarations
from runwick.declarations.pools import Pool
from runwick.dispatch.dispatcher import Dispatcher
from runwick.dispatch.options import OptionArguments
from runwick.runtime.ambient import SystemClock, SystemDice, SystemIds

if TYPE_CHECKING:
    from runwick.stores.migrations import MigrationResult

Options = TypeVar("Options", JobDefaults, WorkerOptions, ProducerOptions, SqliteOptions, PostgresOptions)


class Runwick(Declaring):
    """An application that declares jobs, dispatches them and has them run.

    Args:
        application: the application's name inside the store, so that several can share one: 1 to 128 characters of
            ``A-Z a-z 0-9 . _ -``.
        store: the store's URL: ``sqlite:///jobs.db`` is relative to the directory that is current now,
            ``sqlite:////srv/app/jobs.db`` is absolute. The environment variable RUNWICK_STORE wins over it.
        worker: how workers of this application keep time; the defaults suit nearly all.
        producer: how much this process dispatches at once.
        sqlite, postgres: how this process works with such a store.
        job_defaults: settings for every job that does not say otherwise.
        clock, dice, ids: where time, chance and ids come from; tests give their own.

    Raises:
        InvalidArgument: options of the wrong class (code ``invalid_argument``).
    """

    def __init__(
        self,
        application: str,
        *,
        store: str | None = None,
        worker: WorkerOptions | None = None,
        producer: ProducerOptions | None = None,
        sqlite: SqliteOptions | None = None,
        postgres: PostgresOptions | None = None,
        job_defaults: JobDefaults | None = None,
        clock: Clock | None = None,
        dice: Dice | None = None,
        ids: Ids | None = None,
    ) -> None:
        defaults = _given("job_defaults", job_defaults, JobDefaults)
        super().__init__(Declarations(application, defaults, check_job_settings, _check_pools))
        environment = read_environment(os.environ)
        self.application = application
        self.worker_options = environment.applied_to(_given("worker", worker, WorkerOptions))
        self.producer_options = environment.applied_to(_given("producer", producer, ProducerOptions))
        self.store_options = StoreOptions(
            sqlite=environment.applied_to(_given("sqlite", sqlite, SqliteOptions)),
            postgres=environment.applied_to(_given("postgres", postgres, PostgresOptions)),
            concurrent_calls=self.producer_options.max_concurrent_calls,
        )
        self.clock: Clock = clock or SystemClock()
        self.dice: Dice = dice or SystemDice()
        self.ids: Ids = ids or SystemIds()
        self._environment_problems = environment.problems
        self._store_url, self._store_problems = _resolved(environment.store or store)
        self._opened: dict[str, Store] = {}
        self._dispatcher = Dispatcher(lambda: self.catalog, lambda: self.store, self.ids)

    def __repr__(self) -> str:
        return f"Runwick({self.application!r})"

    @property
    def catalog(self) -> Catalog:
        """The declarations, checked and frozen; frozen anew when something was declared since.

        Raises:
            ConfigurationError: with everything that is wrong in them.
        """
        return self._declarations.freeze()

    @property
    def store_url(self) -> str:
        """The store's URL with its path made absolute. It may hold a password: never show or log it.

        Raises:
            ConfigurationError: there is none, or it is no store's.
        """
        if self._store_problems:
            raise ConfigurationError(self._store_problems)
        return self._store_url

    @property
    def store(self) -> Store:
        """The store, opened at first use.

        Raises:
            ConfigurationError: there is none, or its options are out of bounds.
        """
        if (store := self._opened.get("store")) is None:
            if problems := self._opening_problems():
                raise ConfigurationError(problems)
            opened = open_store(self.store_url, self.store_options, self.clock, self.ids)
            # No lock, which a fork could copy while it is held: of two threads the first one's store stays.
            store = self._opened.setdefault("store", opened)
            if store is not opened:
                opened.close()
        return store

    def dispatch(self, job: Job, **options: Unpack[OptionArguments]) -> Receipt:
        """Store a job; when this returns, the store has confirmed that it is durable.

        Args:
            job: an instance of a declared record.
            queue: another registered queue than the job's own.
            priority: ``high``, ``medium`` or ``low``.
            not_before: the earliest start, as an aware datetime (one that is past means now) or as a delay from now
                by the store's clock. Rounded up to a millisecond.
            metadata: at most 32 entries and 16 KiB, which the handler finds in its context.
            tenant: whom the job belongs to; None is the default tenant.
            expires_at: a job that has not begun by then fails with ``expired`` instead of running.

        Raises:
            ConfigurationError: the declarations or the store's options are wrong; nothing was sent.
            DispatchValidationError: the job or an option breaks a rule; nothing was sent.
            StoreError: nothing was written.
            OutcomeUnknown: the job may or may not exist.
        """
        return self._dispatcher.dispatch(job, DispatchOptions(**options))

    async def dispatch_async(self, job: Job, **options: Unpack[OptionArguments]) -> Receipt:
        """`dispatch` on an event loop, which it never blocks. Cancelling stops the waiting, not an accepted job."""
        return await self._dispatcher.dispatch_async(job, DispatchOptions(**options))

    def dispatch_many(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """Store up to 100 jobs in one transaction: all of them or none.

        Args:
            items: jobs, or `BatchItem` for those with options; at most 2 MiB together.

        Raises:
            DispatchValidationError: `item_failures` lists every invalid item; nothing was sent.
            ConfigurationError, StoreError, OutcomeUnknown: as for `dispatch`.
        """
        return self._dispatcher.dispatch_many(items)

    async def dispatch_many_async(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """`dispatch_many` on an event loop, which it never blocks."""
        return await self._dispatcher.dispatch_many_async(items)

    def get(self, job: Receipt | str) -> JobView:
        """Read a job as it stands now.

        Args:
            job: its receipt, or its id as UUID text.

        Raises:
            JobNotFound: this application has no such job.
            InvalidArgument: that is no id (code ``invalid_id``).
        """
        job_id = _job_id(job)
        return _view(job_id, self.store.run(self.store.job(self.application, job_id)))

    async def get_async(self, job: Receipt | str) -> JobView:
        """`get` on an event loop."""
        job_id = _job_id(job)
        return _view(job_id, await self.store.run_async(self.store.job(self.application, job_id)))

    def wait(self, job: Receipt | str, *, timeout: datetime.timedelta) -> JobView:
        """Wait until a job has ended: succeeded, failed or cancelled.

        Args:
            job: its receipt, or its id as UUID text.
            timeout: how long to wait at most; the job goes on whatever the answer.

        Raises:
            WaitTimeout: it had not ended by then (code ``wait_timeout``).
            InvalidArgument: that is no id, or no timedelta.
            JobNotFound: this application has no such job.
        """
        for pause_s in pauses_s(timeout, self.clock):
            if (view := self.get(job)).state.terminal:
                return view
            time.sleep(pause_s)
        return _ended(self.get(job), timeout)

    async def wait_async(self, job: Receipt | str, *, timeout: datetime.timedelta) -> JobView:
        """`wait` on an event loop."""
        import asyncio

        for pause_s in pauses_s(timeout, self.clock):
            if (view := await self.get_async(job)).state.terminal:
                return view
            await asyncio.sleep(pause_s)
        return _ended(await self.get_async(job), timeout)

    def migrate(self) -> "MigrationResult | None":
        """Create the store, or bring it to this release's revision. Safe to call again; nothing else creates a store.

        Returns:
            What was done; None for a store in memory, which needs nothing.

        Raises:
            ConfigurationError: there is no store, or it is in a place that cannot keep jobs safe.
            MigrationError: it stopped; the store stays at its last good revision.
        """
        return migrate_store(self.store_url, self.clock, self.ids)

    def problems(self) -> list[Problem]:
        """Everything wrong with the declarations, the options and the environment. Opens nothing."""
        problems: list[Problem] = []
        try:
            _ = self.catalog
        except ConfigurationError as error:
            problems += error.problems
        return [*problems, *check_worker_options(self.worker_options), *self._opening_problems()]

    def check(self) -> tuple[str, ...]:
        """Check all that can be checked before work starts, the store included.

        Returns:
            What is there and what is worth knowing, one sentence each.

        Raises:
            ConfigurationError: with every problem.
            StoreError: the store refuses to be used; the code says why.
        """
        if problems := self.problems():
            raise ConfigurationError(problems)
        self.store.check()
        return (f"store: {self.store.description}", *self.store.notes, *_notes(self.catalog))

    def close(self) -> None:
        """Close what the store holds open; the next use opens it again."""
        if (store := self._opened.get("store")) is not None:
            store.close()

    @contextlib.contextmanager
    def store_replaced(self, store: Store) -> Iterator[None]:
        """Use this store instead of the application's own for the length of the block. For tests."""
        own = self._opened.get("store")
        self._opened["store"] = store
        try:
            yield
        finally:
            del self._opened["store"]
            if own is not None:
                self._opened["store"] = own

    def _opening_problems(self) -> list[Problem]:
        """What stands in the way of opening the store."""
        return [
            *self._environment_problems,
            *self._store_problems,
            *check_store_options(self.store_options),
            *check_producer_options(self.producer_options),
        ]


def _given(name: str, options: Options | None, kind: type[Options]) -> Options:
    """The options, or the defaults where none are given."""
    if options is None:
        return kind()
    if not isinstance(options, kind):
        raise InvalidArgument("invalid_argument", f"{name} is {type(options).__name__}; give {kind.__name__}(…)")
    return options


def _resolved(url: str | None) -> tuple[str, tuple[Problem, ...]]:
    if url is None:
        return "", (Problem("missing_store", "store", "no store is given; use store= or set RUNWICK_STORE."),)
    if not isinstance(url, str):
        what = f"is {type(url).__name__}; give a URL as text, such as sqlite:///jobs.db."
        return "", (Problem("invalid_store", "store", what),)
    try:
        return resolve_url(url, Path.cwd()), ()
    except ConfigurationError as error:
        return "", error.problems


def _check_pools(pools: Sequence[Pool], queues: Collection[str]) -> list[Problem]:
    """The pools alone: whether they fit a worker's budget is that worker's question, which knows its backend."""
    return check_pools(pools, queues, sys.maxsize)


def _notes(catalog: Catalog) -> list[str]:
    notes = [
        f"jobs: {', '.join(sorted(kind.name for kind in catalog.jobs)) or 'none'}",
        f"queues: {', '.join(sorted(catalog.queues)) or 'none'}",
    ]
    if only_dispatched := sorted(kind.name for kind in catalog.jobs if kind not in catalog.handlers):
        notes.append(
            f"without a handler here, so a worker of this application leaves them: {', '.join(only_dispatched)}"
        )
    return notes


def _job_id(job: Receipt | str) -> bytes:
    return job.job if isinstance(job, Receipt) else id_bytes(job)


def _view(job_id: bytes, record: JobRecord | None) -> JobView:
    if record is None:
        raise JobNotFound("not_found", f"no job {id_text(job_id)} in this application")
    return JobView(record)


def _ended(view: JobView, timeout: datetime.timedelta) -> JobView:
    if not view.state.terminal:
        waited = f"{timeout.total_seconds():g} s"
        raise WaitTimeout("wait_timeout", f"job {view.job_id} is still {view.state.value} after {waited}; it goes on")
    return view
