"""Walks: in which order a list meets the jobs that it may show, the latest first and never all of them.

::

    failed, or cancelled ─────────▶ the ends of that kind, from the last one
    reserved, running, retrying ──▶ those that are                       (where they are few)
    live ones ────────────────────▶ the live jobs                        (where they are few, or nothing else helps)
    of tenants ───────────────────▶ the jobs of these tenants, merged
    of queues, or of a type ──────▶ the jobs of these lanes and kinds, merged
    anything else ────────────────▶ all jobs

All but the first go by the jobs' creation, so that one cursor serves whichever of them a page takes. How a job stands
and what else is asked for is looked at by whoever walks.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from runwick.contracts.listing import EXAMINED_MAX, JobFilter, Within
from runwick.contracts.states import LEASED_STATES, TERMINAL_STATES, JobState
from runwick.stores.listing import Narrowed, ended_as, narrowed
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list, json_text
from runwick.stores.steps import Step, Steps

Place = tuple[int, int]
"""Where a list stands, and the job that it meets there."""
Walk = Callable[[int, int], Steps[list[Place]]]
"""The next ones in front of a place, at most so many; fewer mean that there are no more."""

START: Final = 2**63 - 1
"""In front of every place."""
_APART_MS: Final = 60_000
"""So far may the clocks be apart by which two jobs were created one after the other: where a host's was set back, the
later one can say that it is the older."""
_BUSY: Final = LEASED_STATES | {JobState.RETRYING}


def lanes_of(interned: Interned, application: int, queues: Collection[str] | None) -> list[int]:
    """The numbers of an application's lanes; of these queues, unless that is None."""
    return [
        number
        for number, (whose, lane) in interned.lanes.values.items()
        if whose == application and (queues is None or lane.queue in queues)
    ]


def kinds_of(interned: Interned, application: int, name: str | None) -> list[int]:
    """The numbers of an application's kinds; of this name, unless that is None."""
    return [
        number
        for number, (whose, kind) in interned.kinds.values.items()
        if whose == application and name in (None, kind.name)
    ]


def bounds_of(chosen: JobFilter) -> Steps[tuple[int, int]]:
    """At which place a walk may end, and in front of which it may begin, for the times that are asked for."""
    floor, ceiling = 0, START
    if chosen.created_from_ms is not None:
        # An end stands behind its job.
        ((floor,),) = yield Step("list_since", (chosen.created_from_ms - _APART_MS,))
    if chosen.created_until_ms is not None and ended_as(chosen) is None:
        ((ceiling,),) = yield Step("list_since", (chosen.created_until_ms + _APART_MS,))
    return floor, ceiling


def walk_for(interned: Interned, application: int, chosen: JobFilter, within: Within) -> Steps[Walk]:
    """The walk that meets what is asked for soonest."""
    state = ended_as(chosen)
    if state is not None:
        return _ended(application, state)
    where = narrowed(chosen.queue, chosen.tenant, within)
    states = chosen.states
    if states is not None and not states & TERMINAL_STATES:
        live = yield from _live_walk(application, states, where, chosen.name)
        if live is not None:
            return live
    if where.tenants is not None:
        return _tenants(application, sorted(where.tenants))
    if where.queues is None and chosen.name is None and len(interned.applications.ids) == 1:
        return _all
    return (yield from walk_of_runs(interned, application, chosen.name, where.queues))


def walk_of_runs(interned: Interned, application: int, name: str | None, queues: Collection[str] | None) -> Steps[Walk]:
    """The jobs of this type and of these queues; None is any."""
    lanes = lanes_of(interned, application, queues)
    kinds = frozenset(kinds_of(interned, application, name))
    present = yield Step("list_present", (json_list(lanes),))
    return _runs([(lane, kind) for lane, kind in present if kind in kinds])


def _live_walk(application: int, states: frozenset[JobState], where: Narrowed, name: str | None) -> Steps[Walk | None]:
    """The walk over live jobs; None where another one is better."""
    if states <= _BUSY:
        wanted = (bool(states & LEASED_STATES), JobState.RETRYING in states)
        busy = yield Step("list_busy", (application, *wanted, EXAMINED_MAX + 1))
        if len(busy) <= EXAMINED_MAX:
            return _busy(sorted((job for (job,) in busy), reverse=True))
    ((live,),) = yield Step("list_live_count", (EXAMINED_MAX + 1,))
    if live <= EXAMINED_MAX or (where == Narrowed(None, None) and name is None):
        return _live
    return None


def _ended(application: int, state: JobState) -> Walk:
    def walk(below: int, many: int) -> Steps[list[Place]]:
        found: list[Place] = yield Step("list_ended", (application, state.value, below, many))
        return found

    return walk


def _busy(jobs: Sequence[int]) -> Walk:
    def walk(below: int, many: int) -> Steps[list[Place]]:
        yield from ()
        return [(job, job) for job in jobs if job < below][:many]

    return walk


def _live(below: int, many: int) -> Steps[list[Place]]:
    return _places((yield Step("list_live", (below, many))))


def _all(below: int, many: int) -> Steps[list[Place]]:
    return _places((yield Step("list_all", (below, many))))


def _tenants(application: int, tenants: Sequence[str]) -> Walk:
    """Of one alone, nothing has to be merged; so for the next."""
    statement, asked = ("list_tenant", tenants[0]) if len(tenants) == 1 else ("list_tenants", json_text(tenants))

    def walk(below: int, many: int) -> Steps[list[Place]]:
        return _places((yield Step(statement, (application, asked, below, many))))

    return walk


def _runs(runs: Sequence[tuple[int, int]]) -> Walk:
    statement, asked = ("list_run", runs[0]) if len(runs) == 1 else ("list_runs", (json_text(runs),))

    def walk(below: int, many: int) -> Steps[list[Place]]:
        return _places((yield Step(statement, (*asked, below, many))))

    return walk


def _places(rows: Sequence[tuple[int]]) -> list[Place]:
    return [(job, job) for job in sorted((job for (job,) in rows), reverse=True)]
