"""Which lanes a pool claims from, and in which order."""

from collections.abc import Iterable

from runwick.contracts.attempts import Lane
from runwick.contracts.states import Priority

_RANK = {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}


def lanes_of(queues: Iterable[str]) -> list[Lane]:
    """Every lane of these queues: the high lanes of all queues first, then the medium, then the low ones."""
    ordered = sorted(Priority, key=_RANK.__getitem__)
    names = list(queues)
    return [Lane(queue, priority) for priority in ordered for queue in names]
