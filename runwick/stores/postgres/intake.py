"""What keeps jobs from being claimed the narrow way, as one store object knows it: pauses and caps.

Whatever changes one of these raises the application's number in the same transaction. A claim shows the number that it
was planned with, and takes nothing under another one::

    standing ──▶ claim: the number is still that? ──no──▶ forget, read anew, claim once more
                                │ yes
                                ▼ takes

So a claim that begins after a pause was answered takes nothing of that queue, and asks for no more than one number.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from runwick.stores.postgres import packed
from runwick.stores.steps import Preparation, Steps


class Standing(NamedTuple):
    """How an application stood at one moment."""

    revision: int
    """Its number then."""
    paused: frozenset[str]
    """Queues."""
    capped_queues: Mapping[str, bytes]
    """Queues that have a scope, and its id."""
    capped_names: Mapping[str, bytes]
    """Names of jobs, likewise."""


class IntakeCache:
    """What one store object knows of each application. Threads may share it.

    Args:
        reading: answers the gate's parameters of a statement that reads.
    """

    def __init__(self, reading: Callable[[], tuple[Any, ...]]) -> None:
        self._reading: Final = reading
        self._standings: Final[dict[int, Standing]] = {}

    def of(self, application: int) -> Steps[Standing]:
        """How the application with this number stands, as far as is known here; read where nothing is."""
        standing = self._standings.get(application)
        if standing is None:
            rows = yield Preparation("intake", (*self._reading(), packed.number(application)))
            standing = self._standings[application] = _standing(rows)
        return standing

    def forget(self, application: int) -> None:
        """Read anew the next time: the application's number is another one."""
        self._standings.pop(application, None)

    def clear(self) -> None:
        """Know nothing again."""
        self._standings.clear()


def _standing(rows: list[tuple[str, str | None, bytes | None, int | None]]) -> Standing:
    paused: set[str] = set()
    capped: dict[str, dict[str, bytes]] = {"queue": {}, "job-type": {}}
    revision = 0
    for what, key, scope, number in rows:
        if number is not None:
            revision = number
        elif key is not None and scope is None:
            paused.add(key)
        elif key is not None and scope is not None:
            capped[what][key] = scope
    return Standing(revision, frozenset(paused), capped["queue"], capped["job-type"])
