"""Jobs that an act called out of a limit's line, as its statement tells of them."""

from collections.abc import Iterable
from typing import Final

from runwick.contracts.limits import CALLED_MAX
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due

CALLS_MAX: Final = packed.number(CALLED_MAX)
"""How many an act calls at most, as its statement takes it."""

Call = tuple[int, int, bytes]
"""Lane, due_at_ms, job."""


def call_in(bound: Bound, calls: Iterable[Call], due: Due, application: int | None = None) -> None:
    """These stand in their lanes again: no claim of this process passes them by, and workers may ask.

    Args:
        bound: the store.
        calls: whom.
        due: of the act.
        application: whose jobs these are, where the act may be an operator's, whose process serves nobody; None for
            those that workers of this process serve.
    """
    for lane, due_at_ms, job in calls:
        bound.marks.lower(lane, (due_at_ms, job))
        due |= bound.names.serves if application is None else {application}
