"""What commands answer and read beyond the bodies of the API, in the same form."""

import uuid
from typing import Annotated

import msgspec

from runwick.management.bodies import Body, ControlBody, OverviewBody, WorkerListBody

_Number = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class TargetLine(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One line of ``jobs cancel-many --file``."""

    job_id: uuid.UUID
    expected_generation: _Number
    expected_revision: _Number


class ControlListBody(Body, frozen=True, kw_only=True):
    """What became of each job, in the order given; those with a code were refused."""

    results: tuple[ControlBody, ...]


class TopBody(Body, frozen=True, kw_only=True):
    """Figures, and the workers with their executors."""

    overview: OverviewBody
    workers: WorkerListBody


class ContextBody(Body, frozen=True, kw_only=True):
    """One saved server."""

    name: str
    url: str
    auth: str
    user: str | None
    secret_env: str | None
    current: bool


class ContextListBody(Body, frozen=True, kw_only=True):
    contexts: tuple[ContextBody, ...]


class LoginBody(Body, frozen=True, kw_only=True):
    """A server that lets somebody in."""

    url: str
    auth: str
    user: str | None


class CheckBody(Body, frozen=True, kw_only=True):
    """One thing that ``doctor`` looked at."""

    name: str
    status: str
    """``passed``, ``failed``, or ``unverified`` where it could not be looked at."""
    detail: str


class DoctorBody(Body, frozen=True, kw_only=True):
    checks: tuple[CheckBody, ...]


class SoundBody(Body, frozen=True, kw_only=True):
    """An application with which nothing is wrong, in sentences."""

    application: str
    store: str
    notes: tuple[str, ...]
    pools: tuple[str, ...]
    queues: tuple[str, ...]
    jobs: tuple[str, ...]
    timings: str
    executors: str


class WorkerHealthBody(Body, frozen=True, kw_only=True):
    """One worker on this host: the members of `runwick.contracts.health.RoleCheck`, and whose they are."""

    application: str | None
    """Null while it is not loaded yet."""
    program: str
    process: int
    worker: str | None
    role: str
    status: str
    reason: str
    observed_at_ms: int | None
    text: str


class WorkersHealthBody(Body, frozen=True, kw_only=True):
    workers: tuple[WorkerHealthBody, ...]


class VersionBody(Body, frozen=True, kw_only=True):
    version: str


class MigrateBody(Body, frozen=True, kw_only=True):
    """A store that is at this release's revision."""

    store: str
    store_id: str | None
    """Null where there was nothing to migrate; so for the next."""
    revision: int | None
    applied: tuple[str, ...]


class ApplicationStatusBody(Body, frozen=True, kw_only=True):
    """One application inside a store."""

    name: str
    admission: str
    capabilities: tuple[str, ...]
    leases: int
    leases_valid: int
    workers: int


class StoreStatusBody(Body, frozen=True, kw_only=True):
    store_id: str
    revision: int
    revision_expected: int
    """The one with which this release works."""
    applications: tuple[ApplicationStatusBody, ...]


class AdmissionBody(Body, frozen=True, kw_only=True):
    applications: tuple[ApplicationStatusBody, ...]


class CapabilityBody(Body, frozen=True, kw_only=True):
    application: str
    name: str
    is_new: bool
    """It was activated now; false: it was active already."""


class ReidentifyBody(Body, frozen=True, kw_only=True):
    store_id: str
    """The new one."""


class CompletionBody(Body, frozen=True, kw_only=True):
    shell: str
    script: str
