"""The small numbers behind applications, lanes, kinds and policies, as one store object has read them.

Jobs share a few names by the million, so their rows carry numbers. `Interned` holds what it has *read*; a number
that an act has just made is known to that act alone (`Naming`), until a later act reads it. So a number that was
rolled back is never remembered, and nobody needs to hear of commits.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.stores.sqlite.intake import Intake, intake_of
from runwick.stores.steps import Step, Steps

V = TypeVar("V")


class Table(Generic[V]):
    """One interned table: numbers by value and values by number."""

    def __init__(
        self, added_after: str, add: str, read: Callable[..., V], write: Callable[[V], tuple[int | str, ...]]
    ) -> None:
        self.added_after: Final = added_after
        self.add: Final = add
        self.write: Final = write
        self.ids: dict[V, int] = {}
        self.values: dict[int, V] = {}
        self.height = 0
        self._read = read

    def learn(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Remember rows of ``id, …``. Safe in two threads at once: the height rises after what lies below it."""
        height = self.height
        for number, *columns in rows:
            value = self._read(*columns)
            self.values[number] = value
            self.ids[value] = number
            height = max(height, number)
        self.height = max(self.height, height)

    def forget(self) -> None:
        """Know nothing again."""
        self.height = 0
        self.ids.clear()
        self.values.clear()


class Interned:
    """What one store object knows of the interned tables."""

    def __init__(self) -> None:
        self.applications: Table[str] = Table(
            "interned_applications", "intern_application", lambda name: name, lambda name: (name,)
        )
        self.lanes: Table[tuple[int, Lane]] = Table(
            "interned_lanes",
            "intern_lane",
            lambda application, queue, priority: (application, Lane(queue, Priority(priority))),
            lambda lane: (lane[0], lane[1].queue, lane[1].priority.value),
        )
        self.kinds: Table[tuple[int, Kind]] = Table(
            "interned_kinds",
            "intern_kind",
            lambda application, name, version: (application, Kind(name, version)),
            lambda kind: (kind[0], kind[1].name, kind[1].version),
        )
        self.policies: Table[JobPolicy] = Table(
            "interned_policies",
            "intern_policy",
            lambda json: msgspec.json.decode(json, type=JobPolicy),
            lambda policy: (msgspec.json.encode(policy).decode(),),
        )
        self.intake = Intake()
        """As it was last read; an act goes by what `refresh` answers."""
        self.looked: dict[tuple[bytes, int], bytes] = {}
        """By limit and rank of its line: the job from which on to look, where many of paused queues stand in front."""
        self._news = False

    def forget(self) -> None:
        """Know nothing again: the next act may meet another file, which has numbers of its own."""
        tables: tuple[Table[Any], ...] = (self.applications, self.lanes, self.kinds, self.policies)
        for table in tables:
            table.forget()
        self.intake = Intake()
        self.looked = {}

    def made_names(self) -> None:
        """An act of this store object made names, or changed what may be claimed; it is not committed yet."""
        self._news = True

    def has_news(self) -> bool:
        """Whether names were made since this was asked last. No other act may join that transaction: it would
        remember names that a rollback takes away."""
        news, self._news = self._news, False
        return news

    def refresh(self) -> Steps[Intake]:
        """Read what was added since the last time, and what may be claimed; one small statement when nothing is new."""
        ((*heights, revision),) = yield Step("interned_heights")
        tables: tuple[Table[Any], ...] = (self.applications, self.lanes, self.kinds, self.policies)
        for table, height in zip(tables, heights, strict=True):
            if height > table.height:
                table.learn((yield Step(table.added_after, (table.height,))))
        intake = self.intake
        if revision != intake.revision:
            # A reader may stand at an earlier moment than another act; what each answers is of its own.
            self.intake = intake = intake_of(revision, (yield Step("intake")))
            self.looked = {}
        return intake


class Naming:
    """One writing act's way to numbers; it makes those that do not exist yet."""

    def __init__(self, interned: Interned) -> None:
        self.interned: Final = interned
        self._made: dict[tuple[str, Any], int] = {}
        self._refreshed = False

    def number(self, table: Table[V], value: V) -> Steps[int]:
        """The number of `value` in `table`."""
        number = table.ids.get(value)
        if number is None and not self._refreshed:
            # At most once in an act, and before it makes any: what it reads here is committed.
            self._refreshed = True
            yield from self.interned.refresh()
            number = table.ids.get(value)
        if number is None:
            number = self._made.get((table.add, value))
        if number is None:
            ((number,),) = yield Step(table.add, table.write(value))
            self._made[table.add, value] = number
            self.interned.made_names()
        return number
