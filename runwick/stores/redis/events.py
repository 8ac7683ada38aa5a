"""Events: what happened to jobs, page by page in the order of the commits.

One act tells all that it did in one entry, written with the rest of its changes. Acts come one after the other, so
nothing is ever committed in front of what was read.
"""

from typing import Final

import msgspec

from runwick.contracts.history import EventKind, EventPage, JobEvent
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.stores import Act
from runwick.stores import refusals
from runwick.stores.cursors import cursor_at
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.met import Met, identity
from runwick.stores.redis.places import START, Place

_WHATS: Final = tuple(EventKind)
_OUTCOMES: Final = tuple(OutcomeKind)


class _Event(msgspec.Struct, frozen=True, array_like=True):
    write: int
    index: int
    what: int
    job_id: bytes
    kind: int
    lane: int
    generation: int
    at_ms: int
    number: int | None
    ended: int | str | None
    """How it ended, an attempt's outcome or a job's state; or which control it was."""
    code: int | None
    attempt_id: bytes | None
    command_id: bytes | None

    def event(self, store_id: bytes, legend: packed.Legend) -> JobEvent:
        what = _WHATS[self.what]
        return JobEvent(
            cursor=cursor_at(store_id, Place(self.write, self.index)),
            what=what,
            job_id=self.job_id,
            kind=legend.kind(self.kind),
            lane=legend.lane(self.lane),
            generation=self.generation,
            at_ms=self.at_ms,
            number=self.number,
            state=_state(what, self.ended),
            code=legend.code(self.code),
            attempt_id=self.attempt_id,
            command_id=self.command_id,
        )


_page: Final = msgspec.msgpack.Decoder(tuple[bool, bool, list[_Event], Place, packed.LegendRows]).decode


def _state(what: EventKind, ended: int | str | None) -> str | None:
    if not isinstance(ended, int):
        return ended
    return _OUTCOMES[ended].value if what is EventKind.ATTEMPT_ENDED else packed.STATES[ended].value


def events(met: Met, application: str, after: str | None, limit: int) -> Act[EventPage]:
    """What was committed behind that cursor, at most `limit` events."""
    return Act("events", lambda: _events(met, application, after, limit), reads_only=True)


def _events(met: Met, application: str, after: str | None, limit: int) -> Calls[EventPage]:
    store_id = yield from identity(met, application)
    start = START if after is None else Place.of(store_id, after)
    page = yield Call("events", application, packed.arguments(start, limit))
    is_known, more, told, place, legend_rows = _page(page)
    if not is_known:
        raise refusals.no_cursor(str(after))
    legend = packed.Legend(legend_rows)
    found = [event.event(store_id, legend) for event in told]
    return EventPage(found, cursor_at(store_id, place), more)
