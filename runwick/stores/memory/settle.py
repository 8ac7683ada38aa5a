"""Settle: attempts end in one fenced batch. A claim token that is no longer the row's changes nothing."""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.memory.ending import check, end
from runwick.stores.memory.tables import Tables, act, owned_once


def settle(tables: Tables, settlements: Sequence[Settlement], clock: Clock) -> Act[list[Answer]]:
    """End these attempts; answers in input order. A second time answers NOT_YOURS and writes nothing.

    Raises (when run):
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            of the batch was written.
    """
    return act("settle", lambda: _settle(tables, settlements, clock.now_ms()))


def _settle(tables: Tables, settlements: Sequence[Settlement], now_ms: int) -> list[Answer]:
    rows = owned_once(tables, (settlement.attempt for settlement in settlements))
    owned = [(row, settlement) for row, settlement in zip(rows, settlements, strict=True) if row is not None]
    for row, settlement in owned:
        check(row, settlement)
    for row, settlement in owned:
        end(tables, row, settlement, now_ms)
    return [Answer.NOT_YOURS if row is None else Answer.DONE for row in rows]
