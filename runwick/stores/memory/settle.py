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
    for row, settlement in zip(rows, settlements, strict=True):
        if row is not None:
            check(row, settlement)
    # Before anything is written: what comes twice in one batch has not landed before.
    unowned = [_unowned(tables, settlement) for settlement in settlements]
    answers = [
        answer if row is None else end(tables, row, settlement, now_ms)
        for row, settlement, answer in zip(rows, settlements, unowned, strict=True)
    ]
    tables.call_in(now_ms)
    return answers


def _unowned(tables: Tables, settlement: Settlement) -> Answer:
    """For an attempt that holds nothing: DONE when an earlier sending has landed and only its answer was lost."""
    row = tables.rows.get(settlement.attempt.job)
    ended = {(attempt.attempt_id, attempt.outcome) for attempt in row.history} if row is not None else set()
    instead = settlement.if_cancelled
    written = {settlement.outcome.kind} if instead is None else {settlement.outcome.kind, instead.outcome}
    landed = any((settlement.attempt.attempt_id, outcome.value) in ended for outcome in written)
    return Answer.DONE if landed else Answer.NOT_YOURS
