"""What the acts of one store object know besides their arguments: the store it is bound to, and what it has learned."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from runwick.contracts.administration import Capability
from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.claims import Claims
from runwick.stores.postgres.intake import IntakeCache
from runwick.stores.postgres.marks import Marks
from runwick.stores.postgres.names import Names
from runwick.stores.postgres.revision import REVISION
from runwick.stores.steps import Steps

T = TypeVar("T")

_REVISION: Final = packed.number(REVISION)
_UNSAFE: Final = packed.flag(True)
_KNOWN: Final = packed.texts(sorted(Capability))


class Place(Protocol):
    """The store that was met, as the driver knows it."""

    @property
    def store_id(self) -> bytes | None: ...

    @property
    def profile(self) -> str: ...

    def may_tell(self) -> bool: ...


class Bound:
    """One store object's ground.

    Args:
        place: the store.
        allow_unsafe: whether the operator accepts that confirmed work can be lost.
        clock: for durations alone; every other time is the store's.
        ids: identities for attempts.
    """

    def __init__(self, place: Place, *, allow_unsafe: bool, clock: Clock, ids: Ids) -> None:
        self.ids: Final = ids
        self.names: Final = Names(self.gate)
        self.intake: Final = IntakeCache(self.reading)
        self.marks: Final = Marks(clock)
        self.claims: Final = Claims()
        self._place = place
        self._allow_unsafe = packed.flag(allow_unsafe)

    @property
    def store_id(self) -> bytes:
        """The identity of the store; a connection that is open has met it."""
        store_id = self._place.store_id
        assert store_id is not None
        return store_id

    @property
    def profile(self) -> str:
        """The durability rule that a receipt confirms."""
        return self._place.profile

    def may_tell(self) -> bool:
        """Whether a transaction that makes work due may tell so by itself."""
        return self._place.may_tell()

    def gate(self) -> tuple[Any, ...]:
        """$1 to $4 of every statement that writes; of one that reads, `reading`."""
        return packed.Id(self.store_id), _REVISION, self._allow_unsafe, _KNOWN

    def reading(self) -> tuple[Any, ...]:
        """$1 to $3 of a statement that reads: it needs revision and identity, and no durability."""
        return packed.Id(self.store_id), _REVISION, _UNSAFE

    def forget(self) -> None:
        """Look at everything anew. Names stay known: it is the same store, whose names are only ever added to, and
        acts may be under way that use them."""
        self.intake.clear()
        self.marks.forget()
        self.claims.forget()


class Due(set[int]):
    """The numbers of the applications for which an act made work due."""

    __slots__ = ("is_told", "owed")

    def __init__(self) -> None:
        self.is_told = False
        """Whether the act's own transaction has told other processes."""
        self.owed: dict[bytes, int] = {}
        """Limits that it left idle, and how many calls each is owed."""


class MakesDue(Act[T]):
    """An act that may make work due: once it has run, `due` says for whom.

    Args:
        name: as ever.
        steps: makes the steps, given what to fill.
    """

    __slots__ = ("due",)

    def __init__(self, name: str, steps: Callable[[Due], Steps[T]]) -> None:
        self.due: Final = Due()
        super().__init__(name, lambda: steps(self.due))
