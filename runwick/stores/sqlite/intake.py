"""What may be claimed, as far as it is the same for many jobs: paused queues, scopes of queues and of job types.

It seldom changes. Its revision is read by each claim with the heights of the interned tables, and it is read anew when
that differs.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from runwick.contracts.attempts import Lane
from runwick.contracts.limits import LimitKind


class Intake(NamedTuple):
    """As it stood at one revision."""

    revision: int = 0
    paused: frozenset[tuple[int, str]] = frozenset()
    """Application and queue."""
    scopes: Mapping[tuple[int, str, str], bytes] = {}
    """Application, kind and key of a scope to its id."""

    def scopes_of(self, application: int, queue: str, name: str) -> list[bytes]:
        """The scopes that all jobs of this queue or of this name need."""
        if not self.scopes:
            return []
        keys = ((application, LimitKind.QUEUE.value, queue), (application, LimitKind.JOB_TYPE.value, name))
        return [self.scopes[key] for key in keys if key in self.scopes]

    def paused_lanes(self, lanes: Mapping[int, tuple[int, Lane]]) -> list[int]:
        """The numbers of those lanes whose queue is paused."""
        if not self.paused:
            return []
        return [number for number, (application, lane) in lanes.items() if (application, lane.queue) in self.paused]


def intake_of(revision: int, rows: Iterable[tuple[int, str, str, bytes | None]]) -> Intake:
    """What the rows of ``intake.sql`` say."""
    paused: set[tuple[int, str]] = set()
    scopes: dict[tuple[int, str, str], bytes] = {}
    for application, what, key, scope in rows:
        if scope is None:
            paused.add((application, key))
        else:
            scopes[application, what, key] = scope
    return Intake(revision, frozenset(paused), scopes)
