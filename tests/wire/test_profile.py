import datetime
import decimal
import re
import uuid
from typing import Any

import msgspec
import pytest

from runwick import DispatchValidationError, Job
from runwick.wire.errors import PayloadUndecodable, ResultRefused
from runwick.wire.profile import Codec, encode_result
from tests.wire.records import Anything, Circle, Drawing, Size, Thumbnail, Tree

AN_ID = uuid.UUID("0199c0de-0000-7000-8000-000000000000")
NAIVE = datetime.datetime(2026, 3, 29, 2, 30)
BEFORE_TIME = datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


def refusal(job: Job) -> DispatchValidationError:
    with pytest.raises(DispatchValidationError) as caught:
        Codec(type(job)).encode(job)
    return caught.value


def test_members_are_camel_case_and_defaults_are_written() -> None:
    assert Codec(Drawing).encode(Drawing(AN_ID, shape=Circle(2.5), size=Size.LARGE)) == (
        b'{"drawingId":"0199c0de-0000-7000-8000-000000000000","size":"large","shape":{"type":"Circle","radius":2.5},'
        b'"drawnAt":null,"price":null,"day":null,"lasts":null,"scale":1.0,"title":null,"picture":"","points":[],'
        b'"labels":{}}'
    )


def test_integers_stay_exact() -> None:
    job = Thumbnail("a.png", width=2**200 + 1)
    assert Codec(Thumbnail).decode(Codec(Thumbnail).encode(job)) == job


def test_a_datetime_keeps_its_instant() -> None:
    drawn_at = datetime.datetime(2026, 10, 25, 2, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    decoded = Codec(Drawing).decode(Codec(Drawing).encode(Drawing(AN_ID, drawn_at=drawn_at)))
    assert decoded.drawn_at == drawn_at


@pytest.mark.parametrize(
    ("job", "code", "sentence"),
    [
        (Thumbnail(1), "invalid_payload", "Thumbnail $.path: expected `str`, got `int`"),  # type: ignore[arg-type]
        (Thumbnail("a", width=True), "invalid_payload", "Thumbnail $.width: expected `int`, got `bool`"),
        (Thumbnail("a", width="1"), "invalid_payload", "Thumbnail $.width: expected `int`, got `str`"),  # type: ignore[arg-type]
        (Thumbnail("a", width=object()), "invalid_payload", "Thumbnail $.width: encoding objects of type object"),  # type: ignore[arg-type]
        (Thumbnail("a", width=float("nan")), "invalid_payload", "Thumbnail $.width: JSON has no number nan"),  # type: ignore[arg-type]
        (Thumbnail("a", width=10**5000), "invalid_payload", "Thumbnail $.width: exceeds the limit (4300 digits)"),
        (Thumbnail("a\0b"), "invalid_text", "Thumbnail $.path: text cannot hold a NUL character (U+0000)"),
        (Thumbnail("\ud83d"), "invalid_text", "Thumbnail $.path: text cannot hold half of a surrogate pair (U+D83D)"),
        (Drawing(AN_ID, scale=float("inf")), "invalid_payload", "Drawing $.scale: JSON has no number inf"),
        (Drawing(AN_ID, title=float("nan")), "invalid_payload", "Drawing $.title: JSON has no number nan"),  # type: ignore[arg-type]
        (Drawing(AN_ID, drawn_at=NAIVE), "invalid_payload", "Drawing $.drawnAt: a datetime needs a time zone"),
        (Drawing(AN_ID, drawn_at="2026-03-29T02:30:00"), "invalid_payload", "$.drawnAt: a datetime needs a time zone"),  # type: ignore[arg-type]
        (Drawing(AN_ID, drawn_at=BEFORE_TIME), "invalid_payload", "$.drawnAt: the datetime 0001-01-01T00:00:00+02:00"),
        (Drawing(AN_ID, price=decimal.Decimal("NaN")), "invalid_payload", "Drawing $.price: JSON has no number NaN"),
        (Drawing(AN_ID, price=decimal.Decimal("1E+999999")), "invalid_payload", "at most ±6,144, this is +999,999"),
        (Drawing(AN_ID, price="1E-999999"), "invalid_payload", "at most ±6,144, this is -999,999"),  # type: ignore[arg-type]
        (Drawing(AN_ID, labels={"a": 1}), "invalid_payload", "Drawing $.labels[...]: expected `str`, got `int`"),  # type: ignore[dict-item]
        (Drawing(AN_ID, labels={1: "a"}), "invalid_payload", "Drawing $.labels: member names are text, one is int 1"),  # type: ignore[dict-item]
        (
            Drawing(AN_ID, labels={"\0": "a"}),
            "invalid_text",
            "Drawing $.labels: in a member's name, text cannot hold a",
        ),
        (Drawing(AN_ID, labels={"a b": "\0"}), "invalid_text", "Drawing $.labels['a b']: text cannot hold a NUL"),
        (Drawing("x"), "invalid_payload", "Drawing $.drawingId: invalid UUID"),  # type: ignore[arg-type]
        (Drawing(AN_ID, size="huge"), "invalid_payload", "Drawing $.size: invalid enum value 'huge'"),  # type: ignore[arg-type]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_payload_that_breaks_a_rule_is_refused_with_its_member(job: Job, code: str, sentence: str) -> None:
    error = refusal(job)
    assert error.code == code
    assert sentence in error.message


@pytest.mark.parametrize(
    ("raw", "code", "sentence"),
    [
        (b'{"a":1,"b":{"c":1,"c":2}}', "invalid_payload", "$.value: the member 'c' is given twice in one object"),
        (b'{"a":1},"weight":2', "invalid_payload", "$.value: the text is not JSON: extra data"),
        (b"", "invalid_payload", "$.value: the text is not JSON: expecting value"),
        (b"NaN", "invalid_payload", "$.value: JSON has no number NaN"),
        (b"[1e400]", "invalid_payload", "$.value[0]: JSON has no number inf"),
        (b'["\\ud800"]', "invalid_text", "$.value[0]: text cannot hold half of a surrogate pair"),
        (b'["\\u0000"]', "invalid_text", "$.value[0]: text cannot hold a NUL character"),
        (b'["\xff"]', "invalid_text", "$.value: the text is not UTF-8 (byte 2)"),
        (b"[" * 100_000, "payload_limit_exceeded", "$.value: objects and arrays nest without end"),
        (b"1" * 5000, "invalid_payload", "$.value: exceeds the limit (4300 digits)"),
    ],
)
def test_free_form_json_is_read_as_strictly_as_text_from_outside(raw: bytes, code: str, sentence: str) -> None:
    error = refusal(Anything(msgspec.Raw(raw)))
    assert error.code == code
    assert sentence in error.message


def test_free_form_json_survives_as_it_was_written() -> None:
    codec = Codec(Anything)
    payload = bytearray(codec.encode(Anything(msgspec.Raw(b'{"a": [1, 2.50]}'))))
    decoded = codec.decode(memoryview(payload))
    payload[:] = b" " * len(payload)
    assert bytes(decoded.value) == b'{"a": [1, 2.50]}'


def test_a_null_that_was_asked_for_is_no_hidden_number() -> None:
    assert b'"weight":null' in Codec(Anything).encode(Anything(msgspec.Raw(b"[null]")))
    assert refusal(Anything(msgspec.Raw(b"[null]"), weight=float("nan"))).code == "invalid_payload"


def test_a_payload_that_contains_itself_is_refused() -> None:
    children: list[Tree] = []
    tree = Tree(children)
    children.append(tree)
    error = refusal(tree)
    assert error.code == "payload_limit_exceeded"
    assert error.message.startswith("Tree $.children: objects and arrays may nest 32 levels")


class Picky(Job):
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise LookupError("negative")


@pytest.mark.parametrize(
    ("record", "payload", "sentence"),
    [
        (Thumbnail, b'{"path":1}', "the payload is no Thumbnail: $.path: expected `str`, got `int`"),
        (Thumbnail, b'{"path":"a","colour":1}', "$: object contains unknown field `colour`"),
        (Thumbnail, b"{}", "$: object missing required field `path`"),
        (Thumbnail, b'{"path":', "$: input data was truncated"),
        (Thumbnail, b"\xff", "$: JSON is malformed"),
        (Thumbnail, b'{"path":"\xff"}', "UTF-8"),
        (Thumbnail, b'{"path":"a"}' + b" x", "$: JSON is malformed"),
        (Picky, b'{"number":-1}', "negative"),
        (Tree, b'{"children":[' * 100_000, "the payload is no Tree"),
    ],
)
def test_stored_bytes_that_are_no_such_record(record: type[Job], payload: bytes, sentence: str) -> None:
    with pytest.raises(PayloadUndecodable, match=re.escape(sentence)):
        Codec(record).decode(payload)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"bytes": 18_204, "sides": (1, 2)}, b'{"bytes":18204,"sides":[1,2]}'),
        (Thumbnail("a.png"), b'{"path":"a.png","width":256}'),
        (decimal.Decimal("1.50"), b'"1.50"'),
        (0, b"0"),
        ("", b'""'),
    ],
)
def test_a_result_is_any_value_of_the_profile(value: object, stored: bytes) -> None:
    assert encode_result(value) == stored


def test_no_result_stores_nothing() -> None:
    assert encode_result(None) is None


@pytest.mark.parametrize(
    ("value", "code", "sentence"),
    [
        ("x" * 1024 * 1024, "result_too_large", "a result may have 1,048,576 bytes, this has 1,048,578"),
        (object(), "invalid_result", "encoding objects of type object is unsupported"),
        ({"rate": float("nan")}, "invalid_result", "the handler's result $.rate: JSON has no number nan"),
        ({"at": NAIVE}, "invalid_result", "the handler's result $.at: a datetime needs a time zone"),
        ({1: "a"}, "invalid_result", "member names are text, one is int 1"),
        (["\ud800"], "invalid_result", "the handler's result $[0]: text cannot hold half of a surrogate pair"),
        ([msgspec.Raw(b"nope")], "invalid_result", "the text is not JSON"),
    ],
    ids=["size", "object", "nan", "naive", "name", "surrogate", "raw"],
)
def test_a_result_that_cannot_be_stored(value: Any, code: str, sentence: str) -> None:
    with pytest.raises(ResultRefused) as caught:
        encode_result(value)
    assert caught.value.code == code
    assert sentence in caught.value.message
