"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections.abc import Sequence

from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.ending import end
from runwick.stores.steps import Steps


def settle(bound: Bound, settlements: Sequence[Settlement]) -> Act[list[Answer]]:
    """End these attempts; answers in input order. The same settlement sent again answers DONE and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return MakesDue("settle", lambda due: _settle(bound, settlements, due))


def _settle(bound: Bound, settlements: Sequence[Settlement], due: Due) -> Steps[list[Answer]]:
    answers = yield from end(bound, "settle", settlements, due)
    retrying = JobState.RETRYING
    if any(settlement.state is retrying and not settlement.delay_ms for settlement in settlements):
        due |= bound.names.serves
    return answers
