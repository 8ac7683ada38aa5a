"""A pool: room for running handlers of some queues. What may be wrong with it is checked with the configuration."""

import msgspec


class Pool(msgspec.Struct, frozen=True):
    """Slots of one worker and the queues they serve. A queue that no pool serves waits."""

    name: str
    queues: tuple[str, ...] | None = None
    """The queues it takes jobs from; None means every queue that a job uses or `queue` declares."""
    concurrency: int = 4
    """Most handlers that it runs at once. On executors that is their number; where there is only one pool, the operator
    and the cores decide instead."""


DEFAULT_POOL = Pool("main")
"""What an application has that declares no pool."""
