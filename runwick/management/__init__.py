"""What operators do to jobs, queues and limits, as services: `runwick.management.service`, `runwick.management.queues`,
`runwick.management.capacity`. Permissions are whoever's who calls them; `runwick.management.desk` checks them itself,
for everything that an operator sees and does."""

from runwick.contracts.controls import JobTarget, ManagementActor
from runwick.contracts.limits import LimitKind
from runwick.management.capacity import CapacityControls, RateView, ScopeView
from runwick.management.queues import QueueControls, QueueView
from runwick.management.service import ControlResult, JobControls
from runwick.management.steering import SteerResult

__all__ = [
    "CapacityControls",
    "ControlResult",
    "JobControls",
    "JobTarget",
    "LimitKind",
    "ManagementActor",
    "QueueControls",
    "QueueView",
    "RateView",
    "ScopeView",
    "SteerResult",
]
