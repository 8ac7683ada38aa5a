import dataclasses
import enum
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import pytest

from runwick import Job
from runwick.wire.types import shape_of, type_problems
from tests.wire.records import Anything, Drawing, Thumbnail, Tree

if TYPE_CHECKING:
    from decimal import Decimal as Absent


class Colours(enum.Flag):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Address:
    street: str


class Bag(TypedDict):
    size: int


class Loose(msgspec.Struct):
    note: str


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    inside: list[Any]


def record_with(type_: Any) -> type[Job]:
    return msgspec.defstruct("Example", [("value", type_)], bases=(Job,))  # type: ignore[return-value]


@pytest.mark.parametrize("record", [Thumbnail, Drawing, Tree, Anything])
def test_records_of_the_profile_have_no_problems(record: type[Job]) -> None:
    assert type_problems(record) == []


@pytest.mark.parametrize(
    ("type_", "sentence"),
    [
        (Any, "$.value: a value of any type has no fixed shape; name its type, or use msgspec.Raw for free-form JSON"),
        (object, "$.value: object is no type that JSON can hold; name its type, or use msgspec.Raw"),
        (complex, "$.value: complex is no type that JSON can hold"),
        (memoryview, "$.value: MemoryViewType is no type that JSON can hold"),
        (list, "$.value[]: a value of any type has no fixed shape"),
        (dict[str, Any], "$.value{}: a value of any type has no fixed shape"),
        (tuple[int, Any], "$.value[1]: a value of any type has no fixed shape"),
        (dict[int, str], "$.value: the names of an object's members are text; use dict[str, …]"),
        (set[str], "$.value: a set has no order of its own, so its JSON would vary; use a list or a tuple"),
        (frozenset[str], "$.value: a set has no order of its own"),
        (Colours, "$.value: Colours is a set of flags, which has no member to write; use a list"),
        (int | str, "$.value: a union is of one type and None, or of tagged structs (tag=True)"),
        (Loose, "$.value: Loose drops unknown members when it is read; make it a msgspec.Struct with forbid_unknown"),
        (Address, "$.value: Address drops unknown members when it is read; use a msgspec.Struct with forbid_unknown"),
        (Bag, "$.value: Bag drops unknown members when it is read"),
        (list[Strict | None], "$.value[].inside[]: a value of any type has no fixed shape"),
    ],
    ids=str,
)
def test_types_that_cannot_be_read_back_are_refused(type_: Any, sentence: str) -> None:
    [problem] = type_problems(record_with(type_))
    assert problem.startswith(sentence)


def test_all_problems_of_a_record_are_told() -> None:
    class Example(Job):
        first: Any
        second: set[int]

    assert [problem.split(":")[0] for problem in type_problems(Example)] == ["$.first", "$.second"]


def test_untagged_unions_are_refused_by_the_decoder_itself() -> None:
    [problem] = type_problems(record_with(Loose | Strict))
    assert "must be tagged" in problem


def test_a_record_that_was_loosened_is_refused() -> None:
    class Example(Job, forbid_unknown_fields=False):
        note: str

    [problem] = type_problems(Example)
    assert problem.startswith("$: Example drops unknown members")


def test_a_payload_is_an_object() -> None:
    class Example(Job, array_like=True):
        note: str

    assert type_problems(Example) == ["$: a payload is an object; leave out array_like"]


def test_a_record_has_at_most_as_many_members_as_an_object() -> None:
    fields = [(f"field{i}", int) for i in range(257)]
    record: Any = msgspec.defstruct("Example", fields, bases=(Job,))
    assert type_problems(record) == ["$: Example has 257 members, the limit is 256"]


def test_a_type_that_is_not_there_is_named() -> None:
    class Example(Job):
        price: "Absent"

    [problem] = type_problems(Example)
    assert problem.startswith("$: the type 'Absent' is not known where the record is defined")


def test_the_shape_says_which_checks_the_types_decide() -> None:
    assert shape_of(Thumbnail) == (True, False, False, False, False)
    assert shape_of(Drawing)._asdict() == {
        "depth_is_bounded": True,
        "has_null": True,
        "has_free_form": False,
        "has_mapping": True,
        "has_watched": True,
    }
    assert not shape_of(Tree).depth_is_bounded
    assert shape_of(Anything).has_free_form
