"""The audit trail, from the latest on, page by page."""

from collections.abc import Sequence
from typing import Any, Final

from runwick.contracts.history import AuditRecord
from runwick.contracts.listing import EXAMINED_MAX, AuditFilter, AuditList
from runwick.contracts.stores import Act
from runwick.stores.cursors import cursor_at
from runwick.stores.listing import Walk
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.postgres.pages import page
from runwick.stores.steps import Step, Steps

_END: Final = 1 << 62


def audited(bound: Bound, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
    """Up to `limit` records behind that cursor, the latest first.

    Raises (when run):
        InvalidArgument: it is no cursor of this list (code ``invalid_argument``).
    """
    return Act("audited", lambda: _audited(bound, application, chosen, after, limit), reads_only=True)


def _audited(bound: Bound, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Steps[AuditList]:
    walk = Walk(bound.store_id, chosen)
    behind = _END if after is None else walk.place(after)
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return AuditList([], None)
    rows: Sequence[tuple[Any, ...]] = yield Step(
        "audited",
        (
            *bound.reading(),
            packed.number(number),
            packed.number(behind),
            None if chosen.job_id is None else packed.Id(chosen.job_id),
            chosen.action,
            chosen.actor,
            chosen.target,
            packed.number(-_END if chosen.at_from_ms is None else chosen.at_from_ms),
            packed.number(_END if chosen.at_until_ms is None else chosen.at_until_ms),
            packed.number(limit + 1),
            packed.number(EXAMINED_MAX),
        ),
    )
    found, place = page(rows, limit)
    records = [_record(bound.store_id, *row) for row in found]
    return AuditList(records, None if place is None else walk.cursor(place))


def _record(store_id: bytes, position: int, chosen: bool, xid: int, *columns: Any) -> AuditRecord:
    names = AuditRecord.__struct_fields__[1:]
    return AuditRecord(cursor=cursor_at(store_id, f"{xid}.{position}"), **dict(zip(names, columns, strict=True)))
