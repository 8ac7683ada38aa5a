"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, holds are freed, no attempt row is left, the job stands where it stood. Only the
revision rises. What its run was charged to in rate windows stays charged. One that somebody cancelled meanwhile ends
instead.
"""

from collections.abc import Sequence

from runwick.contracts.ambient import Clock
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.memory.rows import JobRow, waits_as
from runwick.stores.memory.tables import Tables, act, admit_rows, owned_once


def release(tables: Tables, attempts: Sequence[Attempt], clock: Clock) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return act("release", lambda: _release(tables, attempts, clock.now_ms()))


def _release(tables: Tables, attempts: Sequence[Attempt], now_ms: int) -> list[Answer]:
    rows = owned_once(tables, attempts)
    admit_rows(tables, "release", rows)
    answers = [Answer.NOT_YOURS if row is None else _give_back(tables, row, now_ms) for row in rows]
    tables.call_in(now_ms)
    return answers


def _give_back(tables: Tables, row: JobRow, now_ms: int) -> Answer:
    row.executions -= row.begun
    row.attempts -= 1
    if row.cancel_stands:
        tables.close_cancelled(row, now_ms)
        return Answer.CANCELLED
    row.revision += 1
    tables.wait(row, waits_as(row))
    return Answer.DONE
