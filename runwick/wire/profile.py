"""The serialization profile ``runwick.json`` 1: how a record becomes the bytes that every store keeps, and back.

::

    encode   msgspec writes ▸ size ▸ msgspec reads it back, since its encoder checks no types ▸ counts, or the walk
    decode   msgspec reads: what is stored went through `encode`, and unknown members are refused by the type

The profile is fixed. UTF-8 JSON, one object; members in camelCase, none unknown; numbers, never text for numbers, no
NaN and no infinity; enums by value; datetimes with a time zone; integers exact at any size. It never looks at a
store, a clock or an application's settings.
"""

import functools
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from runwick.contracts.errors import DispatchValidationError
from runwick.contracts.jobs import Job
from runwick.contracts.outcomes import RESULT_MAX_BYTES
from runwick.wire.errors import Fault, FaultFound, PayloadUndecodable, ResultRefused
from runwick.wire.limits import DEPTH_MAX, KEPT_TYPES, PAYLOAD_MAX_BYTES, find_fault, proves_limits
from runwick.wire.strict import fault_of, parse_strict
from runwick.wire.types import shape_of

PROFILE_ID: Final = "runwick.json"
PROFILE_VERSION: Final = 1

J = TypeVar("J", bound=Job)

_ENCODER: Final = msgspec.json.Encoder()
_ENDLESS: Final = Fault(
    "payload_limit_exceeded", "$", f"objects and arrays may nest {DEPTH_MAX} levels; this has no end or goes far deeper"
)


class Codec(Generic[J]):
    """Writes and reads the payloads of one record type, which has no `type_problems`."""

    __slots__ = ("_decoder", "_keeps_raw", "_record", "_shape")

    def __init__(self, record: type[J]) -> None:
        self._record = record
        self._decoder = msgspec.json.Decoder(record)
        self._shape = shape_of(record)
        self._keeps_raw = self._shape.has_free_form

    def encode(self, job: J) -> bytes:
        """The payload of `job`, proven to be readable and within every limit.

        Raises:
            DispatchValidationError: code ``invalid_payload``, ``invalid_text``, ``payload_too_large`` or
                ``payload_limit_exceeded``; the message names the member.
        """
        try:
            payload = _write(job)
            if len(payload) > PAYLOAD_MAX_BYTES:
                raise FaultFound(_too_large("payload_too_large", "a payload", len(payload), PAYLOAD_MAX_BYTES))
            self._prove(job, payload)
        except FaultFound as found:
            raise DispatchValidationError(found.fault.code, f"{self._record.__name__} {found.fault}") from None
        return payload

    def decode(self, payload: bytes | memoryview) -> J:
        """The record that stored bytes hold.

        Raises:
            PayloadUndecodable: they hold something else.
        """
        if self._keeps_raw and isinstance(payload, memoryview):
            payload = bytes(payload)  # raw members point into what they were read from, which may be written again
        try:
            return self._decoder.decode(payload)
        except MemoryError:
            raise
        except Exception as error:  # the decoder's own errors, and whatever the record's __post_init__ raises
            raise PayloadUndecodable(f"the payload is no {self._record.__name__}: {fault_of(error)}") from error

    def _prove(self, job: J, payload: bytes) -> None:
        """Raise what is wrong with the payload; the order is: cheapest first, and each walk only where needed."""
        try:
            stored = self._decoder.decode(payload)
        except Exception as error:
            if b"null" in payload:  # perhaps a number that JSON does not have, which is the better thing to say
                _walk(job)
            raise FaultFound(fault_of(error)) from None
        shape = self._shape
        if shape.has_watched:
            _walk(stored)  # as read back: text for a datetime becomes one only there
        if (
            shape.has_free_form
            or shape.has_mapping
            or (shape.has_null and b"null" in payload)  # which may be what became of a NaN
            or not proves_limits(payload, depth_is_bounded=shape.depth_is_bounded)
        ):
            _walk(job)


def encode_result(value: object) -> bytes | None:
    """The JSON of what a handler returned, under the rules of payloads; None for None, which stores nothing.

    Raises:
        ResultRefused: code ``result_too_large`` over 1 MiB, otherwise ``invalid_result``.
    """
    if value is None:
        return None
    try:
        result = _write(value)
        if len(result) > RESULT_MAX_BYTES:
            raise FaultFound(_too_large("result_too_large", "a result", len(result), RESULT_MAX_BYTES))
        _walk(value)
    except FaultFound as found:
        code = found.fault.code if found.fault.code == "result_too_large" else "invalid_result"
        raise ResultRefused(code, f"the handler's result {found.fault}") from None
    return result


def _write(value: object) -> bytes:
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError as error:
        _walk(value)
        raise FaultFound(Fault("invalid_text", "$", str(error))) from None
    except RecursionError:
        raise FaultFound(_placed(_ENDLESS, value, _ENCODER.encode)) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise FaultFound(_placed(fault_of(error), value, _ENCODER.encode)) from None


def _walk(value: object) -> None:
    """Raise the first fault of a value that msgspec can encode."""
    try:
        plain = _plain(value)
    except FaultFound as found:
        raise FaultFound(_placed(found.fault, value, _plain)) from None
    except RecursionError:
        raise FaultFound(_placed(_ENDLESS, value, _plain)) from None
    except TypeError as error:
        raise FaultFound(_placed(fault_of(error), value, _plain)) from None
    if fault := find_fault(plain):
        raise FaultFound(fault)


def _read_raw(value: object) -> Any:
    """Called for what msgspec does not turn into plain objects by itself, which raw JSON is."""
    if isinstance(value, msgspec.Raw):
        return parse_strict(bytes(value))
    raise TypeError(f"encoding objects of type {type(value).__name__} is unsupported")


_plain: Final = functools.partial(msgspec.to_builtins, builtin_types=KEPT_TYPES, enc_hook=_read_raw)


def _placed(fault: Fault, value: object, fails: Callable[[Any], object]) -> Fault:
    """The fault at the first member of a struct on which `fails` raises by itself; the encoder names none."""
    if isinstance(value, msgspec.Struct):
        for name, member in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            try:
                fails(getattr(value, name))
            except Exception:
                return fault.below(f".{member}")
    return fault


def _too_large(code: str, what: str, size: int, limit: int) -> Fault:
    return Fault(code, "$", f"{what} may have {limit:,} bytes, this has {size:,}; store the data elsewhere")
