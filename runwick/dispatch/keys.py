"""The keys of one job: what its selectors and its dispatch say, checked. A dispatch calls each selector once."""

import datetime
import re
from typing import Final, NamedTuple

from runwick.contracts.dispatching import UNIQUE_WINDOW_MAX_MS, DispatchUniqueness
from runwick.contracts.errors import DispatchValidationError
from runwick.contracts.jobs import Job
from runwick.contracts.limits import KEY_MAX_BYTES, Selector
from runwick.declarations.catalog import JobEntry
from runwick.declarations.limits import UNLIMITED
from runwick.declarations.suggestions import quoted

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_WINDOW_MAX: Final = UNIQUE_WINDOW_MAX_MS * _MILLISECOND
_NO_TEXT: Final = re.compile("[\ud800-\udfff]")
_CONTROL: Final = re.compile("[\0-\x1f\x7f-\x9f]")
_SAID_MAX_CHARACTERS: Final = 200


class Keys(NamedTuple):
    """By which one job is unique; None where it is not."""

    active_key: str | None = None
    window_key: str | None = None
    window_ms: int | None = None


NO_KEYS: Final = Keys()


def keys_of(entry: JobEntry, job: Job, given: DispatchUniqueness | None) -> Keys:
    """The keys that the job declares, or that this dispatch gives it.

    Raises:
        DispatchValidationError: ``uniqueness_required``, ``uniqueness_key_mismatch``, ``key_selector_failed``,
            ``invalid_key``, ``invalid_time`` or ``invalid_argument``.
    """
    if given is None and entry.limits == UNLIMITED:
        return NO_KEYS
    active_key, window_key, window_ms = _given(given)
    if (selector := entry.limits.unique_while_active) is not None:
        declared = _declared_key("active key", selector, job)
        active_key = _agreed("active key", declared, active_key)
    if (unique := entry.limits.unique_within_window) is not None:
        declared = _declared_key("window key", unique.selector, job)
        window_key = _agreed("window key", declared, window_key)
        declared_ms = unique.window // _MILLISECOND
        if window_ms is not None and window_ms != declared_ms:
            message = f"the dispatch gives a window of {window_ms:,} ms, the job declares {declared_ms:,} ms"
            raise DispatchValidationError("uniqueness_key_mismatch", message)
        window_ms = declared_ms
    return Keys(active_key, window_key, window_ms)


def check_start(keys: Keys, delay_ms: int | None) -> None:
    """Refuse a window key whose request can never come again as it was, for the start is part of it.

    Raises:
        DispatchValidationError: ``invalid_time``.
    """
    if keys.window_key is not None and delay_ms is not None:
        raise _invalid_time(
            "not_before is a delay, which is another request each time; a window key takes a point in time"
        )


def selected(what: str, selector: Selector, job: Job) -> object:
    """What a selector says: foreign code, which may say anything.

    Args:
        what: which key it gives, for messages.

    Raises:
        DispatchValidationError: ``key_selector_failed``.
    """
    try:
        return selector(job)
    except Exception as error:
        message = f"the selector of the {what} raised {_said(error)}"
        raise DispatchValidationError("key_selector_failed", message) from error


def checked_key(what: str, key: object) -> str:
    """A key as it is stored.

    Args:
        what: which one it is, for messages.
        key: what was given.

    Raises:
        DispatchValidationError: ``invalid_key``.
    """
    if not isinstance(key, str):
        raise _invalid_key(f"the {what} is {type(key).__name__}, keys are text")
    key = str.__str__(key)  # of an enum of text its value
    if not key:
        raise _invalid_key(f"the {what} is empty")
    if found := _NO_TEXT.search(key):
        raise _invalid_key(f"the {what} holds U+{ord(found[0]):04X}, which no text can hold")
    if found := _CONTROL.search(key):
        raise _invalid_key(f"the {what} {quoted(key)} holds the control character U+{ord(found[0]):04X}")
    if (size := len(key.encode())) > KEY_MAX_BYTES:
        raise _invalid_key(f"the {what} has {size:,} bytes of UTF-8, the limit is {KEY_MAX_BYTES}")
    return key


def _given(given: DispatchUniqueness | None) -> Keys:
    """What the dispatch says, checked."""
    if given is None:
        return Keys()
    if not isinstance(given, DispatchUniqueness):
        message = f"uniqueness is {given!r}; give DispatchUniqueness(…) or None"
        raise DispatchValidationError("invalid_argument", message)
    active_key = None if given.active_key is None else checked_key("active key", given.active_key)
    window_key = None if given.window_key is None else checked_key("window key", given.window_key)
    if (window_key is None) != (given.window is None):
        missing = "window_key" if window_key is None else "window"
        raise _invalid_time(f"a window key and its window go together; {missing} is missing")
    return Keys(active_key, window_key, None if given.window is None else _window_ms(given.window))


def _window_ms(window: object) -> int:
    if not isinstance(window, datetime.timedelta) or not _MILLISECOND <= window <= _WINDOW_MAX:
        raise _invalid_time(f"window is {window!r}; it is a timedelta from a millisecond to {_WINDOW_MAX.days:,} days")
    if window % _MILLISECOND:
        raise _invalid_time(f"window is {window!r}; it is a whole number of milliseconds")
    return window // _MILLISECOND


def _declared_key(what: str, selector: Selector, job: Job) -> str:
    key = selected(what, selector, job)
    if key is None:
        message = f"the selector of the {what} gave None; every dispatch of this job needs one"
        raise DispatchValidationError("uniqueness_required", message)
    return checked_key(what, key)


def _agreed(what: str, declared: str, given: str | None) -> str:
    if given is not None and given != declared:
        message = f"the dispatch gives the {what} {quoted(given)}, the job declares {quoted(declared)}"
        raise DispatchValidationError("uniqueness_key_mismatch", message)
    return declared


def _said(error: Exception) -> str:
    try:
        said = str(error)[:_SAID_MAX_CHARACTERS]
    except Exception:  # it is foreign as well
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _invalid_key(message: str) -> DispatchValidationError:
    return DispatchValidationError("invalid_key", message)


def _invalid_time(message: str) -> DispatchValidationError:
    return DispatchValidationError("invalid_time", message)
