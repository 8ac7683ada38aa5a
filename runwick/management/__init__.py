"""What operators do to jobs, as a service: `runwick.management.service`. Permissions are whoever's who calls it."""

from runwick.contracts.controls import JobTarget, ManagementActor
from runwick.management.service import ControlResult, JobControls

__all__ = ["ControlResult", "JobControls", "JobTarget", "ManagementActor"]
