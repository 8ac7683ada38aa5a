"""What happens in a worker, as data. Events carry no payloads, no results, no credentials and no error text."""

from collections.abc import Sequence

import msgspec

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.attempts import Attempt
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import WorkerHealth
from runwick.contracts.limits import Drift
from runwick.contracts.outcomes import Settlement


class WorkerReady(msgspec.Struct, frozen=True):
    """The worker's backend is up and its loops run."""

    application: str
    executors: int


class Claimed(msgspec.Struct, frozen=True):
    """A claim found work."""

    attempts: Sequence[Attempt]
    seconds: float


class MovedAside(msgspec.Struct, frozen=True):
    """A claim met jobs whose limits are full."""

    parked: int
    """They wait in a limit's line."""
    deferred: int
    """They are due later, each when a rate window will have room for it."""


class LimitDrifted(msgspec.Struct, frozen=True):
    """A limit is declared otherwise than it stands in the store, which is what holds. Told once."""

    drift: Drift


class LimitsMended(msgspec.Struct, frozen=True):
    """A pass over the limits found scopes whose count of holds was wrong, and set it right. It is a fault of Runwick or
    of somebody who wrote into the store."""

    count: int


class LinesMoved(msgspec.Struct, frozen=True):
    """A pass over the limits called jobs out of lines that a crash had left there."""

    count: int


class Settled(msgspec.Struct, frozen=True):
    """These attempts' ends are durable."""

    settlements: Sequence[Settlement]
    seconds: float


class Released(msgspec.Struct, frozen=True):
    """These attempts went back uncharged; they never reached their handler."""

    attempts: Sequence[Attempt]


class EndedUnbegun(msgspec.Struct, frozen=True):
    """The jobs of these attempts ended before a handler began: somebody cancelled them, or they expired."""

    attempts: Sequence[Attempt]
    code: str
    """``cancel_requested`` or ``expired``."""


class AttemptAsked(msgspec.Struct, frozen=True):
    """A run is asked to stop: somebody cancelled its job, or its time limit is over."""

    attempt: Attempt
    cause: CancellationCause


class StackShown(msgspec.Struct, frozen=True):
    """The Python stack of a run, for the operator of this process alone: source lines may say more than a log should
    keep."""

    executor: ExecutorActivity
    text: str


class Recovered(msgspec.Struct, frozen=True):
    """A recovery pass closed attempts whose lease had run out."""

    count: int


class Expired(msgspec.Struct, frozen=True):
    """A recovery pass closed jobs that waited past their expiry."""

    count: int


class PredecessorRecovered(msgspec.Struct, frozen=True):
    """What a dead worker of this host had left was closed at once, before its leases ran out."""

    worker: bytes
    count: int


class LeaseLost(msgspec.Struct, frozen=True):
    """An attempt is no longer this worker's; nothing is written for it any more."""

    attempt: Attempt
    reason: str


class SettlementDelayed(msgspec.Struct, frozen=True):
    """The write of results failed and will be repeated."""

    attempts: int
    tries: int
    error: str
    pause_s: float
    overdue: bool = False
    """Whether it has gone on for longer than `completion_resolution_budget`; it is repeated all the same."""


class SettlementRefused(msgspec.Struct, frozen=True):
    """One result cannot be stored for its content; the job ends failed as ``settlement_rejected``."""

    attempt: Attempt
    error: str


class LoopFailed(msgspec.Struct, frozen=True):
    """A round of a loop raised for another reason than a store's refusal; the loop goes on after a pause."""

    loop: str
    error: str


class StoreCallFailed(msgspec.Struct, frozen=True):
    """The store does not answer or refuses; the call is repeated. Told once, until it is answered or fails
    otherwise."""

    act: str
    code: str
    error: str


class StoreCallAnswered(msgspec.Struct, frozen=True):
    """A call that failed is answered again."""

    act: str
    seconds: float
    """Since it first failed."""


class ClaimsRefused(msgspec.Struct, frozen=True):
    """The store admits no claims of this application: an operator drains or maintains it. Asked for again quietly."""

    reason: str


class ClaimsAdmitted(msgspec.Struct, frozen=True):
    """The store admits claims again."""

    seconds: float
    """Since they were first refused."""


class HealthSeen(msgspec.Struct, frozen=True):
    """A worker has looked at its health, as it does once a second while it lives."""

    health: WorkerHealth


class HealthChanged(msgspec.Struct, frozen=True):
    """A worker's health is another one than before."""

    health: WorkerHealth


class HistoryBroken(msgspec.Struct, frozen=True):
    """The store is another one than before or went back in time. The worker has stopped its runs, writes nothing more,
    and ends."""

    reason: str
    leases: int
    """How many attempts it held; all of them count as lost."""


class DrainStarted(msgspec.Struct, frozen=True):
    """The worker stops claiming and lets what runs end."""

    running: int


class WorkerStopped(msgspec.Struct, frozen=True):
    """The worker has said good-bye."""

    left_to_leases: int
    """Attempts whose end could not be written; their leases run out and recovery takes them."""
