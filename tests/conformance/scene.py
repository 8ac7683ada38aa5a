"""A store in which every act has something to do, and the acts by name.

An act that is new to the store protocol has no entry here, and a test says so: what admission and identity mean for it
has to be decided.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from runwick.contracts.administration import ApplicationStatus
from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.dispatching import Command
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, JobRecord, Outlook, Store
from tests.conformance.ground import APPLICATION, HIGH, KINDS, LARGE, LEASE_MS, LOW, MEDIUM, SUCCESS, Bench, held

LANES = (HIGH, MEDIUM, LOW)
NEW_LANE = Lane("letters", Priority.HIGH)
NEW_KIND = Kind("letters.print", 1)


class Scene(NamedTuple):
    """What stands in the store."""

    dispatched: Command
    """Its job waits and is due."""
    running: Attempt
    reserved: Attempt
    expired: Attempt
    """Its lease has run out, and nobody has looked."""

    @property
    def job_ids(self) -> list[bytes]:
        return [self.dispatched.job_id, self.running.job_id, self.reserved.job_id, self.expired.job_id]


class Seen(NamedTuple):
    """All that the reads tell of a scene."""

    jobs: list[JobRecord | None]
    outlook: Outlook
    applications: list[ApplicationStatus]


def set_scene(bench: Bench) -> Scene:
    """Make a scene in an empty store. Its worker is alive."""
    bench.run(bench.store.renew(bench.presence(), [], LEASE_MS, 1_000))
    bench.dispatch()
    (expired,) = bench.claim(lease_ms=1).attempts
    bench.clock.advance_ms(1)
    running, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    dispatched = bench.command()
    bench.run(bench.store.dispatch([dispatched]))
    return Scene(dispatched, running, reserved, expired)


def seen(bench: Bench, scene: Scene, store: Store | None = None) -> Seen:
    """What can be read now, through another store object if one is given."""
    store = store or bench.store
    return Seen(
        [store.run(store.job(APPLICATION, job_id)) for job_id in scene.job_ids],
        store.run(store.outlook(APPLICATION, LANES, KINDS)),
        list(bench.administration.status().applications),
    )


def _recover(bench: Bench, scene: Scene) -> Act[int]:
    outcome = Outcome(OutcomeKind.ABANDONED, code="lease_lost")
    return bench.store.recover(
        APPLICATION, lambda expired: Settlement(expired.attempt, outcome, JobState.RETRYING, delay_ms=0), 100
    )


ACTS: Final[Mapping[str, Callable[[Bench, Scene], Act[Any]]]] = {
    "dispatch": lambda bench, scene: bench.store.dispatch([bench.command()]),
    "resolve": lambda bench, scene: bench.store.resolve(APPLICATION, scene.dispatched.operation_id),
    "register": lambda bench, scene: bench.store.register(APPLICATION, [NEW_LANE], frozenset({NEW_KIND})),
    "claim": lambda bench, scene: bench.store.claim(bench.plan()),
    "begin": lambda bench, scene: bench.store.begin(scene.reserved),
    "release": lambda bench, scene: bench.store.release([scene.running]),
    "settle": lambda bench, scene: bench.store.settle([Settlement(scene.running, SUCCESS, JobState.SUCCEEDED)]),
    "renew": lambda bench, scene: bench.store.renew(bench.presence(), held(scene.running), LEASE_MS, 1_000),
    "recover": _recover,
    "depart": lambda bench, scene: bench.store.depart(bench.presence()),
    "job": lambda bench, scene: bench.store.job(APPLICATION, scene.running.job_id),
    "outlook": lambda bench, scene: bench.store.outlook(APPLICATION, LANES, KINDS),
    "costliest": lambda bench, scene: bench.store.costliest(APPLICATION, "cpu_us", 10),
}
"""Each act of the protocol, doing something to the scene (reads aside)."""

READS: Final = frozenset({"resolve", "job", "outlook", "costliest"})


def acts_of_the_protocol() -> set[str]:
    """The methods of `Store` that make an act."""
    methods = inspect.getmembers(Store, inspect.isfunction)
    return {name for name, method in methods if typing.get_origin(typing.get_type_hints(method).get("return")) is Act}
