"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.memory.ending import check, end
from runwick.stores.memory.tables import Tables, act, admit_rows, owned_once


def settle(tables: Tables, settlements: Sequence[Settlement], clock: Clock) -> Act[list[Answer]]:
    """End these attempts; answers in input order. The same settlement sent again answers DONE and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return act("settle", lambda: _settle(tables, settlements, clock.now_ms()))


def _settle(tables: Tables, settlements: Sequence[Settlement], now_ms: int) -> list[Answer]:
    rows = owned_once(tables, (settlement.attempt for settlement in settlements))
    admit_rows(tables, "settle", rows)
    owned = [(row, settlement) for row, settlement in zip(rows, settlements, strict=True) if row is not None]
    for row, settlement in owned:
        check(row, settlement)
    answers = [
        Answer.DONE if row is not None or _landed(tables, settlement) else Answer.NOT_YOURS
        for row, settlement in zip(rows, settlements, strict=True)
    ]
    for row, settlement in owned:
        end(tables, row, settlement, now_ms)
    return answers


def _landed(tables: Tables, settlement: Settlement) -> bool:
    """Whether an earlier sending of this settlement has landed and only its answer was lost."""
    row = tables.rows.get(settlement.attempt.job)
    ended = {(attempt.attempt_id, attempt.outcome) for attempt in row.history} if row is not None else set()
    return (settlement.attempt.attempt_id, settlement.outcome.kind.value) in ended
