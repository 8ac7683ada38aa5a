"""`Runwick`: an application's jobs, its store and its options in one object. The composition root.

::

    declare    job · handler · task · provider · queue · pool · add_jobs · configure_job    (`runwick.app.declaring`)
    dispatch   dispatch · prepare · dispatch_prepared · resolve, each for batches too    (`runwick.app.dispatching`)
    look       get · why · wait · events · audit · workers    (`runwick.app.looking`)
    act        controls · queues · capacity · desk    (`runwick.management`)
    work       worker
    operate    migrate · check · problems · health · close

What waits for an answer of the store has a twin for event loops, under the same name with ``_async``.

The declarations are checked and frozen at first use, with everything that is wrong in them at once. The store is opened
at first use as well, and again by itself in a forked child, so that one object serves before and after a fork.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from runwick.app.declaring import Declaring
from runwick.app.dispatching import Dispatching
from runwick.app.drifts import drift_text, drifted_limits
from runwick.app.looking import Looking
from runwick.app.stores import migrate_store, open_store, resolve_url
from runwick.config.check import (
    check_executor_options,
    check_job_settings,
    check_pools,
    check_producer_options,
    check_store_options,
    check_worker_options,
)
from runwick.config.options import (
    ExecutorOptions,
    JobDefaults,
    PostgresOptions,
    ProducerOptions,
    RedisOptions,
    SqliteOptions,
    StoreOptions,
    WorkerOptions,
)
from runwick.config.sources import read_environment
from runwick.contracts.ambient import Clock, Dice, Ids
from runwick.contracts.errors import ConfigurationError, InvalidArgument, Problem
from runwick.contracts.health import ProcessHealth
from runwick.contracts.stores import Store
from runwick.declarations.catalog import Catalog
from runwick.declarations.declarations import Declarations
from runwick.declarations.pools import Pool
from runwick.dispatch.dispatcher import Dispatcher
from runwick.health.pulse import Pulse
from runwick.health.watch import Watch
from runwick.runtime.ambient import SystemClock, SystemDice, SystemIds

if TYPE_CHECKING:
    from runwick.app.worker import EmbeddedWorker
    from runwick.management.desk import Desk
    from runwick.stores.migrations import MigrationResult

Options = TypeVar(
    "Options",
    JobDefaults,
    WorkerOptions,
    ExecutorOptions,
    ProducerOptions,
    SqliteOptions,
    PostgresOptions,
    RedisOptions,
)


class Runwick(Dispatching, Looking, Declaring):
    """An application that declares jobs, dispatches them and has them run.

    Args:
        application: the application's name inside the store, so that several can share one: 1 to 128 characters of
            ``A-Z a-z 0-9 . _ -``.
        store: the store's URL: ``sqlite:///jobs.db`` is relative to the directory that is current now,
            ``sqlite:////srv/app/jobs.db`` is absolute. The environment variable RUNWICK_STORE wins over it.
        worker: how workers of this application keep time; the defaults suit nearly all.
        executors: how `runwick-supervise` keeps its executors; nothing else looks at it.
        producer: how much this process dispatches at once.
        sqlite, postgres, redis: how this process works with such a store.
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
        executors: ExecutorOptions | None = None,
        producer: ProducerOptions | None = None,
        sqlite: SqliteOptions | None = None,
        postgres: PostgresOptions | None = None,
        redis: RedisOptions | None = None,
        job_defaults: JobDefaults | None = None,
        clock: Clock | None = None,
        dice: Dice | None = None,
        ids: Ids | None = None,
    ) -> None:
        defaults = _given("job_defaults", job_defaults, JobDefaults)
        Declaring.__init__(self, Declarations(application, defaults, check_job_settings, _check_pools))
        environment = read_environment(os.environ)
        self.worker_options = environment.applied_to(_given("worker", worker, WorkerOptions))
        self.executor_options = environment.applied_to(_given("executors", executors, ExecutorOptions))
        self.producer_options = environment.applied_to(_given("producer", producer, ProducerOptions))
        self.store_options = StoreOptions(
            sqlite=environment.applied_to(_given("sqlite", sqlite, SqliteOptions)),
            postgres=environment.applied_to(_given("postgres", postgres, PostgresOptions)),
            redis=environment.applied_to(_given("redis", redis, RedisOptions)),
            concurrent_calls=self.producer_options.max_concurrent_calls,
        )
        self.dice: Dice = dice or SystemDice()
        Looking.__init__(
            self,
            application,
            lambda: self.store,
            ids or SystemIds(),
            clock or SystemClock(),
            lambda: self.catalog.queues,
        )
        self._environment = environment
        self._store_url, self._store_problems = _resolved(environment.store or store)
        self._opened: dict[str, Store] = {}
        self.at_work: dict[str, EmbeddedWorker] = {}
        """The worker of this object that is alive in this process, if there is one."""
        self._watch = Watch(application, lambda: self.store, self.clock, roles=("producer",), pulse=self._pulse_at_work)
        Dispatching.__init__(
            self,
            Dispatcher(application, lambda: self.catalog, lambda: self.store, self.ids, self.producer_options),
        )

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

    @functools.cached_property
    def desk(self) -> "Desk":
        """Every operator action, with permissions and an audit trail: what the HTTP API, the dashboard and the command
        line stand on. `controls`, `queues` and `capacity` do the same for the application's own code."""
        from runwick.app.deskside import DeskSide
        from runwick.management.desk import Desk

        options = (self.worker_options, self.executor_options, self.producer_options)
        stores = self.store_options.sqlite, self.store_options.postgres, self.store_options.redis
        side = DeskSide(
            self.application,
            lambda: self.catalog,
            self._dispatcher,
            (*options, *stores),
            self._environment,
            lambda: self.store.description,
        )
        return Desk(self.application, lambda: self.store, self.ids, self.clock, side)

    def worker(self, pools: Sequence[Pool] | None = None) -> "EmbeddedWorker":
        """A worker in this process, beside whatever else the process does::

            async with rw.worker(pools=[Pool("main", queues=("images",), concurrency=8)]):
                ...  # serve requests; jobs run meanwhile

        It has an event loop in a thread of its own. Plain handlers run in threads, async ones on the loop that enters
        the block. Entering checks everything and begins; leaving drains within `WorkerOptions.shutdown_budget`.

        Args:
            pools: what to run at once; without it, what `pool` declares.

        Raises:
            InvalidArgument: these are no pools (code ``invalid_argument``).
        """
        from runwick.app.worker import EmbeddedWorker

        given = pools is None or (isinstance(pools, Sequence) and pools and all(isinstance(one, Pool) for one in pools))
        if not given:
            message = f"pools is {pools!r}; give at least one Pool(…), or leave it out"
            raise InvalidArgument("invalid_argument", message)
        return EmbeddedWorker(self, pools)

    def migrate(self) -> "MigrationResult | None":
        """Create the store, or bring it to this release's revision. Safe to call again; nothing else creates a store.

        Returns:
            What was done; None for a store in memory, which needs nothing.

        Raises:
            ConfigurationError: there is no store, or it is in a place that cannot keep jobs safe.
            MigrationError: it stopped; the store stays at its last good revision.
        """
        return migrate_store(self.store_url, self.clock, self.ids, self.store_options)

    def problems(self) -> list[Problem]:
        """Everything wrong with the declarations, the options and the environment. Opens nothing."""
        problems: list[Problem] = []
        try:
            _ = self.catalog
        except ConfigurationError as error:
            problems += error.problems
        return [
            *problems,
            *check_worker_options(self.worker_options),
            *check_executor_options(self.executor_options),
            *self._opening_problems(),
        ]

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
        drifts = [drift_text(drift) for drift in drifted_limits(self.catalog, self.store)]
        return (f"store: {self.store.description}", *self.store.notes, *drifts, *_notes(self.catalog))

    def health(self) -> ProcessHealth:
        """Whether this process can do its part, for each of its roles; answered at once from what was last seen::

            app.mount("/health", health_app(rw))  # from runwick.health: /live and /ready

        The first call begins to ask the store, every 10 s in a thread of its own, and knows nothing of it yet.
        """
        return self._watch.health()

    def close(self) -> None:
        """Close what the store holds open; the next use opens it again."""
        self._watch.close()
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

    def _pulse_at_work(self) -> Pulse | None:
        worker = self.at_work.get("worker")
        return None if worker is None else worker.pulse

    def _opening_problems(self) -> list[Problem]:
        """What stands in the way of opening the store."""
        return [
            *self._environment.problems,
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
