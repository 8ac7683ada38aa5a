"""Who may do what: permissions, grants that may be narrowed to queues and tenants, and what a caller's grants allow.

What somebody may not see does not exist for him: lists leave it out before they are paged, and asking for it by its id
is answered as asking for an id that nobody ever gave.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from runwick.contracts.controls import ControlAction, ManagementActor
from runwick.contracts.errors import RunwickError
from runwick.contracts.listing import Reach, Within
from runwick.contracts.revealing import Secret


class Permission(enum.StrEnum):
    """One thing that may be allowed."""

    JOBS_READ = "Jobs.Read"
    """Lists and jobs, their attempts and costs; no payload, result or error text."""
    JOBS_READ_PAYLOAD = "Jobs.ReadPayload"
    """Reveal payloads and results, audited."""
    JOBS_READ_ERROR = "Jobs.ReadError"
    """Reveal errors, black boxes and stacks of running attempts, audited."""
    JOBS_CANCEL = "Jobs.Cancel"
    JOBS_RETRY = "Jobs.Retry"
    JOBS_RERUN = "Jobs.Rerun"
    JOBS_DISPATCH = "Jobs.Dispatch"
    """Create jobs by hand, audited."""
    QUEUES_READ = "Queues.Read"
    QUEUES_CONTROL = "Queues.Control"
    CAPACITY_READ = "Capacity.Read"
    """Workers, scopes and rate windows."""
    CAPACITY_EDIT = "Capacity.Edit"
    SETTINGS_READ = "Settings.Read"
    AUDIT_READ = "Audit.Read"


_OF_QUEUES: Final = frozenset(each for each in Permission if each.startswith(("Jobs.", "Queues.")))
_OF_TENANTS: Final = frozenset(each for each in Permission if each.startswith("Jobs."))

CONTROLS: Final = {
    ControlAction.CANCEL: Permission.JOBS_CANCEL,
    ControlAction.RETRY: Permission.JOBS_RETRY,
    ControlAction.RERUN: Permission.JOBS_RERUN,
    ControlAction.LOOK: Permission.JOBS_READ_ERROR,
}
"""What each control of a job needs."""

SECRETS: Final = {
    Secret.PAYLOAD: Permission.JOBS_READ_PAYLOAD,
    Secret.RESULT: Permission.JOBS_READ_PAYLOAD,
    Secret.ERROR: Permission.JOBS_READ_ERROR,
    Secret.BLACK_BOX: Permission.JOBS_READ_ERROR,
    Secret.STACK: Permission.JOBS_READ_ERROR,
}
"""What each secret needs."""


class Grant(msgspec.Struct, frozen=True):
    """One permission, everywhere or for some queues or tenants alone.

    Args:
        permission: what is allowed.
        queues: in these queues; None for all. Permissions of jobs and queues only.
        tenants: for jobs of these tenants, None among them for jobs without one; None for all. Permissions of jobs
            only.

    Raises:
        ValueError: the permission is the whole application's, and cannot be narrowed like this; or nothing is left.
    """

    permission: Permission
    queues: frozenset[str] | None = None
    tenants: frozenset[str | None] | None = None

    def __post_init__(self) -> None:
        for what, narrowed, may_be in (
            ("queues", self.queues, _OF_QUEUES),
            ("tenants", self.tenants, _OF_TENANTS),
        ):
            if narrowed is None:
                continue
            if self.permission not in may_be:
                raise ValueError(f"{self.permission} is the whole application's and takes no {what}")
            if not isinstance(narrowed, frozenset):
                raise ValueError(f"{what} is {type(narrowed).__name__}; give a frozenset of names, or None for all")
            if not narrowed:
                raise ValueError(f"a grant of {self.permission} for no {what} allows nothing; leave it out")


def _grants(*permissions: Permission) -> tuple[Grant, ...]:
    return tuple(map(Grant, permissions))


VIEWER: Final = _grants(
    Permission.JOBS_READ, Permission.QUEUES_READ, Permission.CAPACITY_READ, Permission.SETTINGS_READ
)
OPERATOR: Final = VIEWER + _grants(
    Permission.JOBS_CANCEL, Permission.JOBS_RETRY, Permission.JOBS_RERUN, Permission.QUEUES_CONTROL
)
ADMINISTRATOR: Final = OPERATOR + _grants(Permission.CAPACITY_EDIT)
"""The presets. Payloads, errors, the audit trail and dispatching are in none: they are added on purpose."""

EVERYTHING: Final = _grants(*Permission)
"""For whoever works on the store itself, as the commands with ``--app`` do: he could read it anyway."""


class Forbidden(RunwickError):
    """The caller's grants do not allow it (code ``forbidden``); nothing was done and nothing is told."""

    def __init__(self, permission: Permission) -> None:
        super().__init__("forbidden", f"this needs the permission {permission}")
        self.permission = permission


class Allowed:
    """What a caller's grants come to.

    Args:
        grants: of one caller; several of one permission add up.
    """

    def __init__(self, grants: Iterable[Grant]) -> None:
        self._reaches: dict[Permission, list[Reach]] = {}
        for grant in grants:
            self._reaches.setdefault(grant.permission, []).append(Reach(grant.queues, grant.tenants))

    @property
    def permissions(self) -> frozenset[Permission]:
        """Those of which he has at least a part."""
        return frozenset(self._reaches)

    def has(self, permission: Permission) -> bool:
        """Whether he has it for anything."""
        return permission in self._reaches

    def need(self, permission: Permission) -> None:
        """Go on only with it.

        Raises:
            Forbidden: he does not have it at all.
        """
        if permission not in self._reaches:
            raise Forbidden(permission)

    def within(self, permission: Permission) -> Within:
        """For which jobs he has it; None for all."""
        reaches = self._reaches.get(permission, [])
        return None if Reach() in reaches else tuple(reaches)

    def covers(self, permission: Permission, queue: str, tenant: str | None) -> bool:
        """Whether he has it for such a job."""
        return any(reach.covers(queue, tenant) for reach in self._reaches.get(permission, ()))

    def covers_whole(self, permission: Permission, queue: str) -> bool:
        """Whether he has it for every job of a queue, whosever it is."""
        reaches = self._reaches.get(permission, ())
        return any(reach.tenants is None and (reach.queues is None or queue in reach.queues) for reach in reaches)

    def covers_queue(self, permission: Permission, queue: str) -> bool:
        """Whether he has it for a queue."""
        return any(reach.queues is None or queue in reach.queues for reach in self._reaches.get(permission, ()))


class Caller(msgspec.Struct, frozen=True):
    """Who asks, and what he may. Whoever builds one has proven it."""

    actor: ManagementActor
    allowed: Allowed

    @classmethod
    def of(cls, actor: ManagementActor, grants: Sequence[Grant]) -> "Caller":
        """The caller with these grants."""
        return cls(actor, Allowed(grants))
