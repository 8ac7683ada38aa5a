"""Records for tests of the wire."""

import datetime
import decimal
import enum
import uuid

import msgspec

from runwick import Job


class Thumbnail(Job):
    path: str
    width: int = 256


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"


class Circle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag=True):
    radius: float


class Square(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag=True):
    side: float


class Drawing(Job):
    """One field of every kind that a payload may have."""

    drawing_id: uuid.UUID
    size: Size = Size.SMALL
    shape: Circle | Square | None = None
    drawn_at: datetime.datetime | None = None
    price: decimal.Decimal | None = None
    day: datetime.date | None = None
    lasts: datetime.timedelta | None = None
    scale: float = 1.0
    title: str | None = None
    picture: bytes = b""
    points: list[tuple[int, int]] = msgspec.field(default_factory=list)
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Tree(Job):
    """As deep as one likes."""

    children: list["Tree"] = msgspec.field(default_factory=list)


class Anything(Job):
    value: msgspec.Raw
    weight: float | None = None
