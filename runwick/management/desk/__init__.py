"""`Desk`: every operator action once, with the caller's permissions checked and what he does written down. The HTTP
API, the command line and the dashboard are faces of it.

::

    caller, question ─▶ permission? ─▶ reach? ─▶ the store's act ─▶ body (`runwick.management.bodies`)
                            └─ Forbidden   └─ as if it did not exist

All methods are for event loops. It proves nobody's identity: whoever builds a `Caller` has done that. `JobControls`,
`QueueControls` and `CapacityControls` do the same for an application's own code, which needs no permission.
"""

from runwick.management.desk.dispatching import DispatchDesk
from runwick.management.desk.jobs import JobDesk
from runwick.management.desk.limits import LimitDesk
from runwick.management.desk.overview import FigureDesk
from runwick.management.desk.secrets import SecretDesk
from runwick.management.desk.trail import TrailDesk
from runwick.management.desk.workers import WorkerDesk

__all__ = ["Desk"]


class Desk(JobDesk, SecretDesk, DispatchDesk, LimitDesk, WorkerDesk, FigureDesk, TrailDesk):
    """The operators' desk of one application; `Ground` has what it takes."""
