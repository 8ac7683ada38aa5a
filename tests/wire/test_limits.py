"""Each limit one below, at it, and one above."""

import msgspec
import pytest

from runwick import DispatchValidationError, Job
from runwick.wire.errors import ResultRefused
from runwick.wire.profile import Codec, encode_result
from tests.wire.records import Anything, Thumbnail, Tree


class Words(Job):
    words: list[str] = msgspec.field(default_factory=list)
    counts: dict[str, int] = msgspec.field(default_factory=dict)


def refusal_of(job: Job) -> str | None:
    """``code: path`` of what is wrong, or None when it is accepted and comes back the same."""
    codec = Codec(type(job))
    try:
        payload = codec.encode(job)
    except DispatchValidationError as error:
        return f"{error.code}: {error.message.split(':')[0]}"
    assert codec.decode(payload) == job
    return None


def nested(levels: int) -> Tree:
    """A tree whose payload nests so many levels: an object and, but for the last, an array for each."""
    tree = Tree()
    for _ in range(levels // 2 - 1):
        tree = Tree([tree])
    return tree


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_size(over: int) -> None:
    words = ["x" * 200_000] * 5
    filling = 1024 * 1024 + over - len(Codec(Words).encode(Words([*words, ""])))
    job = Words([*words, "x" * filling])
    assert refusal_of(job) == (None if over <= 0 else "payload_too_large: Words $")


@pytest.mark.parametrize("character", ["x", "é", "水", "🦀"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"])
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_text_is_measured_in_bytes_of_utf8(character: str, over: int) -> None:
    size = 256 * 1024 + over
    whole, rest = divmod(size, len(character.encode()))
    text = character * whole + "x" * rest
    assert len(text.encode()) == size
    assert refusal_of(Thumbnail(text)) == (None if over <= 0 else "payload_limit_exceeded: Thumbnail $.path")


def test_escapes_do_not_count() -> None:
    assert refusal_of(Thumbnail('"' * 256 * 1024)) is None


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_names_of_members_are_texts_too(over: int) -> None:
    job = Words(counts={"n" * (256 * 1024 + over): 1})
    assert refusal_of(job) == (None if over <= 0 else "payload_limit_exceeded: Words $.counts")


@pytest.mark.parametrize("number", [255, 256, 257])
def test_members(number: int) -> None:
    job = Words(counts={f"name{i}": i for i in range(number)})
    assert refusal_of(job) == (None if number <= 256 else "payload_limit_exceeded: Words $.counts")


@pytest.mark.parametrize("number", [16_383, 16_384, 16_385])
def test_elements(number: int) -> None:
    assert refusal_of(Words([","] * number)) == (None if number <= 16_384 else "payload_limit_exceeded: Words $.words")


@pytest.mark.parametrize("levels", [30, 32, 34])
def test_depth(levels: int) -> None:
    refused = refusal_of(nested(levels))
    assert (refused is None) == (levels <= 32)
    assert refused is None or refused.startswith("payload_limit_exceeded: Tree $.children[0].children[0]")


@pytest.mark.parametrize("levels", [31, 32, 33])
def test_depth_of_free_form_json(levels: int) -> None:
    inner = levels - 1  # the record is the first level
    job = Anything(msgspec.Raw(b"[" * inner + b"]" * inner))
    assert (refusal_of(job) is None) == (levels <= 32)


@pytest.mark.parametrize("levels", [200, 800, 1_000, 1_200, 2_000, 10_000])
def test_depth_beyond_what_the_interpreter_follows(levels: int) -> None:
    assert str(refusal_of(nested(levels))).startswith("payload_limit_exceeded: Tree $.children")
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    with pytest.raises(ResultRefused, match="may nest 32 levels"):
        encode_result(value)
