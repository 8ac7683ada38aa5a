"""Which types a payload may have, and what they say about every payload of a record.

A record is examined once, when it is declared. Refused is whatever could not be read back as it was written, on any
release and by any program: types without a fixed shape, types that drop unknown members, and what JSON cannot tell
apart. The shape that is found lets `runwick.wire.profile` skip checks that the types alone decide.
"""

import enum
import math
from typing import Any, Final, NamedTuple

from msgspec import inspect

from runwick.contracts.jobs import Job
from runwick.wire.limits import DEPTH_MAX, MEMBERS_MAX


class Shape(NamedTuple):
    """What can occur in a record's payloads."""

    depth_is_bounded: bool
    """The types alone keep the payload within the depth limit."""
    has_null: bool
    """A member may be null, which is also how an encoder writes a number that JSON does not have."""
    has_free_form: bool
    """A member is `msgspec.Raw`: JSON that nobody has read yet."""
    has_mapping: bool
    """A dict can occur, whose keys the encoder would turn into text whatever they are."""
    has_watched: bool
    """A datetime or a decimal can occur, whose values have rules of their own."""


def type_problems(record: type[Job]) -> list[str]:
    """Say of each of the record's types that is refused where it stands, why, and what to use instead."""
    return _Examination(record).problems


def shape_of(record: type[Job]) -> Shape:
    """The shape of a record that has no type problems."""
    return _Examination(record).shape


_FREE_FORM_ADVICE: Final = "name its type, or use msgspec.Raw for free-form JSON"
_STRICT_ADVICE: Final = 'msgspec.Struct with forbid_unknown_fields=True (and rename="camel")'

_SIMPLE: Final = (
    inspect.BoolType,
    inspect.IntType,
    inspect.FloatType,
    inspect.StrType,
    inspect.BytesType,
    inspect.ByteArrayType,
    inspect.TimeType,
    inspect.DateType,
    inspect.TimeDeltaType,
    inspect.UUIDType,
)


class _Examination:
    """One pass over the types of a record. `_visit` answers how many levels of objects and arrays a type adds."""

    def __init__(self, record: type[Job]) -> None:
        self.problems: list[str] = []
        self._levels: dict[type, float] = {}
        self._has_null = self._has_free_form = self._has_mapping = self._has_watched = False
        depth = math.inf
        try:
            described = inspect.type_info(record)
        except NameError as error:
            self._refuse("$", f"the type {error.name!r} is not known where the record is defined; import or define it")
        except (TypeError, ValueError) as error:
            self._refuse("$", f"{error}".splitlines()[0])
        else:
            if isinstance(described, inspect.StructType) and described.array_like:
                self._refuse("$", "a payload is an object; leave out array_like")
            depth = self._visit(described, "$")
        self.shape = Shape(
            depth <= DEPTH_MAX, self._has_null, self._has_free_form, self._has_mapping, self._has_watched
        )

    def _refuse(self, path: str, why: str) -> None:
        self.problems.append(f"{path}: {why}")

    def _visit(self, described: inspect.Type, path: str) -> float:
        match described:
            case inspect.Metadata(type=inner):
                return self._visit(inner, path)
            case inspect.StructType():
                return self._visit_struct(described, path)
            case inspect.UnionType(types=types):
                return self._visit_union(types, path)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                return 1 + self._visit(item, f"{path}[]")
            case inspect.TupleType(item_types=items):
                return 1 + max((self._visit(item, f"{path}[{i}]") for i, item in enumerate(items)), default=0)
            case inspect.NamedTupleType(fields=fields):
                return 1 + max((self._visit(field.type, f"{path}.{field.name}") for field in fields), default=0)
            case inspect.DictType(key_type=key, value_type=value):
                if not isinstance(key, inspect.StrType | inspect.AnyType):
                    self._refuse(path, "the names of an object's members are text; use dict[str, …]")
                self._has_mapping = True
                return 1 + self._visit(value, f"{path}{{}}")
            case inspect.RawType():
                self._has_free_form = True
                return math.inf
        self._visit_leaf(described, path)
        return 0

    def _visit_leaf(self, described: inspect.Type, path: str) -> None:
        match described:
            case inspect.DateTimeType() | inspect.DecimalType():
                self._has_watched = True
            case inspect.NoneType():
                self._has_null = True
            case inspect.LiteralType(values=values):
                self._has_null |= None in values
            case inspect.EnumType(cls=cls):
                if issubclass(cls, enum.Flag):
                    self._refuse(path, f"{cls.__name__} is a set of flags, which has no member to write; use a list")
            case inspect.AnyType():
                self._refuse(path, f"a value of any type has no fixed shape; {_FREE_FORM_ADVICE}")
            case inspect.SetType() | inspect.FrozenSetType():
                self._refuse(path, "a set has no order of its own, so its JSON would vary; use a list or a tuple")
            case inspect.DataclassType(cls=cls) | inspect.TypedDictType(cls=cls):
                self._refuse(path, f"{cls.__name__} drops unknown members when it is read; use a {_STRICT_ADVICE}")
            case _ if not isinstance(described, _SIMPLE):
                name = getattr(getattr(described, "cls", described), "__name__", type(described).__name__)
                self._refuse(path, f"{name} is no type that JSON can hold; {_FREE_FORM_ADVICE}")

    def _visit_struct(self, described: inspect.StructType, path: str) -> float:
        cls: type[Any] = described.cls
        if cls in self._levels:
            return self._levels[cls]
        self._levels[cls] = math.inf  # until it is known; a record that holds itself has no end
        if not described.forbid_unknown_fields:
            self._refuse(path, f"{cls.__name__} drops unknown members when it is read; make it a {_STRICT_ADVICE}")
        if len(described.fields) > MEMBERS_MAX:
            self._refuse(path, f"{cls.__name__} has {len(described.fields)} members, the limit is {MEMBERS_MAX}")
        levels = [self._visit(field.type, f"{path}.{field.encode_name}") for field in described.fields]
        self._levels[cls] = 1 + max(levels, default=0)
        return self._levels[cls]

    def _visit_union(self, types: tuple[inspect.Type, ...], path: str) -> float:
        held = [each for each in types if not isinstance(each, inspect.NoneType)]
        self._has_null |= len(held) < len(types)
        if len(held) > 1 and not all(isinstance(each, inspect.StructType) for each in held):
            self._refuse(path, "a union is of one type and None, or of tagged structs (tag=True); split the member")
            return 0
        return max((self._visit(each, path) for each in held), default=0)
