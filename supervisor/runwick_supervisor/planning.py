"""What a supervisor is to run, or everything that is wrong with it: command line, environment, application and store.

    orders ─▶ zygote ─▶ manifest ─▶ pools and their executors ─▶ store ─┬─ a plan
                 ▲                       └ anew: what may not change ───┤
                 └── HUP                                                └─ every problem, all at once

Nothing is written and no executor is made.
"""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from runwick.app.stores import open_store
from runwick.config.check import check_pools
from runwick.config.durations import duration_text
from runwick.config.options import StoreOptions
from runwick.config.serving import served_pools
from runwick.contracts.ambient import Clock
from runwick.contracts.errors import ConfigurationError, Problem, StoreError
from runwick.contracts.stores import Store
from runwick.declarations.pools import Pool
from runwick.runtime.ambient import SystemIds
from runwick.runtime.rundir import RunDir
from runwick_supervisor.link import Manifest
from runwick_supervisor.zygote_handle import ApplicationRefused, Zygote


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line and the environment ask for."""

    target: str
    app_dir: str
    executors: int | None
    """How many; None when nobody said."""
    executors_by: str
    """The option or variable that said how many."""
    cores: int
    queues: tuple[str, ...] | None
    check_only: bool
    """Start nothing."""
    advise: bool
    """Say how it could run better. That starts nothing either."""
    until_empty: bool
    progress_interval_s: float
    numeric_threads: int
    """As `runwick.config.numeric` means it."""
    preload: tuple[str, ...]
    """Modules that are imported after the application, before anything is forked."""
    executor_options: Mapping[str, Any]
    """Options of executors that the command line says, by name: above what code and environment say."""
    run_dir: RunDir
    """Where the run file lies, or why there is none."""

    @property
    def starts_nothing(self) -> bool:
        """Whether nothing is started and nothing written."""
        return self.check_only or self.advise


class Plan(msgspec.Struct, frozen=True):
    """Everything checked, ready to run."""

    manifest: Manifest
    store: Store
    pools: tuple[Pool, ...]
    """Those that are served: with all of their queues, and as many executors as their concurrency says."""

    @property
    def executors(self) -> int:
        """In all pools together."""
        return sum(pool.concurrency for pool in self.pools)


async def make_plan(orders: Orders, problems: Sequence[Problem], zygote: Zygote, clock: Clock) -> Plan:
    """Ask everybody what is wrong, then refuse with all of it.

    The zygote has the same environment: its options are those of the code with what the environment says instead,
    checked already.

    Args:
        problems: what is known to be wrong already.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    found = list(problems)
    try:
        manifest = await _manifest(orders, zygote)
    except ApplicationRefused as refused:
        found += refused.problems
        if refused.store is not None and (store := _open(refused.store, StoreOptions(), found, clock)):
            store.close()
        raise ConfigurationError(list(dict.fromkeys(found))) from None
    except ConfigurationError as refused:
        raise ConfigurationError([*found, *refused.problems]) from None
    found += manifest.problems
    pools = _pools(orders, manifest, found)
    store = None
    if manifest.store is not None:
        # Options out of bounds must not hide what is wrong with the store itself.
        options = StoreOptions() if manifest.problems else manifest.stores
        store = _open(manifest.store, options, found, clock)
    if found or store is None:
        if store is not None:
            store.close()
        raise ConfigurationError(list(dict.fromkeys(found)))
    return Plan(manifest, store, tuple(pools))


async def make_next_plan(orders: Orders, plan: Plan, zygote: Zygote) -> Plan:
    """The plan of an application that is loaded anew while a worker runs it.

    Raises:
        ConfigurationError: with everything that is wrong, or that cannot change while the worker runs.
    """
    manifest = await _manifest(orders, zygote)
    found = [*manifest.problems, *_changed(plan.manifest, manifest)]
    pools = _pools(orders, manifest, found)
    if found:
        raise ConfigurationError(list(dict.fromkeys(found)))
    return Plan(manifest, plan.store, tuple(pools))


async def _manifest(orders: Orders, zygote: Zygote) -> Manifest:
    """What the application declares, with what the command line says instead."""
    manifest = await zygote.boot(orders.target, orders.app_dir)
    options = dataclasses.replace(manifest.executors, **orders.executor_options)
    return msgspec.structs.replace(manifest, executors=options)


def _changed(old: Manifest, new: Manifest) -> list[Problem]:
    """What differs that only a restart changes, each by its name."""
    changed = []
    if new.application != old.application:
        changed.append(("application", f"{old.application} → {new.application}"))
    if new.store != old.store:
        changed.append(("store", "it is another one"))  # what a URL says is nobody's to read
    for before, after in (
        (old.worker, new.worker),
        (old.stores.sqlite, new.stores.sqlite),
        (old.stores.postgres, new.stores.postgres),
        (old.stores.redis, new.stores.redis),
    ):
        for field in dataclasses.fields(before):
            values = [getattr(options, field.name) for options in (before, after)]
            if values[0] != values[1]:
                changed.append((field.name, " → ".join(map(_shown, values))))
    return [Problem("reload_refused", name, f"{what}. Restart the worker for this change.") for name, what in changed]


def _shown(value: object) -> str:
    return duration_text(value) if isinstance(value, datetime.timedelta) else str(value)


def _pools(orders: Orders, manifest: Manifest, problems: list[Problem]) -> list[Pool]:
    """The pools that are served, each with its number of executors."""
    if not manifest.kinds:
        problems.append(Problem("missing_handler", orders.target, "registers no handler, so there is nothing to run."))
    pools, wrong = served_pools(manifest.pools, manifest.queues, orders.queues)
    problems += wrong
    if not pools:
        return pools
    if len(pools) == 1 and (orders.executors is not None or len(manifest.pools) < 2):
        pools = [msgspec.structs.replace(pools[0], concurrency=orders.executors or orders.cores)]
    elif orders.executors is not None:
        listed = ", ".join(f"{pool.name} {pool.concurrency}" for pool in pools)
        problems.append(
            Problem(
                "invalid_pool",
                orders.executors_by,
                f"says how many executors one pool has, but this worker serves {len(pools)} ({listed}), each with as "
                "many as its concurrency says. Leave it out, or serve the queues of one pool with --queues.",
            )
        )
    executors = sum(pool.concurrency for pool in pools)
    problems += check_pools(pools, manifest.queues, manifest.worker.outstanding_max(executors))
    return pools


def _open(url: str, options: StoreOptions, problems: list[Problem], clock: Clock) -> Store | None:
    """The store, opened and checked; what is wrong with it joins the problems."""
    store = None
    try:
        store = open_store(url, options, clock, SystemIds())
        store.check()
    except ConfigurationError as refused:
        problems += refused.problems
    except StoreError as error:
        problems.append(Problem(error.code, "store", f"{error.message}."))
    return store
