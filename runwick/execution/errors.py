"""Makes whatever a handler raises storable: text and nothing but text, valid UTF-8, without NUL, cut with a mark.

Storing an error must never fail the settlement that carries it, and an exception is foreign code: its ``__str__`` may
raise, answer a gigabyte or an odd kind of string, its class may have any name, its frames may be a thousand. Nothing
of the exception itself leaves this module, so it never has to be pickled or built again.
"""

import re
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Final

from runwick.contracts.outcomes import ERROR_TEXT_MAX_BYTES, ErrorDetail

MESSAGE_MAX_BYTES: Final = 1024
BRIEF_MAX_CHARACTERS: Final = 1000
TYPE_MAX_BYTES: Final = 512
_TEXT_HEAD_SHARE: Final = 0.25
"""What a cut traceback keeps of its head; the longer tail says where the error was raised and what it was."""
_MARK_MAX_BYTES: Final = 64

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def detail_of(error: BaseException, closing: Sequence[BaseException] = (), message: str | None = None) -> ErrorDetail:
    """Describe `error`, and after it what providers raised when they were closed after it. Never raises.

    Args:
        error: what was raised.
        closing: what came after it.
        message: what it says, where that is not its text.
    """
    return ErrorDetail(
        type=type_of(error),
        message=message_of(error) if message is None else message,
        text=_stored_text(_traceback_text(error) + _closing_text(closing)),
    )


def detail_of_answer(name: str, says: object, closing: Sequence[BaseException] = ()) -> ErrorDetail:
    """Describe what was answered, not raised: there is no traceback but of what closing providers raised. Never raises.

    Args:
        name: what kind of answer it is.
        says: its text.
        closing: what came after it.
    """
    return ErrorDetail(type=name, message=message_of(says), text=_stored_text(_closing_text(closing).lstrip()))


def brief_detail_of(name: str, says: object) -> ErrorDetail:
    """What it `says`, in at most 1,000 characters; no traceback. Never raises.

    Args:
        name: of the error's type, or of the answer.
        says: the error, or its text.
    """
    message = str.__str__(_text_of(says))
    if len(message) > BRIEF_MAX_CHARACTERS:
        message = f"{message[: BRIEF_MAX_CHARACTERS - 1]}…"
    return ErrorDetail(type=name, message=_UNSTORABLE.sub(_REPLACEMENT, message))


def type_of(error: BaseException) -> str:
    """The qualified name of its type: storable. Never raises."""
    return storable(_type_name(error), TYPE_MAX_BYTES)


def message_of(value: object) -> str:
    """What `value` says, for people: storable and at most 1,024 bytes. Never raises."""
    return storable(_text_of(value), MESSAGE_MAX_BYTES)


def storable(text: str, max_bytes: int, *, head_share: float = 1.0) -> str:
    """`text` as UTF-8 of at most `max_bytes`, NUL and lone surrogates replaced by U+FFFD.

    What is left out is marked where it is missing: behind `head_share` of what is kept.
    """
    text = str.__str__(text)  # the plain string inside a subclass
    if len(text) <= max_bytes:
        whole = _UNSTORABLE.sub(_REPLACEMENT, text)
        if len(whole.encode()) <= max_bytes:
            return whole
    kept_bytes = max_bytes - _MARK_MAX_BYTES
    head_bytes = int(kept_bytes * head_share)
    tail_bytes = kept_bytes - head_bytes
    # A character takes a byte or more, so these slices hold enough; the text itself may be huge.
    head = _UNSTORABLE.sub(_REPLACEMENT, text[:head_bytes]).encode()[:head_bytes].decode(errors="ignore")
    tail = _UNSTORABLE.sub(_REPLACEMENT, text[len(text) - tail_bytes :]).encode()
    tail_text = tail[len(tail) - tail_bytes :].decode(errors="ignore")
    left_out = len(text) - len(head) - len(tail_text)
    mark = f"[… {left_out:,} characters left out …]"
    return f"{head}\n{mark}\n{tail_text}" if tail_text else f"{head} {mark}"


def _closing_text(closing: Sequence[BaseException]) -> str:
    return "".join(f"\nWhile a provider was closed after that:\n\n{_traceback_text(other)}" for other in closing)


def _stored_text(text: str) -> str:
    return storable(text, ERROR_TEXT_MAX_BYTES, head_share=_TEXT_HEAD_SHARE)


def _traceback_text(error: BaseException) -> str:
    try:
        told = traceback.TracebackException(type(error), error, _without_our_frames(error.__traceback__), compact=True)
        return "".join(told.format())
    except BaseException as broken:
        return f"{_type_name(error)}: no traceback, formatting it raised {_type_name(broken)}\n"


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is not ours; errors of our own keep no frame at all."""
    while trace is not None and _is_ours(trace.tb_frame.f_globals.get("__name__")):
        trace = trace.tb_next
    return trace


def _is_ours(module: object) -> bool:
    # Providers are opened through contextlib, and what they raise on another thread comes through a future.
    return module in ("contextlib", "concurrent.futures._base") or (
        isinstance(module, str) and module.startswith("runwick.")
    )


def _text_of(value: object) -> str:
    try:
        return str(value)
    except BaseException as broken:
        return f"(no text: its __str__ raised {_type_name(broken)})"


def _type_name(error: BaseException) -> str:
    cls = type(error)
    try:
        module, name = cls.__module__, cls.__qualname__
        return name if module == "builtins" else f"{module}.{name}"
    except BaseException:
        return "(exception without a name)"
