"""The small numbers behind applications, lanes, kinds and policies, as one store object has learned them.

Jobs share a few names by the million, so their rows carry numbers. A number is remembered only when it was read, in a
transaction of its own that came after the one that made it; so none is remembered that a rollback takes away::

    what an act needs ──▶ known? ──no──▶ read them ──▶ known? ──no──▶ make them (they commit) ──▶ read them

That nobody uses a number that was made does no harm.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import LimitKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.stores.postgres import packed
from runwick.stores.steps import Preparation, Steps


class Wanted(msgspec.Struct, frozen=True):
    """Names of one application whose numbers an act needs."""

    application: str
    lanes: Sequence[Lane] = ()
    kinds: Sequence[Kind] = ()
    policies: Sequence[JobPolicy] = ()


class Intake(NamedTuple):
    """What a worker takes, in numbers."""

    application: int
    lanes: tuple[int, ...]
    kinds: frozenset[int]


_INTAKES_MAX: Final = 64
"""Of more intakes than that, all are made out anew."""


class Names:
    """What one store object knows of the names in its store.

    Args:
        gate: answers the gate's parameters.
    """

    def __init__(self, gate: Callable[[], tuple[Any, ...]]) -> None:
        self.applications: Final[dict[str, int]] = {}
        self.lanes: Final[dict[tuple[int, Lane], int]] = {}
        self.kinds: Final[dict[tuple[int, Kind], int]] = {}
        self.policies: Final[dict[JobPolicy, int]] = {}
        self.lane_of: Final[dict[int, Lane]] = {}
        self.kind_of: Final[dict[int, Kind]] = {}
        self.policy_of: Final[dict[int, JobPolicy]] = {}
        self.scopes: Final[set[tuple[str, LimitKind, str]]] = set()
        """Scopes of queues and job types that exist: application, kind, key."""
        self.serves: Final[set[int]] = set()
        """Applications that a worker of this process serves."""
        self._intakes: Final[dict[tuple[str, tuple[Lane, ...], frozenset[Kind]], Intake]] = {}
        self._gate = gate

    def of_job(self, application: str, lane: Lane, kind: Kind, policy: JobPolicy) -> tuple[int, int, int, int] | None:
        """The numbers of application, lane, kind and policy, as far as all are known here."""
        try:
            number = self.applications[application]
            return number, self.lanes[number, lane], self.kinds[number, kind], self.policies[policy]
        except KeyError:
            return None

    def find(self, wanted: Wanted) -> Steps[int | None]:
        """Learn the numbers of these names, as far as they have any; answers the application's."""
        missing = self._missing(wanted)
        if missing is not None:
            yield from self._read(missing)
        return self.applications.get(wanted.application)

    def intake(self, application: str, lanes: Sequence[Lane], kinds: frozenset[Kind]) -> Steps[Intake | None]:
        """What a worker of these takes. Without what has no number yet, for that has no jobs either; None when the
        application is such."""
        key = application, tuple(lanes), kinds
        intake = self._intakes.get(key)
        if intake is not None:
            return intake
        number = yield from self.find(Wanted(application, lanes, tuple(kinds)))
        if number is None:
            return None
        known_lanes = tuple(known for lane in lanes if (known := self.lanes.get((number, lane))) is not None)
        known_kinds = frozenset(known for kind in kinds if (known := self.kinds.get((number, kind))) is not None)
        intake = Intake(number, known_lanes, known_kinds)
        if (len(known_lanes), len(known_kinds)) == (len(lanes), len(kinds)):
            if len(self._intakes) >= _INTAKES_MAX:
                self._intakes.clear()
            self._intakes[key] = intake
        return intake

    def make(self, wanted: Wanted, act: str) -> Steps[int]:
        """Learn the numbers of these names, and make those that do not exist; answers the application's.

        Raises (when run):
            AdmissionClosed: there are some to make, which the application's mode does not let that act do.
        """
        yield from self.find(wanted)
        if wanted.application not in self.applications:
            yield Preparation("application_add", (*self._gate(), act, wanted.application))
            yield from self.find(wanted)
        application = self.applications[wanted.application]
        if (missing := self._missing(wanted)) is not None:
            parameters = (*self._gate(), act, packed.number(application), *_columns(missing))
            yield Preparation("names_add", parameters)
            yield from self._read(missing)
        return application

    def read(self, lanes: Iterable[int] = (), kinds: Iterable[int] = (), policies: Iterable[int] = ()) -> Steps[None]:
        """Learn what these numbers stand for."""
        unknown = (
            [number for number in set(lanes) if number not in self.lane_of],
            [number for number in set(kinds) if number not in self.kind_of],
            [number for number in set(policies) if number not in self.policy_of],
        )
        if not any(unknown):
            return
        for what, number, text, more in (yield Preparation("named", tuple(map(packed.numbers, unknown)))):
            if what == "lane":
                self.lane_of[number] = Lane(text, Priority(more))
            elif what == "kind":
                self.kind_of[number] = Kind(text, int(more))
            else:
                self.policy_of[number] = msgspec.json.decode(text, type=JobPolicy)

    def _missing(self, wanted: Wanted) -> Wanted | None:
        """What of it has no number here; None when there is nothing."""
        application = self.applications.get(wanted.application)
        if application is None:
            return wanted
        lanes = [lane for lane in wanted.lanes if (application, lane) not in self.lanes]
        kinds = [kind for kind in wanted.kinds if (application, kind) not in self.kinds]
        policies = [policy for policy in wanted.policies if policy not in self.policies]
        return Wanted(wanted.application, lanes, kinds, policies) if lanes or kinds or policies else None

    def _read(self, wanted: Wanted) -> Steps[None]:
        rows = yield Preparation("names", (*self._gate()[:3], wanted.application, *_columns(wanted)))
        application = next((number for what, number, _ in rows if what == "application"), None)
        for what, number, place in rows:
            if what == "policy":
                policy = wanted.policies[place - 1]
                self.policies[policy], self.policy_of[number] = number, policy
            elif application is None:
                continue
            elif what == "application":
                self.applications[wanted.application] = number
            elif what == "lane":
                lane = wanted.lanes[place - 1]
                self.lanes[application, lane], self.lane_of[number] = number, lane
            else:
                kind = wanted.kinds[place - 1]
                self.kinds[application, kind], self.kind_of[number] = number, kind


def _columns(wanted: Wanted) -> tuple[Any, ...]:
    return (
        packed.texts([lane.queue for lane in wanted.lanes]),
        packed.texts([lane.priority.value for lane in wanted.lanes]),
        packed.texts([kind.name for kind in wanted.kinds]),
        packed.numbers([kind.version for kind in wanted.kinds]),
        packed.texts([msgspec.json.encode(policy).decode() for policy in wanted.policies]),
    )
