"""Error text is storable, whatever was raised."""

import pytest

from runwick.contracts.outcomes import ERROR_TEXT_MAX_BYTES
from runwick.execution.errors import (
    BRIEF_MAX_CHARACTERS,
    MESSAGE_MAX_BYTES,
    TYPE_MAX_BYTES,
    brief_detail_of,
    detail_of,
    message_of,
    storable,
    type_of,
)


def raised(error: BaseException) -> BaseException:
    """The same exception with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def assert_storable(text: str, max_bytes: int) -> None:
    assert type(text) is str
    assert len(text.encode("utf-8", "strict")) <= max_bytes
    assert "\0" not in text


def test_an_ordinary_error_keeps_type_message_and_traceback() -> None:
    detail = detail_of(raised(ValueError("no such picture")))
    assert (detail.type, detail.message) == ("ValueError", "no such picture")
    assert detail.text.startswith("Traceback (most recent call last):")
    assert detail.text.endswith("ValueError: no such picture\n")


def test_the_type_is_qualified_outside_the_builtins() -> None:
    class Missing(Exception):
        pass

    assert detail_of(Missing()).type == f"{__name__}.{Missing.__qualname__}"


def test_causes_and_notes_are_told() -> None:
    error = RuntimeError("second")
    error.__cause__ = KeyError("first")
    error.add_note("while drawing page 3")
    text = detail_of(error).text
    assert "KeyError: 'first'" in text
    assert "while drawing page 3" in text


def test_what_closing_providers_raised_is_told_after_it() -> None:
    text = detail_of(raised(ValueError("first")), [raised(OSError("then"))]).text
    assert text.index("ValueError: first") < text.index("While a provider was closed") < text.index("OSError: then")


def test_f136_nul_is_replaced() -> None:
    detail = detail_of(raised(ValueError("a\0b")))
    assert detail.message == "a\ufffdb"
    assert_storable(detail.text, ERROR_TEXT_MAX_BYTES)


def test_f140_lone_surrogates_are_replaced() -> None:
    detail = detail_of(raised(ValueError("a\udc80\ud800b")))
    assert detail.message == "a\ufffd\ufffdb"
    assert_storable(detail.text, ERROR_TEXT_MAX_BYTES)


def test_f139_a_text_that_cannot_be_made_is_said_so() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise OSError("no")

        __repr__ = __str__

    detail = detail_of(raised(Silent()))
    assert detail.message == "(no text: its __str__ raised OSError)"
    assert "Silent" in detail.text


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt, RecursionError])
def test_f139_a_text_that_stops_the_process_does_not(stop: type[BaseException]) -> None:
    class Deadly(Exception):
        def __str__(self) -> str:
            raise stop

    assert stop.__name__ in detail_of(raised(Deadly())).message


def test_f139_a_text_that_is_none_does_not_fail() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return 5  # type: ignore[return-value]

    assert detail_of(raised(Odd())).message == "(no text: its __str__ raised TypeError)"


def test_f139_a_huge_text_is_cut_with_a_mark() -> None:
    detail = detail_of(raised(ValueError("x" * 3_000_000)))
    assert_storable(detail.message, MESSAGE_MAX_BYTES)
    assert detail.message.startswith("xxx")
    assert "characters left out" in detail.message
    assert_storable(detail.text, ERROR_TEXT_MAX_BYTES)
    assert detail.text.startswith("Traceback")
    assert "characters left out" in detail.text
    assert detail.text.endswith("xxx\n")


def test_f026_constructors_do_not_matter() -> None:
    class Pair(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(first)
            self.second = second

    class Bare(Exception):
        def __init__(self, **_: object) -> None:
            pass

    assert detail_of(raised(Pair("a", "b"))).message == "a"
    assert detail_of(raised(Bare(x=1))).message == ""


def test_a_thousand_frames_are_cut_in_the_middle() -> None:
    def ping(left: int) -> None:
        pong(left - 1)

    def pong(left: int) -> None:
        if left <= 0:
            raise ValueError("at the bottom")
        ping(left - 1)

    try:
        ping(800)
    except ValueError as error:
        text = detail_of(error).text
    assert_storable(text, ERROR_TEXT_MAX_BYTES)
    assert text.startswith("Traceback")
    assert text.endswith("ValueError: at the bottom\n")
    assert "characters left out" in text


def test_a_class_with_an_impossible_name() -> None:
    odd = type("N" * 2_000, (Exception,), {"__module__": "\0\udfff"})
    detail = detail_of(raised(odd("x")))
    assert_storable(detail.type, TYPE_MAX_BYTES)
    assert_storable(detail.text, ERROR_TEXT_MAX_BYTES)


def test_a_class_that_hides_its_name() -> None:
    class Hiding(type):
        @property
        def __module__(cls) -> str:  # type: ignore[override]
            raise OSError

    class Hidden(Exception, metaclass=Hiding):
        pass

    assert detail_of(raised(Hidden("x"))).message == "x"


def test_a_string_of_a_class_of_its_own_becomes_a_plain_one() -> None:
    class Loud(str):
        def __len__(self) -> int:
            raise OSError

        def __str__(self) -> str:
            raise OSError

    class Says(Exception):
        def __str__(self) -> str:
            return Loud("words")

    assert detail_of(raised(Says())).message == "words"
    assert type(message_of(Loud("words"))) is str


def test_an_endless_chain_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert "ValueError: first" in detail_of(first).text


@pytest.mark.parametrize("character", ["a", "ä", "\u20ac", "\U0001f600", "\0", "\ud800"])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_limit_holds_at_every_width_of_character(character: str, share: float) -> None:
    for length in range(180, 420, 7):
        kept = storable(character * length, 400, head_share=share)
        assert_storable(kept, 400)
        assert ("left out" in kept) == (length * len(storable(character, 99).encode()) > 400)


def test_what_is_left_out_is_counted() -> None:
    kept = storable("1" * 1000 + "2" * 1000, 200, head_share=0.5)
    head, mark, tail = kept.split("\n")
    assert (set(head), set(tail)) == ({"1"}, {"2"})
    assert mark == f"[… {2000 - len(head) - len(tail):,} characters left out …]"


# Type and message alone -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "character", ["a", "ä", "\u20ac", "\U0001f4a5"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"]
)
@pytest.mark.parametrize("size", [999, 1000, 1001, 50_000])
def test_a_brief_message_has_at_most_1000_characters(character: str, size: int) -> None:
    error = raised(ValueError(character * size))
    detail = brief_detail_of(type_of(error), error)
    assert (detail.type, detail.text) == ("ValueError", "")
    if size <= BRIEF_MAX_CHARACTERS:
        assert detail.message == character * size
    else:
        assert detail.message == character * 999 + "…"


def test_a_brief_message_is_storable_whatever_was_raised() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise OSError

    for error in (ValueError("a\0b\ud800"), Mute()):
        assert_storable(brief_detail_of(type_of(error), error).message, 4 * BRIEF_MAX_CHARACTERS)
    assert brief_detail_of("ValueError", "a\0b").message == "a\ufffdb"
