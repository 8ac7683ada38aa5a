"""The one check of a configuration: every problem at once, as data. It opens no store and starts nothing.

Each function answers for one part and never raises for what it checks; the composition root joins the answers, with
what the declarations and the store say, and `runwick.config.layout` shows them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from runwick.config.bounds import Option, is_comparable, refusals, table
from runwick.config.durations import milliseconds_text
from runwick.config.limits import WEIGHT, limit_refusals
from runwick.config.options import (
    JOB_SETTINGS,
    ExecutorOptions,
    PostgresOptions,
    ProducerOptions,
    RedisOptions,
    SqliteOptions,
    StoreOptions,
    WorkerOptions,
)
from runwick.config.sizes import bytes_text
from runwick.config.timings import broken_rules
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import UNSET, JobSettings
from runwick.contracts.names import name_problem
from runwick.contracts.policies import LaneSelection
from runwick.contracts.states import Priority
from runwick.declarations.pools import Pool
from runwick.declarations.suggestions import did_you_mean, quoted


def check_worker_options(options: WorkerOptions) -> list[Problem]:
    """Everything wrong with a worker's options: each value, then the rules between timings."""
    return [*_value_problems(options), *broken_rules(options)]


def check_executor_options(options: ExecutorOptions) -> list[Problem]:
    """Everything wrong with the options of executors: each value, then the order of the two limits of memory."""
    problems = list(_value_problems(options))
    soft, hard = options.memory_soft, options.memory_hard
    if not problems and soft is not None and hard is not None and soft >= hard:
        sentence = (
            f"memory_soft ({bytes_text(soft)}) must be < memory_hard ({bytes_text(hard)}). "
            "Raise memory_hard, or lower memory_soft."
        )
        problems.append(Problem("invalid_policy", "memory_soft", sentence))
    return problems


def check_store_options(options: StoreOptions) -> list[Problem]:
    """Everything wrong with the options of the stores."""
    return [problem for each in (options.sqlite, options.postgres, options.redis) for problem in _value_problems(each)]


def check_producer_options(options: ProducerOptions) -> list[Problem]:
    """Everything wrong with a producer's options."""
    return list(_value_problems(options))


def _value_problems(
    options: WorkerOptions | ExecutorOptions | SqliteOptions | PostgresOptions | RedisOptions | ProducerOptions,
) -> Iterator[Problem]:
    for name, option in table(type(options)).items():
        for sentence in refusals(name, getattr(options, name), option):
            yield Problem(option.code, name, sentence)


def check_job_settings(where: str, settings: JobSettings) -> list[Problem]:
    """Everything wrong with one layer of a job's settings.

    Args:
        where: what carries the settings, as the user would name it: ``job "image.thumbnail"``, ``job_defaults``.
        settings: the layer; what it does not give is not checked.
    """
    return list(_job_problems(where, settings))


def _job_problems(where: str, settings: JobSettings) -> Iterator[Problem]:
    if settings.queue is not UNSET and (why := name_problem(settings.queue)):
        yield Problem("invalid_name", where, f"queue {quoted(settings.queue)} is not a name: {why}.")
    if settings.priority is not UNSET and settings.priority not in list(Priority):
        yield Problem("invalid_priority", where, f"priority {quoted(settings.priority)} must be high, medium or low.")
    if settings.error_detail is not UNSET and settings.error_detail not in ("full", "message"):
        sentence = f'error_detail ({quoted(settings.error_detail)}) must be "full" or "message".'
        yield Problem("invalid_policy", where, sentence)
    for name, option in JOB_SETTINGS.items():
        value = getattr(settings, name)
        if value is UNSET:
            continue
        sentences = _delay_refusals(name, value, option) if name.endswith("_delay") else refusals(name, value, option)
        for sentence in sentences:
            yield Problem(option.code, where, sentence)
    for sentence in limit_refusals(settings):
        yield Problem("invalid_policy", where, sentence)


def _delay_refusals(name: str, value: Any, option: Option) -> Iterator[str]:
    """Both ends of an (initial, maximum) pair, then their order."""
    if not isinstance(value, tuple) or len(value) != 2:
        yield f"{name} ({value!r}) must be a pair of timedelta, (initial, maximum)."
        return
    initial, maximum = value
    yield from refusals(f"{name} initial", initial, option)
    yield from refusals(f"{name} maximum", maximum, option)
    if is_comparable(initial, option) and is_comparable(maximum, option) and initial > maximum:
        yield (
            f"{name} initial ({milliseconds_text(initial)}) must be ≤ its maximum ({milliseconds_text(maximum)}). "
            "Raise the maximum, or lower the initial delay."
        )


def check_pools(pools: Sequence[Pool], queues_known: Collection[str], max_outstanding: int) -> list[Problem]:
    """Everything wrong with a worker's pools.

    Args:
        pools: the pools declared; none means the one pool ``main`` on every known queue.
        queues_known: queues that a registered job uses or that were declared.
        max_outstanding: most attempts that the worker may run at once (`WorkerOptions.max_outstanding_attempts`).
    """
    problems = [problem for pool in pools for problem in _pool_problems(pool, queues_known)]
    for name, times in Counter(pool.name for pool in pools if isinstance(pool.name, str)).items():
        if times > 1:
            problems.append(_of_pool(name, f"is declared {times} times. Give each pool a name of its own."))
    sizes = [pool.concurrency for pool in pools]
    if all(_is_size(size) for size in (*sizes, max_outstanding)) and sum(sizes) > max_outstanding:
        listed = ", ".join(f"{pool.name} {pool.concurrency}" for pool in pools)
        problems.append(
            Problem(
                "pool_budget_exceeded",
                "pools",
                f"concurrency adds up to {sum(sizes)} ({listed}), must be ≤ max_outstanding_attempts "
                f"({max_outstanding}). Raise max_outstanding_attempts to at least {sum(sizes)}, or shrink the pools.",
            )
        )
    return problems


def _pool_problems(pool: Pool, queues_known: Collection[str]) -> Iterator[Problem]:
    if why := name_problem(pool.name):
        yield Problem("invalid_name", _pool_setting(pool.name), f"is not a name: {why}.")
    if not _is_size(pool.concurrency):
        yield _of_pool(pool.name, f"has concurrency {pool.concurrency!r}; it must be a whole number from 1.")
    for sentence in _share_refusals(pool):
        yield Problem("invalid_pool", _pool_setting(pool.name), sentence)
    if pool.queues is None:
        if not queues_known:
            yield _of_pool(pool.name, _NO_QUEUE, "pool_without_queue")
        return
    if not isinstance(pool.queues, tuple | list) or not all(isinstance(queue, str) for queue in pool.queues):
        yield _of_pool(pool.name, f"has queues {pool.queues!r}; they must be a tuple of names, or names with weights.")
        return
    if not pool.queues:
        yield _of_pool(pool.name, _NO_QUEUE, "pool_without_queue")
    for queue, times in Counter(pool.queues).items():
        if times > 1:
            yield _of_pool(pool.name, f"subscribes to queue {quoted(queue)} {times} times. Name each queue once.")
        if queue not in queues_known:
            yield _of_pool(
                pool.name,
                f"subscribes to queue {quoted(queue)}, which no job uses and nothing declares. "
                f"{did_you_mean(queue, queues_known) or f'Declare it with rw.queue({quoted(queue)}).'}",
            )


def _share_refusals(pool: Pool) -> Iterator[str]:
    """How its lanes and queues share its slots."""
    for queue, weight in pool.weights:
        yield from refusals(f"weight of queue {quoted(queue)}", weight, WEIGHT)
    if not isinstance(pool.lane_weights, tuple) or len(pool.lane_weights) != len(Priority):
        yield f"lane_weights ({pool.lane_weights!r}) must be three whole numbers: (high, medium, low)."
    else:
        for priority, weight in zip(Priority, pool.lane_weights, strict=True):
            yield from refusals(f"lane weight {priority.value}", weight, WEIGHT)
    if not isinstance(pool.lane_selection, LaneSelection):
        known = ", ".join(f"LaneSelection.{each.name}" for each in LaneSelection)
        yield f"lane_selection ({pool.lane_selection!r}) must be one of {known}."


_NO_QUEUE = "subscribes to no queue. Give it at least one queue that a job uses or rw.queue declares."


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _of_pool(name: str, sentence: str, code: str = "invalid_pool") -> Problem:
    return Problem(code, _pool_setting(name), f"{_pool_setting(name)} {sentence}")


def _pool_setting(name: object) -> str:
    return f"pool {quoted(name)}"
