"""A store in which every act has something to do, and the acts by name.

An act that is new to the store protocol has no entry here, and a test says so: what admission and identity mean for it
has to be decided. Controls and steering are named
after what they do.
"""

import enum
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.administration import ApplicationStatus
from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.controls import ControlAction, ControlReply, JobTarget, SteerAction
from runwick.contracts.dispatching import Command
from runwick.contracts.history import AuditRecord
from runwick.contracts.limits import LimitKind, QueueRecord, RateRecord, ScopeRecord
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, JobRecord, Outlook, Store
from tests.conformance.ground import (
    APPLICATION,
    FAILURE,
    HIGH,
    KINDS,
    LARGE,
    LEASE_MS,
    LOW,
    MEDIUM,
    RECOVERY_MS,
    SEND,
    SUCCESS,
    Bench,
    held,
    resource,
    window,
)

LANES = (HIGH, MEDIUM, LOW)
NEW_LANE = Lane("letters", Priority.HIGH)
NEW_KIND = Kind("letters.print", 1)
MAILS = Lane("mails", Priority.HIGH)
INVOICES = Lane("invoices", Priority.HIGH)


class Scene(NamedTuple):
    """What stands in the store."""

    dispatched: Command
    """Its job waits and is due."""
    running: Attempt
    """Its begun mark is known."""
    reserved: Attempt
    lapsed: Attempt
    """Its lease has run out, and nobody has looked."""
    overdue: bytes
    """It waits past its expiry, and nobody has looked."""
    failed: bytes
    succeeded: bytes
    targets: Mapping[bytes, JobTarget]
    """All these jobs as they stand in the scene."""

    @property
    def job_ids(self) -> list[bytes]:
        return list(self.targets)


class Seen(NamedTuple):
    """All that the reads tell of a scene."""

    jobs: list[JobRecord | None]
    outlook: Outlook
    audit: list[AuditRecord]
    workers: list[WorkerRecord]
    applications: list[ApplicationStatus]
    queues: list[QueueRecord]
    scopes: list[ScopeRecord]
    rates: list[RateRecord]


def set_scene(bench: Bench) -> Scene:
    """Make a scene in an empty store. Its worker is alive."""
    _set_limits(bench)
    bench.renew()
    succeeded, failed = bench.claimed(), bench.claimed()
    bench.succeed(succeeded)
    bench.settle(failed, FAILURE, JobState.FAILED, code="executions_exhausted")
    bench.dispatch()
    (lapsed,) = bench.claim(lease_ms=1).attempts
    (overdue,) = bench.dispatch(delay_ms=3_600_000, expires_in_ms=1)
    bench.clock.advance_ms(1)
    running, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    bench.marked(running)
    dispatched = bench.command()
    bench.run(bench.store.dispatch([dispatched]))
    attempts = (running, reserved, lapsed, failed, succeeded)
    job_ids = [dispatched.job_id, overdue, *(attempt.job_id for attempt in attempts)]
    targets = {job_id: bench.target(job_id) for job_id in job_ids}
    return Scene(dispatched, running, reserved, lapsed, overdue, failed.job_id, succeeded.job_id, targets)


def _set_limits(bench: Bench) -> None:
    """A queue that is paused; a scope; and a job in the line of a window that has room again, for the one
    that was promised it has not come."""
    bench.dispatch(lane=INVOICES, scopes=(resource("printer", 2),))
    bench.pause("invoices")
    bench.dispatch(3, kind=SEND, lane=MAILS, rates=(window("provider", 1),))
    (granted,) = bench.claim(lanes=[MAILS]).attempts
    bench.succeed(granted)
    bench.clock.advance_ms(1_250)


def seen(bench: Bench, scene: Scene, store: Store | None = None) -> Seen:
    """What can be read now, through another store object if one is given."""
    store = store or bench.store
    return Seen(
        [store.run(store.job(APPLICATION, job_id)) for job_id in scene.job_ids],
        store.run(store.outlook(APPLICATION, LANES, KINDS)),
        list(store.run(store.audit(APPLICATION, None, 100)).records),
        store.run(store.workers(APPLICATION)),
        list(bench.administration.status().applications),
        store.run(store.queues(APPLICATION)),
        store.run(store.scopes(APPLICATION, LimitKind.RESOURCE, None, 100)),
        store.run(store.rates(APPLICATION, LimitKind.RESOURCE, None, 100)),
    )


def _recover(bench: Bench, scene: Scene) -> Act[int]:
    outcome = Outcome(OutcomeKind.ABANDONED, code="lease_lost")
    return bench.store.recover(
        APPLICATION, lambda attempt: Settlement(attempt, outcome, JobState.RETRYING, delay_ms=0), 100
    )


def _control(action: ControlAction, of: Callable[[Scene], bytes]) -> Callable[[Bench, Scene], Act[ControlReply]]:
    return lambda bench, scene: bench.store.control(bench.order(action, scene.targets[of(scene)]))


ACTS: Final[Mapping[str, Callable[[Bench, Scene], Act[Any]]]] = {
    "dispatch": lambda bench, scene: bench.store.dispatch([bench.command()]),
    "resolve": lambda bench, scene: bench.store.resolve(APPLICATION, scene.dispatched.operation_id),
    "register": lambda bench, scene: bench.store.register(APPLICATION, [NEW_LANE], frozenset({NEW_KIND})),
    "claim": lambda bench, scene: bench.store.claim(bench.plan()),
    "begin": lambda bench, scene: bench.store.begin(scene.reserved),
    "release": lambda bench, scene: bench.store.release([scene.running]),
    "settle": lambda bench, scene: bench.store.settle([Settlement(scene.running, SUCCESS, JobState.SUCCEEDED)]),
    "renew": lambda bench, scene: bench.store.renew(bench.report(), held(scene.running), LEASE_MS, RECOVERY_MS),
    "recover": _recover,
    "expire": lambda bench, scene: bench.store.expire(APPLICATION, 100),
    "tend": lambda bench, scene: bench.store.tend(APPLICATION, None, 100),
    "depart": lambda bench, scene: bench.store.depart(bench.presence()),
    "cancel": _control(ControlAction.CANCEL, lambda scene: scene.dispatched.job_id),
    "retry": _control(ControlAction.RETRY, lambda scene: scene.failed),
    "rerun": _control(ControlAction.RERUN, lambda scene: scene.succeeded),
    "look": _control(ControlAction.LOOK, lambda scene: scene.running.job_id),
    "pause": lambda bench, scene: bench.store.steer(
        bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "reports", expected_revision=0)
    ),
    "resume": lambda bench, scene: bench.store.steer(
        bench.steering(SteerAction.RESUME, LimitKind.QUEUE, "invoices", expected_revision=1)
    ),
    "set_capacity": lambda bench, scene: bench.store.steer(
        bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=5, expected_revision=1)
    ),
    "reveal": lambda bench, scene: bench.store.reveal(bench.showing(Secret.PAYLOAD, scene.failed)),
    "jobs": lambda bench, scene: bench.store.jobs(APPLICATION, JobFilter(), None, None, 100),
    "runs": lambda bench, scene: bench.store.runs(APPLICATION, None, None, 100),
    "backlogs": lambda bench, scene: bench.store.backlogs(APPLICATION),
    "names": lambda bench, scene: bench.store.names(APPLICATION),
    "audited": lambda bench, scene: bench.store.audited(APPLICATION, AuditFilter(), None, 100),
    "events": lambda bench, scene: bench.store.events(APPLICATION, None, 100),
    "audit": lambda bench, scene: bench.store.audit(APPLICATION, None, 100),
    "workers": lambda bench, scene: bench.store.workers(APPLICATION),
    "stack": lambda bench, scene: bench.store.stack(APPLICATION, scene.running.attempt_id),
    "why": lambda bench, scene: bench.store.why(APPLICATION, scene.dispatched.job_id),
    "queues": lambda bench, scene: bench.store.queues(APPLICATION),
    "scopes": lambda bench, scene: bench.store.scopes(APPLICATION, LimitKind.RESOURCE, None, 100),
    "rates": lambda bench, scene: bench.store.rates(APPLICATION, LimitKind.RESOURCE, None, 100),
    "standing": lambda bench, scene: bench.store.standing(APPLICATION),
    "job": lambda bench, scene: bench.store.job(APPLICATION, scene.running.job_id),
    "outlook": lambda bench, scene: bench.store.outlook(APPLICATION, LANES, KINDS),
    "costliest": lambda bench, scene: bench.store.costliest(APPLICATION, "cpu_us", 10),
}
"""Each act of the protocol, doing something to the scene (reads aside)."""

READS: Final = frozenset(
    {
        "resolve",
        "jobs",
        "runs",
        "backlogs",
        "names",
        "audited",
        "events",
        "audit",
        "workers",
        "stack",
        "why",
        "queues",
        "scopes",
        "rates",
        "standing",
        "job",
        "outlook",
        "costliest",
    }
)


class Later(enum.StrEnum):
    """What a later release knows."""

    TIME_TRAVEL = "time_travel"


def as_a_later_release(bench: Bench) -> None:
    """Turn on what this release does not know."""
    later: Any = Later.TIME_TRAVEL
    assert bench.administration.activate(later, APPLICATION, "operator")


def acts_of_the_protocol() -> set[str]:
    """The names of all acts that `Store` makes: its methods', and of controls and steering each action's."""
    methods = inspect.getmembers(Store, inspect.isfunction)
    names = {name for name, method in methods if typing.get_origin(typing.get_type_hints(method).get("return")) is Act}
    return names - {"control", "steer"} | {action.value for action in (*ControlAction, *SteerAction)}
