"""Acts that go on: what one transaction may not do at once, others do behind it, and whoever waits gets in between."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from runwick.contracts.stores import Act
from runwick.stores.steps import Steps

T = TypeVar("T")

Rest = list[Act[Any]]
"""What is left to be done, in order."""

_FOLLOWING_MAX: Final = 64
"""Acts that follow one; the recovery pass does what is left then."""


class GoesOn(Act[T]):
    """An act after whose commit a worker may find work, and that may leave a rest.

    Args:
        name: as ever.
        steps: makes the steps, given what to add the rest to.
    """

    __slots__ = ("rest",)

    def __init__(self, name: str, steps: Callable[[Rest], Steps[T]]) -> None:
        self.rest: Final[Rest] = []
        super().__init__(name, lambda: self._anew(steps))

    def _anew(self, steps: Callable[[Rest], Steps[T]]) -> Steps[T]:
        self.rest.clear()
        return steps(self.rest)


def following(act: Act[Any]) -> Iterator[Act[Any]]:
    """What is to be run behind an act that is applied, each when the one before is."""
    left = [*act.rest] if isinstance(act, GoesOn) else []
    for _ in range(_FOLLOWING_MAX):
        if not left:
            return
        next_act = left.pop(0)
        yield next_act
        if isinstance(next_act, GoesOn):
            left += next_act.rest
