"""What a request says: its query and its body, checked and as the types that a route names.

Nothing unknown is passed over: a parameter or member that a type does not have is refused by name, and so is one that
is given twice. A body is JSON, or a form where a page posts it.
"""

import asyncio
import functools
import types
import unicodedata
from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from runwick.contracts.errors import InvalidArgument
from runwick.management.web.refusals import Refusal
from runwick.wire.strict import decode_strict, fault_of

BODY_MAX_BYTES: Final = 1024 * 1024
ARRIVAL_S: Final = 10.0
"""By then a body must have come, counted from when it is first waited for."""
HEADERS_MAX: Final = 100
FIELDS_MAX: Final = 1_000
"""Of a query or a form."""

FORM: Final = "application/x-www-form-urlencoded"
JSON: Final = "application/json"

T = TypeVar("T", bound=msgspec.Struct)


class NoQuery(msgspec.Struct, frozen=True):
    """Of a route that takes no parameters."""


def check_headers(request: Request) -> None:
    """Go on if there are no more than somebody could mean.

    Raises:
        Refusal: there are.
    """
    if (number := len(request.scope["headers"])) > HEADERS_MAX:
        raise Refusal(400, "invalid_argument", f"a request may have {HEADERS_MAX} headers, this has {number:,}")


def read_query(request: Request, type: type[T], *, blank_is_absent: bool = False) -> T:  # noqa: A002
    """The query as its type.

    Args:
        request: whose.
        type: a struct; its lists take a parameter as often as it is given.
        blank_is_absent: a parameter without a value is none, as forms send those that are left empty.

    Raises:
        InvalidArgument: a parameter is unknown, given twice, or its value does not fit.
    """
    pairs = request.query_params.multi_items()
    return _converted(pairs, type, "parameter", blank_is_absent=blank_is_absent)


async def read_body(request: Request, accepted: frozenset[str], arrival_s: float) -> bytes:
    """The bytes of a body.

    Args:
        request: whose.
        accepted: the media types that are read.
        arrival_s: seconds within which it must come.

    Raises:
        Refusal: it is of no such type, encoded, too large or too slow.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in accepted:
        message = f"the body is {media_type or 'of no type'}; send {' or '.join(sorted(accepted))}"
        raise Refusal(400, "invalid_argument", message)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(400, "invalid_argument", "the body is encoded; send it as it is")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > BODY_MAX_BYTES:
        raise _too_large()
    try:
        async with asyncio.timeout(arrival_s):
            return await _collected(request)
    except TimeoutError:
        message = f"the body had not come within {arrival_s:g} s"
        raise Refusal(408, "request_timeout", message, headers={"Connection": "close"}) from None


def json_body(text: bytes, type: type[T]) -> T:  # noqa: A002 - the decoder's own word
    """A body as its type.

    Raises:
        InvalidArgument: it is no JSON, breaks a rule of it (members given twice, depth, sizes), or does not fit.
    """
    return decode_strict(text, type, around=1)


def form_fields(text: bytes) -> list[tuple[str, str]]:
    """The fields of a form, in order.

    Raises:
        InvalidArgument: it is none.
    """
    try:
        return parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise InvalidArgument("invalid_argument", f"the form cannot be read: {error}") from None


def form_body(fields: Iterable[tuple[str, str]], type: type[T]) -> T:  # noqa: A002 - the decoder's own word
    """Fields as their type; those left empty are none.

    Raises:
        InvalidArgument: a field is unknown, given twice, or its value does not fit.
    """
    return _converted(fields, type, "field", blank_is_absent=True)


def _converted(
    pairs: Iterable[tuple[str, str]],
    type: type[T],  # noqa: A002 - the decoder's own word
    what: str,
    *,
    blank_is_absent: bool,
) -> T:
    kinds, given = _kinds(type), dict[str, Any]()
    for name, value in pairs:
        if name not in kinds:
            allowed = ", ".join(kinds) or "none"
            raise _refused(f"there is no {what} {name[:60]!r}; there are: {allowed}")
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in value if character not in "\r\n\t"):
            raise InvalidArgument("invalid_text", f"the {what} {name} holds a control character; leave it out")
        if blank_is_absent and not value:
            continue
        if _is_list(kinds[name]):
            given.setdefault(name, []).append(value)
        elif name in given:
            raise _refused(f"the {what} {name} is given twice")
        else:
            given[name] = value
    read = {name: _fitted(value, kinds[name], f"the {what} {name}") for name, value in given.items()}
    whole: T = _fitted(read, type, f"the {what}s")
    return whole


def _fitted(value: Any, type: Any, what: str) -> Any:  # noqa: A002 - the decoder's own word
    try:
        # Only numbers are read from text: a moment is not, for it would be taken as seconds.
        return msgspec.convert(value, type, strict=_bare(type) not in (bool, int, float))
    except msgspec.ValidationError as error:
        fault = fault_of(error)
        raise _refused(f"{what}{fault.path.removeprefix('$')}: {fault.why}") from None


@functools.cache
def _kinds(type: type[msgspec.Struct]) -> dict[str, Any]:  # noqa: A002 - the decoder's own word
    """For each member, by its name outside, the type of what is given: never null, since ``null`` is text like any
    other."""
    hints = get_type_hints(type, include_extras=True)
    names = zip(type.__struct_encode_fields__, type.__struct_fields__, strict=True)
    return {outside: _given(hints[name]) for outside, name in names}


def _given(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    [kind] = (each for each in get_args(hint) if each is not types.NoneType)
    return kind


def _is_list(kind: Any) -> bool:
    return get_origin(_bare(kind)) in (tuple, list, frozenset)


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


async def _collected(request: Request) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        chunks.append(chunk)
        size += len(chunk)
        if size > BODY_MAX_BYTES:
            raise _too_large()
    return b"".join(chunks)


def _too_large() -> Refusal:
    message = f"a body may have {BODY_MAX_BYTES:,} bytes"
    return Refusal(400, "payload_too_large", message, headers={"Connection": "close"})


def _refused(message: str) -> InvalidArgument:
    return InvalidArgument("invalid_argument", message)
