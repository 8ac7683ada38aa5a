"""What one job needs to run: the limits of its queue, of its type, and of the resources that its selectors name."""

import datetime
from collections.abc import Iterable
from typing import Final, NamedTuple

from runwick.contracts.errors import DispatchValidationError
from runwick.contracts.jobs import Job
from runwick.contracts.limits import RATES_MAX, SCOPES_MAX, LimitKind, RateNeed, ScopeNeed, Selector
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.declarations.limits import UNLIMITED
from runwick.dispatch.keys import checked_key, selected

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


class Needs(NamedTuple):
    """What one job needs to run, each limit once, in the order of the declaration."""

    scopes: tuple[ScopeNeed, ...] = ()
    rates: tuple[RateNeed, ...] = ()


NO_NEEDS: Final = Needs()


def needs_of(catalog: Catalog, entry: JobEntry, job: Job, queue: str) -> Needs:
    """What the job needs in the queue where it goes. Of two limits with one key the lower one counts.

    Raises:
        DispatchValidationError: ``key_selector_failed``, ``invalid_key`` or ``too_many_scopes``.
    """
    limits, name = entry.limits, entry.kind.name
    capacity = catalog.queue_limits.get(queue)
    if capacity is None and limits == UNLIMITED:
        return NO_NEEDS
    scopes = []
    if capacity is not None:
        scopes.append(ScopeNeed(LimitKind.QUEUE, queue, capacity))
    if limits.max_concurrent is not None:
        scopes.append(ScopeNeed(LimitKind.JOB_TYPE, name, limits.max_concurrent))
    for each in limits.per_resource:
        key = _resource_key("per_resource", each.selector, job)
        scopes.append(ScopeNeed(LimitKind.RESOURCE, key, each.capacity))
    rates = []
    if (rolling := limits.rolling_window) is not None:
        rates.append(RateNeed(LimitKind.JOB_TYPE, name, rolling.max_executions, rolling.window // _MILLISECOND))
    for window in limits.rolling_window_per_resource:
        key = _resource_key("rolling_window_per_resource", window.selector, job)
        rates.append(RateNeed(LimitKind.RESOURCE, key, window.max_executions, window.window // _MILLISECOND))
    needs = Needs(_lowest_scopes(scopes), _lowest_rates(rates))
    check_number(needs)
    return needs


def check_number(needs: Needs) -> None:
    """Refuse a job with more limits than a claim judges.

    Raises:
        DispatchValidationError: ``too_many_scopes``.
    """
    for limits, most, what in (
        (needs.scopes, SCOPES_MAX, "concurrency limits"),
        (needs.rates, RATES_MAX, "rate windows"),
    ):
        if len(limits) > most:
            message = f"the job needs {len(limits)} {what} in all, the limit is {most}"
            raise DispatchValidationError("too_many_scopes", message)


def _resource_key(setting: str, selector: Selector, job: Job) -> str:
    what = f"resource key of {setting}"
    return checked_key(what, selected(what, selector, job))


def _lowest_scopes(scopes: Iterable[ScopeNeed]) -> tuple[ScopeNeed, ...]:
    found: dict[tuple[LimitKind, str], ScopeNeed] = {}
    for each in scopes:
        first = found.setdefault((each.kind, each.key), each)
        if each.capacity < first.capacity:
            found[each.kind, each.key] = each
    return tuple(found.values())


def _lowest_rates(rates: Iterable[RateNeed]) -> tuple[RateNeed, ...]:
    found: dict[tuple[LimitKind, str, int], RateNeed] = {}
    for each in rates:
        first = found.setdefault((each.kind, each.key, each.window_ms), each)
        if each.max_executions < first.max_executions:
            found[each.kind, each.key, each.window_ms] = each
    return tuple(found.values())
