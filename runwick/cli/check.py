"""``runwick check``: the whole configuration and the store, without starting anything."""

import textwrap
from collections.abc import Iterator, Sequence

import click

from runwick.app.drifts import drift_text, drifted_limits
from runwick.app.runwick import Runwick
from runwick.app.soundness import sound_store
from runwick.cli.answers import Answer
from runwick.cli.application import application_options, load
from runwick.cli.commands import AnsweringCommand
from runwick.cli.results import SoundBody
from runwick.config.durations import duration_text
from runwick.config.layout import terminal_columns
from runwick.config.options import ExecutorOptions, WorkerOptions
from runwick.config.sizes import bytes_text
from runwick.contracts.attempts import Kind
from runwick.contracts.errors import ConfigurationError, Problem
from runwick.contracts.stores import Store
from runwick.declarations.catalog import Catalog
from runwick.declarations.jobs import JobEntry
from runwick.declarations.pools import Pool

LABEL_WIDTH = 13


@click.command(cls=AnsweringCommand, result="SoundBody")
@application_options
def command(app: str, app_dir: str) -> Answer:
    """Check the configuration and the store; start nothing.

    Prints every problem and exits with 2, or says what is there and exits with 0.
    """
    runwick = load(app, app_dir)
    problems = [*runwick.problems(), *_unknown_aliases(runwick)]
    store = sound_store(runwick, problems)
    if store is None or problems:
        raise ConfigurationError(problems)
    body = sound_body(runwick, store)
    return Answer(body=body, text=lambda: summary(body))


def _unknown_aliases(runwick: Runwick) -> tuple[Problem, ...]:
    """Middleware that jobs with a handler here name and nobody registered: no worker starts with that."""
    try:
        return runwick.catalog.unknown_aliases
    except ConfigurationError:
        return ()  # told already


def sound_body(runwick: Runwick, store: Store) -> SoundBody:
    """What is there, when nothing is wrong. It closes the store, which `sound_store` opened."""
    catalog = runwick.catalog
    return SoundBody(
        application=runwick.application,
        store=store.description,
        notes=(*store.notes, *_drifted(catalog, store), *_unserved(catalog)),
        pools=tuple(_pool_line(pool, len(catalog.pools)) for pool in catalog.pools),
        queues=tuple(sorted(catalog.queues)),
        jobs=tuple(_job_line(kind, entry, catalog) for kind, entry in sorted(catalog.jobs.items())),
        timings=_timing_line(runwick.worker_options),
        executors=_executor_line(runwick.executor_options),
    )


def summary(body: SoundBody) -> str:
    """The same in a few lines."""
    paragraphs = {
        "application": [body.application],
        "store": [body.store],
        "notes": body.notes,
        "pools": body.pools,
        "queues": [", ".join(body.queues) or "none"],
        "jobs": body.jobs or ["none"],
        "timings": [body.timings],
        "executors": [body.executors],
    }
    lines = [line for label, texts in paragraphs.items() for line in _paragraph(label, texts)]
    return "\n".join(["Nothing is wrong.", *lines])


def _drifted(catalog: Catalog, store: Store) -> list[str]:
    """Limits that are declared otherwise than they stand in the store, which `sound_store` has closed again."""
    try:
        return [drift_text(drift) for drift in drifted_limits(catalog, store)]
    finally:
        store.close()


def _paragraph(label: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for line in textwrap.wrap(text, terminal_columns() - LABEL_WIDTH - 2, break_long_words=False):
            yield f"  {label.ljust(LABEL_WIDTH)}{line}"
            label = ""


def _unserved(catalog: Catalog) -> list[str]:
    """Queues whose jobs no pool of this application takes."""
    served = {queue for pool in catalog.pools for queue in pool.queues or catalog.queues}
    left = sorted(catalog.queues - served) if catalog.pools else []
    return (
        [f"no pool here serves {', '.join(left)}: what is dispatched there waits for another application"]
        if left
        else []
    )


def _pool_line(pool: Pool, pools: int) -> str:
    queues = "every queue" if pool.queues is None else ", ".join(pool.queues)
    executors = "one per executor" if pools == 1 else f"on {pool.concurrency} executors"
    return f"{pool.name}: {queues}; {pool.concurrency} at once, or {executors}"


def _job_line(kind: Kind, entry: JobEntry, catalog: Catalog) -> str:
    version = "" if kind.version == 1 else f" (version {kind.version})"
    executions = entry.policy.max_executions
    times = "1 execution" if executions == 1 else f"{executions} executions"
    handled = "" if kind in catalog.handlers else "; no handler here"
    return f"{kind.name}{version}: queue {entry.lane.queue}, {entry.lane.priority.value}, {times}{handled}"


def _timing_line(options: WorkerOptions) -> str:
    return (
        f"lease {duration_text(options.lease_duration)}, renewed every {duration_text(options.renewal_interval)}; "
        f"usable for {options.usable_lease.total_seconds():g} s after a renewal; "
        f"{duration_text(options.cancellation_grace)} to stop, {duration_text(options.cleanup_budget)} to clean up"
    )


def _executor_line(options: ExecutorOptions) -> str:
    """How `runwick-supervise` would keep them: what is limited, what ends an executor, what is measured."""
    limits = [
        f"{name} {bytes_text(limit)}"
        for name, limit in (("soft", options.memory_soft), ("hard", options.memory_hard))
        if limit is not None
    ]
    recycled = []
    if options.recycle_attempts is not None:
        recycled.append(f"after {options.recycle_attempts:,} attempts")
    if options.recycle_age is not None:
        recycled.append(f"after {duration_text(options.recycle_age)}")
    return "; ".join(
        [
            f"memory limit {', '.join(limits) or 'none'}",
            f"recycled {' or '.join(recycled) or 'never'}",
            f"oom_score_adj {options.oom_score_adj}",
            *((f"nice {options.nice}",) if options.nice else ()),
            *(("each on one core",) if options.pin else ()),
            f"allocations {'recorded' if options.record_allocations else 'not recorded'}",
            *(() if options.compiled_part else ("without the compiled part",)),
        ]
    )
