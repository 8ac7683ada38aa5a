"""What holds for every record: it comes back as it went in, or it is refused with a code of the profile."""

import contextlib
import datetime
import decimal
import json
import uuid

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runwick import DispatchValidationError, InvalidArgument, Job
from runwick.wire.errors import ResultRefused
from runwick.wire.profile import Codec, encode_result
from runwick.wire.strict import decode_strict
from tests.wire.records import Anything, Circle, Drawing, Size, Square

BRIEF = settings(max_examples=100, deadline=None, database=None)

# Any text at all: NUL and lone surrogates included.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SHAPES = st.builds(Circle, st.floats(0, 1e9)) | st.builds(Square, st.floats(0, 1e9)) | st.none()
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9999, 12, 29), timezones=ZONES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def drawings(text: st.SearchStrategy[str]) -> st.SearchStrategy[Drawing]:
    return st.builds(
        Drawing,
        drawing_id=st.uuids(),
        size=st.sampled_from(Size),
        shape=SHAPES,
        drawn_at=INSTANTS | st.none(),
        price=st.decimals(-(10**20), 10**20, allow_nan=False, allow_infinity=False) | st.none(),
        day=st.dates() | st.none(),
        lasts=st.timedeltas(datetime.timedelta(days=-9999), datetime.timedelta(days=9999)) | st.none(),
        scale=st.floats(allow_nan=False, allow_infinity=False),
        title=text | st.none(),
        picture=st.binary(max_size=20),
        points=st.lists(st.tuples(st.integers(), st.integers()), max_size=5),
        labels=st.dictionaries(text, text, max_size=5),
    )


@BRIEF
@given(drawings(TEXT))
def test_a_record_comes_back_as_it_went_in(drawing: Drawing) -> None:
    assert Codec(Drawing).decode(Codec(Drawing).encode(drawing)) == drawing


@BRIEF
@given(drawings(ANY_TEXT))
def test_text_is_either_stored_exactly_or_refused(drawing: Drawing) -> None:
    texts = "".join([drawing.title or "", *drawing.labels, *drawing.labels.values()])
    if "\0" in texts or any("\ud800" <= each <= "\udfff" for each in texts):
        assert refusal(drawing) == "invalid_text"
    else:
        assert Codec(Drawing).decode(Codec(Drawing).encode(drawing)) == drawing


@BRIEF
@given(st.decimals())
def test_every_decimal_is_stored_exactly_or_refused(price: decimal.Decimal) -> None:
    drawing = Drawing(uuid.UUID(int=1), price=price)
    if price.is_finite() and abs(price.adjusted()) <= 6144:
        assert Codec(Drawing).decode(Codec(Drawing).encode(drawing)).price == price
    else:
        assert refusal(drawing) == "invalid_payload"


@BRIEF
@given(JSON)
def test_free_form_json_and_results_follow_the_same_rules(value: object) -> None:
    text = json.dumps(value).encode()
    try:
        result = encode_result(value)
    except ResultRefused:
        assert refusal(Anything(msgspec.Raw(text))) == "invalid_text"
    else:
        payload = Codec(Anything).encode(Anything(msgspec.Raw(text)))
        read_back = json.loads(bytes(Codec(Anything).decode(payload).value))
        assert read_back == (None if result is None else json.loads(result))


@BRIEF
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_from_outside_is_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(InvalidArgument):
        assert decode_strict(text, object) == json.loads(text)


def refusal(job: Job) -> str:
    with pytest.raises(DispatchValidationError) as caught:
        Codec(type(job)).encode(job)
    return caught.value.code
