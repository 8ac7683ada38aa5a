import re

import msgspec
import pytest

from runwick import InvalidArgument
from runwick.wire.strict import decode_strict


class Point(msgspec.Struct, forbid_unknown_fields=True):
    x: int
    y: int = 0


def test_text_from_outside_becomes_its_type() -> None:
    assert decode_strict(b' {"x": 1, "y": 2} ', Point) == Point(1, 2)


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (b'{"x":1,"x":1}', "invalid_payload", "$: the member 'x' is given twice in one object"),
        (b'{"x":1,"y":"2"}', "invalid_payload", "$.y: expected `int`, got `str`"),
        (b'{"x":1,"z":2}', "invalid_payload", "$: object contains unknown field `z`"),
        (b'{"x":1', "invalid_payload", "$: the text is not JSON: expecting ',' delimiter (character 6)"),
        (b'{"x":NaN}', "invalid_payload", "$: JSON has no number NaN"),
        (b"\xff", "invalid_text", "$: the text is not UTF-8 (byte 0)"),
        (b"[" * 33 + b"]" * 33, "payload_limit_exceeded", "objects and arrays may nest 32 levels"),
        (b"[" * 1_000_000, "payload_limit_exceeded", "$: objects and arrays nest without end"),
        (b'["\\ud800"]', "invalid_text", "$[0]: text cannot hold half of a surrogate pair (U+D800)"),
    ],
)
def test_text_from_outside_that_breaks_a_rule(text: bytes, code: str, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(sentence)) as caught:
        decode_strict(text, Point)
    assert caught.value.code == code


def test_many_members_given_twice_are_found_quickly() -> None:
    text = b"{" + b",".join(b'"%d":1' % (i // 2) for i in range(100_000)) + b"}"
    with pytest.raises(InvalidArgument, match="is given twice"):
        decode_strict(text, Point)


def test_an_envelopes_own_levels_do_not_count_as_depth() -> None:
    deepest = b"[" * 32 + b"]" * 32
    assert decode_strict(b"[" + deepest + b"]", list, around=1)
    with pytest.raises(InvalidArgument, match="payload_limit_exceeded"):
        decode_strict(b"[[" + deepest + b"]]", list, around=1)
