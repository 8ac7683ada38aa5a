"""Lists of jobs, from the latest on, page by page.

A page walks where the filter finds most, and looks at so many rows and no more::

    one end state, not success ──▶ its closings                 by the end
    one tenant, one type, one queue ──▶ their own indexes       by the creation
    held, or live ──▶ the claims, or the live jobs              by the id, which is made as the job is asked for
    anything else ──▶ all jobs
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from runwick.contracts.listing import EXAMINED_MAX, JobFilter, JobPage, JobSummary, Within
from runwick.contracts.states import LEASED_STATES, TERMINAL_STATES, JobState
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.listing import Walk, ended_as, narrowed
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.postgres.pages import page
from runwick.stores.postgres.sight import KINDS_WALKED, Sight, look
from runwick.stores.steps import Step, Steps

_LANES_MAX: Final = 6
_TENANTS_MAX: Final = 3
"""So many of each, and of kinds `KINDS_WALKED`, ``jobs_of.sql`` walks at once; of more, all jobs are walked."""
_DIGITS_MAX: Final = 39
"""Of an id."""
_POSITIONS_END: Final = 1 << 62
_IDS_END: Final = (1 << 128) - 1
_START_MS: Final = -(1 << 62)
_END_MS: Final = 1 << 62


class _Where(NamedTuple):
    """One walk."""

    statement: str
    parameters: tuple[packed.Packed, ...] = ()
    """Behind the place."""
    by_id: bool = False
    """Places are ids, and otherwise positions."""


def jobs(
    bound: Bound, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int
) -> Act[JobPage]:
    """Up to `limit` jobs behind that cursor, the latest first.

    Raises (when run):
        InvalidArgument: it is no cursor of this list (code ``invalid_argument``).
    """
    return Act("jobs", lambda: _jobs(bound, application, chosen, within, after, limit), reads_only=True)


def _jobs(
    bound: Bound, application: str, chosen: JobFilter, within: Within, after: str | None, limit: int
) -> Steps[JobPage]:
    walk = Walk(bound.store_id, chosen)
    behind = None if after is None else walk.place(after, _DIGITS_MAX)
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return JobPage([], None)
    sight, kinds = yield from look(bound, number, chosen.queue, chosen.name, within)
    if sight.nothing or chosen.states == frozenset() or (chosen.name is not None and not kinds):
        return JobPage([], None)
    where = _where(chosen, within, sight, kinds)
    rows: Sequence[tuple[Any, ...]] = yield Step(
        where.statement,
        (
            *bound.reading(),
            packed.number(number),
            *sight.columns(),
            *_wishes(chosen, kinds),
            packed.number(limit + 1),
            packed.number(EXAMINED_MAX),
            _place(where, behind, after),
            *where.parameters,
        ),
    )
    found, place = page(rows, limit)
    yield from bound.names.read((row[3] for row in found), (row[4] for row in found), (row[5] for row in found))
    jobs = [_summary(bound, *row[2:]) for row in found]
    if place is None:
        return JobPage(jobs, None)
    return JobPage(jobs, walk.cursor(int.from_bytes(place) if where.by_id else place))


def _where(chosen: JobFilter, within: Within, sight: Sight, kinds: Sequence[int]) -> _Where:
    """Where to walk."""
    if (state := ended_as(chosen)) is not None:
        return _Where("jobs_ended", (packed.text(state.value),))
    if chosen.states is not None and chosen.states <= LEASED_STATES:
        return _Where("jobs_leased", by_id=True)
    if chosen.states is not None and not chosen.states & TERMINAL_STATES:
        return _Where("jobs_live", by_id=True)
    tenants = narrowed(chosen.queue, chosen.tenant, within).tenants
    if tenants is not None and len(tenants) <= _TENANTS_MAX:
        return _of(tenants=sorted(tenants))
    if chosen.name is not None and len(kinds) <= KINDS_WALKED:
        return _of(kinds=kinds)
    if not sight.everything and len(sight.all_lanes) <= _LANES_MAX:
        return _of(lanes=sorted(sight.all_lanes))
    return _Where("jobs", by_id=True)


def _of(lanes: Sequence[int] = (), kinds: Sequence[int] = (), tenants: Sequence[str] = ()) -> _Where:
    return _Where("jobs_of", (packed.numbers(lanes), packed.numbers(kinds), packed.texts(tenants)))


def _wishes(chosen: JobFilter, kinds: Sequence[int]) -> tuple[packed.Packed, ...]:
    """$10 to $15 of the statements."""
    return (
        packed.numbers(kinds),
        packed.texts([] if chosen.tenant is None else [chosen.tenant]),
        packed.texts(sorted(chosen.states or ())),
        packed.texts([] if chosen.code is None else [chosen.code]),
        packed.number(_START_MS if chosen.created_from_ms is None else chosen.created_from_ms),
        packed.number(_END_MS if chosen.created_until_ms is None else chosen.created_until_ms),
    )


def _place(where: _Where, behind: int | None, after: str | None) -> packed.Packed:
    """In front of which place to begin.

    Raises:
        InvalidArgument: it is one of another walk.
    """
    end = _IDS_END if where.by_id else _POSITIONS_END
    if behind is None:
        behind = end
    elif behind > end or where.by_id != (behind > _POSITIONS_END):
        raise refusals.no_cursor(str(after))
    return packed.Id(behind.to_bytes(16)) if where.by_id else packed.number(behind)


def _summary(
    bound: Bound,
    job_id: bytes,
    lane: int,
    kind: int,
    policy: int,
    created_at_ms: int,
    tenant: str | None,
    payload_bytes: int,
    state: str,
    code: str | None,
    generation: int,
    revision: int,
    executions: int,
    due_at_ms: int | None,
    begun_at_ms: int | None,
    ended_at_ms: int | None,
    cancel_requested_at_ms: int | None,
) -> JobSummary:
    names = bound.names
    return JobSummary(
        job_id=job_id,
        kind=names.kind_of[kind],
        lane=names.lane_of[lane],
        state=JobState(state),
        code=code,
        generation=generation,
        revision=revision,
        executions=executions,
        max_executions=names.policy_of[policy].max_executions,
        created_at_ms=created_at_ms,
        due_at_ms=due_at_ms,
        begun_at_ms=begun_at_ms,
        ended_at_ms=ended_at_ms,
        cancel_requested_at_ms=cancel_requested_at_ms,
        tenant=tenant,
        payload_bytes=payload_bytes,
    )
