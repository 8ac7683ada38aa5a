"""Declared queues: those that need not be any job's own, and how much of each may run at once."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from runwick.contracts.errors import Problem
from runwick.contracts.jobs import JobSettings
from runwick.contracts.names import name_problem
from runwick.declarations.jobs import CheckSettings
from runwick.declarations.settings import Placed, conflicts
from runwick.declarations.suggestions import quoted


class DeclaredQueues:
    """Every queue that was declared, in the order of the declarations."""

    def __init__(self) -> None:
        self._where: dict[str, str] = {}
        self._capped: dict[str, list[Placed]] = {}
        self._misnamed: list[Problem] = []

    def add(self, name: str, max_concurrent: int | None, where: str) -> None:
        """One queue; it may come again. No limit says nothing against one that is given elsewhere."""
        if not isinstance(name, str):  # it may not even be hashable
            self._misnamed.append(_problem(name, where))
            return
        self._where.setdefault(name, where)
        if max_concurrent is not None:
            self._capped.setdefault(name, []).append(Placed(JobSettings(max_concurrent=max_concurrent), where))

    @property
    def names(self) -> frozenset[str]:
        """Those that are text; `problems` says which of them are no names."""
        return frozenset(self._where)

    @property
    def limits(self) -> Mapping[str, int]:
        """The most jobs that run at once, by queue, where that is limited and rightly so."""
        capacities = {name: placed[0].settings.max_concurrent for name, placed in self._capped.items()}
        return MappingProxyType({name: most for name, most in capacities.items() if isinstance(most, int)})

    def problems(self, check: CheckSettings) -> Iterator[Problem]:
        """Everything wrong with them."""
        yield from self._misnamed
        yield from (_problem(name, where) for name, where in self._where.items() if name_problem(name))
        for name, placed in self._capped.items():
            owner = f"queue {quoted(name)}"
            yield from conflicts(owner, placed)
            for settings, _ in placed:
                yield from check(owner, settings)


def _problem(name: object, where: str) -> Problem:
    setting = f"queue {quoted(name)}"
    return Problem("invalid_name", setting, f"{setting} (declared at {where}) is not a name: {name_problem(name)}.")
