"""The options of one dispatch, checked: where the job goes, when it may start, what it carries along."""

import datetime
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypedDict

import msgspec

from runwick.contracts.attempts import Lane
from runwick.contracts.dispatching import (
    METADATA_MAX_BYTES,
    METADATA_MAX_ENTRIES,
    DispatchOptions,
    DispatchUniqueness,
)
from runwick.contracts.errors import DispatchValidationError
from runwick.contracts.jobs import Unset
from runwick.contracts.names import name_problem
from runwick.contracts.states import Priority, PriorityName
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.declarations.suggestions import did_you_mean, quoted

DELAY_MAX: Final = datetime.timedelta(days=36_500)
"""So that every due time stays a date that Python can show."""

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)

LAST_MS: Final = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // datetime.timedelta(milliseconds=1)
"""The last time that Python can show, in milliseconds since the epoch."""

_NO_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_CONTROL: Final = re.compile("[\x01-\x1f\x7f-\x9f]")


class OptionArguments(TypedDict, total=False):
    """The keyword arguments that change one dispatch; `DispatchOptions` says what they mean."""

    queue: str
    priority: PriorityName
    not_before: datetime.datetime | datetime.timedelta | None
    metadata: Mapping[str, str] | None
    tenant: str | None
    expires_at: datetime.datetime | datetime.timedelta | None
    uniqueness: DispatchUniqueness | None


class When(NamedTuple):
    """A point in time, or a delay from the store's now; at most one of them is given."""

    at_ms: int | None = None
    delay_ms: int | None = None


def lane_for(catalog: Catalog, entry: JobEntry, options: DispatchOptions) -> Lane:
    """Where this dispatch goes.

    Raises:
        DispatchValidationError: ``unknown_queue`` or ``invalid_priority``.
    """
    queue, priority = entry.lane.queue, entry.lane.priority
    if not isinstance(options.queue, Unset):
        queue = options.queue
        if not isinstance(queue, str) or queue not in catalog.queues:
            near = did_you_mean(queue, catalog.queues)
            message = f"queue {quoted(queue)} is used by no job and not declared with rw.queue. {near}"
            raise DispatchValidationError("unknown_queue", message.rstrip())
    if not isinstance(options.priority, Unset):
        try:
            priority = Priority(options.priority)
        except ValueError:
            message = f"priority {quoted(options.priority)} must be high, medium or low"
            raise DispatchValidationError("invalid_priority", message) from None
    return Lane(queue, priority)


def when(name: str, given: datetime.datetime | datetime.timedelta | None, shortest: datetime.timedelta) -> When:
    """A time option in milliseconds, rounded up.

    Args:
        name: the option.
        given: an aware datetime; one that is past means now. Or a delay.
        shortest: the shortest delay that makes sense.

    Raises:
        DispatchValidationError: ``invalid_time``.
    """
    if given is None:
        return When()
    if isinstance(given, datetime.timedelta):
        if not shortest <= given <= DELAY_MAX:
            least = "zero" if not shortest else "a millisecond"
            raise _invalid_time(f"{name} is {given!r}; a delay is from {least} to {DELAY_MAX.days:,} days")
        return When(delay_ms=_milliseconds_up(given))
    if not isinstance(given, datetime.datetime):
        raise _invalid_time(f"{name} is {given!r}; give an aware datetime or a timedelta")
    if given.utcoffset() is None:
        raise _invalid_time(f"{name} is {given.isoformat()} without a time zone; give it one, such as datetime.UTC")
    at_ms = _milliseconds_up(given - _EPOCH)
    if at_ms > LAST_MS:
        raise _invalid_time(f"{name} is {given.isoformat()}, which is after the year 9999 in UTC")
    return When(at_ms=max(0, at_ms))


def check_order(start: When, expiry: When) -> None:
    """Refuse a job that expires before it may start.

    Raises:
        DispatchValidationError: ``invalid_time``.
    """
    for begins, ends in ((start.at_ms, expiry.at_ms), (start.delay_ms, expiry.delay_ms)):
        if begins is not None and ends is not None and ends <= begins:
            raise _invalid_time("expires_at is not after not_before, so the job could never run")


def metadata_bytes(metadata: Mapping[str, str] | None) -> bytes | None:
    """Business metadata as JSON with sorted members; None for none.

    Raises:
        DispatchValidationError: ``invalid_metadata`` or ``invalid_text``.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise _invalid_metadata(f"it is {type(metadata).__name__}, give a mapping of text to text")
    if not metadata:
        return None
    if len(metadata) > METADATA_MAX_ENTRIES:
        raise _invalid_metadata(f"it has {len(metadata)} entries, the limit is {METADATA_MAX_ENTRIES}")
    size = 0
    for key, value in metadata.items():
        if why := name_problem(key):
            raise _invalid_metadata(f"the key {quoted(key)} is not a name: {why}")
        if not isinstance(value, str):
            raise _invalid_metadata(f"the value of {quoted(key)} is {type(value).__name__}, values are text")
        if found := _NO_TEXT.search(value):
            message = f"the metadata value of {quoted(key)} holds U+{ord(found[0]):04X}, which no text can hold"
            raise DispatchValidationError("invalid_text", message)
        if found := _CONTROL.search(value):
            raise _invalid_metadata(f"the value of {quoted(key)} holds the control character U+{ord(found[0]):04X}")
        size += len(key) + len(value.encode())
    if size > METADATA_MAX_BYTES:
        raise _invalid_metadata(f"keys and values have {size:,} bytes of UTF-8, the limit is {METADATA_MAX_BYTES:,}")
    return msgspec.json.encode(dict(metadata), order="sorted")


def checked_tenant(tenant: str | None) -> str | None:
    """The tenant, which is a name.

    Raises:
        DispatchValidationError: ``invalid_name``.
    """
    if tenant is not None and (why := name_problem(tenant)):
        raise DispatchValidationError("invalid_name", f"the tenant {quoted(tenant)} is not a name: {why}")
    return tenant


def _milliseconds_up(duration: datetime.timedelta) -> int:
    return -(-(duration // _MICROSECOND) // 1000)


def _invalid_time(message: str) -> DispatchValidationError:
    return DispatchValidationError("invalid_time", message)


def _invalid_metadata(why: str) -> DispatchValidationError:
    return DispatchValidationError("invalid_metadata", f"metadata: {why}")
