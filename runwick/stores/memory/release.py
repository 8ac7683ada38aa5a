"""Release: attempts that provably never reached their handler go back as if they had not been claimed.

Charge and number are taken back, no attempt row is left, the job stands where it stood. Only the revision rises.
"""

from collections.abc import Sequence

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act, admit_rows, owned_once, waits_as


def release(tables: Tables, attempts: Sequence[Attempt]) -> Act[list[Answer]]:
    """Give these back; answers in input order. A second time answers NOT_YOURS."""
    return act("release", lambda: _release(tables, attempts))


def _release(tables: Tables, attempts: Sequence[Attempt]) -> list[Answer]:
    rows = owned_once(tables, attempts)
    admit_rows(tables, "release", rows)
    for row in rows:
        if row is not None:
            row.executions -= row.begun
            row.attempts -= 1
            row.revision += 1
            tables.wait(row, waits_as(row))
    return [Answer.NOT_YOURS if row is None else Answer.DONE for row in rows]
