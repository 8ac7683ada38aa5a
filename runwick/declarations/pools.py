"""A pool: room for running handlers of some queues, and how it chooses among their lanes. What may be wrong with it is
checked with the configuration."""

from collections.abc import Mapping

import msgspec

from runwick.contracts.policies import LANE_WEIGHTS, LaneSelection


class Pool(msgspec.Struct, frozen=True):
    """Slots of one worker and the queues they serve. A queue that no pool serves waits."""

    name: str
    queues: tuple[str, ...] | Mapping[str, int] | None = None
    """The queues it takes jobs from; None means every queue that a job uses or `queue` declares. A mapping gives each a
    weight, 1 to 1,000, and so its share of the slots while several have work: ``{"reports": 1, "pdf": 3}``. It is kept
    as a tuple."""
    concurrency: int = 4
    """Most handlers that it runs at once. On executors that is their number; where there is only one pool, the operator
    and the cores decide instead."""
    lane_weights: tuple[int, int, int] = LANE_WEIGHTS
    """Shares of a queue's high, medium and low lane when all have work, 1 to 1,000 each."""
    lane_selection: LaneSelection = LaneSelection.WEIGHTED
    weights: tuple[tuple[str, int], ...] = ()
    """Of the queues that were given with one."""

    def __post_init__(self) -> None:
        if isinstance(self.queues, Mapping):  # so that nobody can change it later
            msgspec.structs.force_setattr(self, "weights", tuple(self.queues.items()))
            msgspec.structs.force_setattr(self, "queues", tuple(self.queues))

    def weight_of(self, queue: str) -> int:
        """The queue's share; 1 where none was given."""
        return dict(self.weights).get(queue, 1)


DEFAULT_POOL = Pool("main")
"""What an application has that declares no pool."""
