"""JSON that enters from outside: strict where msgspec alone is not.

msgspec keeps the last of duplicate members and follows nesting as far as the interpreter goes, so text from outside
is read twice: once by the standard library with every rule of the profile, once into its type. What this profile
itself encoded and stored needs none of that.
"""

import json
import re
from collections import Counter
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from runwick.contracts.errors import InvalidArgument
from runwick.wire.errors import Fault, FaultFound
from runwick.wire.limits import find_fault

T = TypeVar("T")

_PATH_IN_MESSAGE: Final = re.compile(r"(?s)(.*) - at `(?:key in )?(\$.*)`")


def decode_strict(text: bytes, type: type[T], *, around: int = 0) -> T:  # noqa: A002 - the decoder's own word
    """Read JSON from outside into a type.

    Args:
        text: UTF-8 of at most the size that the caller allows; this function does not bound it.
        type: any type msgspec can decode.
        around: how many outer levels are an envelope, and do not count as the depth of what is in it.

    Raises:
        InvalidArgument: it is no JSON, breaks a rule of the profile (duplicate members, depth, lengths, text) or does
            not fit the type; the message names the place. Codes ``invalid_payload``, ``invalid_text`` and
            ``payload_limit_exceeded``.
    """
    try:
        parse_strict(text, around=around)
        return msgspec.json.decode(text, type=type)
    except FaultFound as found:
        raise InvalidArgument(found.fault.code, str(found.fault)) from None
    except msgspec.ValidationError as error:
        raise InvalidArgument("invalid_payload", str(fault_of(error))) from None


def parse_strict(text: bytes, *, around: int = 0) -> Any:
    """The plain objects of a JSON text that keeps every rule of the profile; `around` as for `decode_strict`.

    Raises:
        FaultFound: it breaks one. The path of a duplicate member is not known.
    """
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise FaultFound(Fault("invalid_text", "$", f"the text is not UTF-8 (byte {error.start})")) from None
    except json.JSONDecodeError as error:
        why = f"the text is not JSON: {error.msg.lower()} (character {error.pos})"
        raise FaultFound(Fault("invalid_payload", "$", why)) from None
    except RecursionError:
        raise FaultFound(Fault("payload_limit_exceeded", "$", "objects and arrays nest without end")) from None
    except ValueError as error:
        raise FaultFound(fault_of(error)) from None
    if fault := find_fault(value, -around):
        raise FaultFound(fault)
    return value


def fault_of(error: Exception) -> Fault:
    """What a decoder's error says, with its path apart."""
    text = str(error)
    found = _PATH_IN_MESSAGE.fullmatch(text)
    message, path = found.groups() if found else (text, "$")
    is_word = message[1:2].islower()
    return Fault("invalid_payload", path, message[:1].lower() + message[1:] if is_word else message)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise FaultFound(Fault("invalid_payload", "$", f"the member {twice!r} is given twice in one object"))
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise FaultFound(Fault("invalid_payload", "$", f"JSON has no number {name}"))
