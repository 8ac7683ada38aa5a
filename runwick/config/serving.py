"""Which of the declared pools a worker serves, and from which queues: all, or what its operator restricts it to."""

from collections.abc import Collection, Sequence

import msgspec

from runwick.contracts.errors import Problem
from runwick.declarations.pools import DEFAULT_POOL, Pool
from runwick.declarations.suggestions import quoted

_SETTING = "--queues"


def served_pools(
    declared: Sequence[Pool], queues_known: Collection[str], only: Sequence[str] | None
) -> tuple[list[Pool], list[Problem]]:
    """The pools with the queues that they serve here, in the order in which these are claimed from.

    Args:
        declared: as declared and checked; none means the one pool ``main`` on every known queue.
        queues_known: queues that a registered job uses or that were declared.
        only: what ``--queues`` names; None when it was not given. A pool that serves none of these is left out.

    Returns:
        The pools, and what is wrong with `only`.
    """
    pools = [
        msgspec.structs.replace(pool, queues=tuple(sorted(queues_known) if pool.queues is None else pool.queues))
        for pool in declared or (DEFAULT_POOL,)
    ]
    if only is None:
        return pools, []
    served = list(dict.fromkeys(queue for pool in pools for queue in pool.queues or ()))
    listed = f"{'the pools serve' if len(pools) > 1 else 'the pool serves'}: {', '.join(served)}."
    problems = [
        Problem("invalid_pool", _SETTING, f"names {quoted(queue)}, which no pool serves; {listed}")
        for queue in only
        if queue not in served
    ]
    if not only:
        problems.append(Problem("invalid_pool", _SETTING, f"names no queue; {listed}"))
    restricted = [
        msgspec.structs.replace(pool, queues=tuple(queue for queue in only if queue in (pool.queues or ())))
        for pool in pools
    ]
    return [pool for pool in restricted if pool.queues], problems
