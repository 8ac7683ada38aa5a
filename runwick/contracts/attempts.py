"""An attempt as its worker holds it, from the claim's answer until its settlement has committed."""

from collections.abc import Sequence

import msgspec

from runwick.contracts.limits import Fence
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority


class Kind(msgspec.Struct, frozen=True, order=True):
    """What a worker must know to decode a job: its stored name and payload version."""

    name: str
    version: int


class Lane(msgspec.Struct, frozen=True, order=True):
    """One queue × priority pair."""

    queue: str
    priority: Priority


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One claim of a job by a worker. Ids are 16 raw bytes; `runwick.contracts.identity` shows them as UUIDs."""

    job: int
    """The store's own key of the job; means nothing outside the store that gave it."""
    job_id: bytes
    attempt_id: bytes
    claim_token: bytes
    """The proof of ownership that every later write carries. One per claim call, so a repeated claim is known by it."""
    kind: Kind
    lane: Lane
    number: int
    """1 for the generation's first attempt."""
    execution: int
    """Which charged execution of the generation this is, from 1; this attempt included once it is begun."""
    generation: int
    begun: bool
    """Whether the claim authorised the handler already; False for a payload that is read at hand-over."""
    runs_ahead: bool
    """Whether it may be handed to an executor that is busy."""
    crashes: int
    """Earlier attempts of the generation that killed their executor."""
    unstarted: int
    """Claims in a row, before this one, that never began."""
    policy: JobPolicy
    payload: bytes | None
    """JSON of the profile; None when `begin` reads it, for it is larger than `PAYLOAD_INLINE_MAX_BYTES`."""
    payload_bytes: int
    created_at_ms: int
    metadata: bytes | None = None
    """A JSON object of text to text, or None."""
    tenant: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    holds: int = 0
    """Scopes it holds until it ends."""
    fences: tuple[Fence, ...] = ()
    """One for each resource of capacity 1 that it holds, in the order declared."""


PAYLOAD_INLINE_MAX_BYTES = 64 * 1024
"""A larger payload is not carried by the claim: it is read when the attempt is handed over. That of a job with rate
windows always is, for its run is charged to them where it begins."""

CLAIM_MAX_ATTEMPTS = 128
"""One claim call takes at most this many, whatever its plan allows."""


class LaneTurn(msgspec.Struct, frozen=True):
    """One lane's share of a claim call."""

    lane: Lane
    most: int
    """At most this many of its jobs."""
    waited_ms: int = 0
    """Only those that have been due for so long."""


class ClaimPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one claim call asks for. Turns are taken in order; order within a lane is due time, then job id.

    The first `free` jobs may be any; after them only jobs that may run ahead, up to `ahead` more. A job that may
    not run ahead ends the claim where it stands: nothing behind it in any lane is taken.
    """

    application: str
    worker: bytes
    """The worker's presence id."""
    claim_token: bytes
    turns: Sequence[LaneTurn]
    """A lane stands there at most once."""
    kinds: frozenset[Kind]
    """Only these are claimed: what this worker can decode."""
    free: int
    """Executors that wait for work."""
    ahead: int
    """Jobs that may be handed to executors that are still busy."""
    payload_bytes: int
    """The claim ends when its payloads reach this size; it always takes at least one."""
    lease_ms: int


class Claim(msgspec.Struct, frozen=True):
    """The answer to a claim call."""

    attempts: list[Attempt]
    next_due_in_ms: int | None
    """When nothing was found: milliseconds until the lanes' next job is due, None when there is none."""
    stopped_at_lone: bool = False
    """The claim met a job that may not run ahead and stopped there."""
    again: bool = False
    """It moved so many jobs aside that it looked no further: there may be more to take, ask again at once."""
    called_in_ms: Sequence[int] = ()
    """In how many milliseconds jobs become due that it promised a place in a rate window; 0 for those that it called
    out of a line."""
    parked: int = 0
    """Jobs that it moved into a limit's line."""
    deferred: int = 0
    """Jobs that it moved to a later due time, for a rate window was full."""


class Held(msgspec.Struct, frozen=True):
    """One attempt to renew."""

    job: int
    claim_token: bytes


class Begun(msgspec.Struct, frozen=True):
    """The answer to `begin`."""

    attempt: Attempt | None
    """Authorised, charged and with its payload; None when it may not run."""
    ended: str | None = None
    """Why its job was closed instead: ``cancel_requested`` or ``expired``. None when it is no longer the caller's."""


class WorkerPresence(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells about itself with every renewal."""

    worker: bytes
    application: str
    host: str
    process: int
    queues: Sequence[str]
    executors: int
    kinds: Sequence[Kind] | None = None
    """What it decodes; None leaves what was told before."""
