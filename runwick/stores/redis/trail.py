"""The audit trail as it is read: page by page in the order of the commits, and as a list, the latest first.

A row's place is the write that it was a part of, and which of that write's rows it was. Rows are written by the acts
that they tell of; see `lua/trail.lua`.
"""

from typing import Final

import msgspec

from runwick.contracts.history import AuditPage, AuditRecord
from runwick.contracts.listing import AuditFilter, AuditList
from runwick.contracts.stores import Act
from runwick.stores import listing, refusals
from runwick.stores.cursors import cursor_at
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.met import Met, identity
from runwick.stores.redis.places import START, Place


class _Row(msgspec.Struct, frozen=True, array_like=True):
    write: int
    index: int
    at_ms: int
    actor: str
    actor_display: str | None
    actor_scheme: str | None
    action: str
    job_id: bytes | None
    generation: int | None
    before: str | None
    after: str | None
    reason: str | None
    command_id: bytes | None
    target: str | None

    def record(self, store_id: bytes) -> AuditRecord:
        return AuditRecord(
            cursor=cursor_at(store_id, Place(self.write, self.index)),
            at_ms=self.at_ms,
            actor=self.actor,
            actor_display=self.actor_display,
            actor_scheme=self.actor_scheme,
            action=self.action,
            job_id=self.job_id,
            generation=self.generation,
            before=self.before,
            after=self.after,
            reason=self.reason,
            command_id=self.command_id,
            target=self.target,
        )


_page: Final = msgspec.msgpack.Decoder(tuple[bool, list[_Row], Place]).decode
_list: Final = msgspec.msgpack.Decoder(tuple[list[_Row], Place | None]).decode


def audit(met: Met, application: str, after: str | None, limit: int) -> Act[AuditPage]:
    """What operators did behind that cursor, at most `limit` records."""
    return Act("audit", lambda: _audit(met, application, after, limit), reads_only=True)


def _audit(met: Met, application: str, after: str | None, limit: int) -> Calls[AuditPage]:
    store_id = yield from identity(met, application)
    start = START if after is None else Place.of(store_id, after)
    is_known, rows, place = _page((yield Call("audit", application, packed.arguments(start, limit))))
    if not is_known:
        raise refusals.no_cursor(str(after))
    return AuditPage([row.record(store_id) for row in rows], cursor_at(store_id, place), len(rows) == limit)


def audited(met: Met, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Act[AuditList]:
    """Up to `limit` records of the audit trail behind that cursor, the latest first."""
    return Act("audited", lambda: _audited(met, application, chosen, after, limit), reads_only=True)


def _audited(met: Met, application: str, chosen: AuditFilter, after: str | None, limit: int) -> Calls[AuditList]:
    store_id = yield from identity(met, application)
    walk = listing.Walk(store_id, chosen)
    start = None if after is None else Place.at(walk.place(after))
    asked = [
        chosen.action,
        chosen.actor,
        packed.optional_binary(chosen.job_id),
        chosen.target,
        chosen.at_from_ms,
        chosen.at_until_ms,
    ]
    rows, following = _list((yield Call("audited", application, packed.arguments(start, limit, asked))))
    cursor = None if following is None else walk.cursor(following.number)
    return AuditList([row.record(store_id) for row in rows], cursor)
