"""What ends an attempt: its place in the history, and what becomes of its job."""

from typing import Final

import msgspec

from runwick.contracts.errors import SettlementRejected
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind, Settlement
from runwick.contracts.states import LEGAL_MOVES, JobState
from runwick.contracts.stores import AttemptRecord
from runwick.contracts.usage import Usage
from runwick.stores.memory.tables import JobRow, Tables, waits_as

_INTEGER_MAX: Final = 2**63 - 1


def check(row: JobRow, settlement: Settlement) -> None:
    """Refuse what no store could write, or what the job's state does not allow.

    Raises:
        SettlementRejected: it is one of these; nothing was changed.
    """
    if settlement.state not in LEGAL_MOVES[row.state]:
        raise SettlementRejected(
            "settlement_rejected",
            f"job {id_text(settlement.attempt.job_id)} is {row.state.value} and cannot become "
            f"{settlement.state.value}; begin the attempt first, or release it",
        )
    outcome = settlement.outcome
    usage = outcome.usage or Usage()
    numbers = (outcome.begun_at_ms, usage.wall_us, usage.cpu_us, usage.rss_peak_bytes)
    if any(number is not None and abs(number) > _INTEGER_MAX for number in numbers):
        raise SettlementRejected("settlement_rejected", "a number is beyond 64 bits; nothing was written")
    try:
        msgspec.json.encode((settlement.code, outcome.code, outcome.error))
    except UnicodeEncodeError as error:
        raise SettlementRejected("settlement_rejected", f"text is not Unicode: {error}; nothing was written") from error


def end(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    """End the attempt that holds `row`, as the settlement says."""
    _record(row, settlement, now_ms)
    if settlement.state is not JobState.RETRYING:
        row.result = settlement.outcome.result if settlement.state is JobState.SUCCEEDED else None
        tables.close(row, settlement.state, settlement.code, now_ms)
        return
    row.crashes += settlement.outcome.kind is OutcomeKind.CRASHED
    if row.begun:
        row.unstarted = 0
        if row.expires_at_ms is not None and row.lives_ms is not None:
            # A retry that was planned moves the expiry on.
            row.expires_at_ms = max(row.expires_at_ms, now_ms + (settlement.delay_ms or 0) + row.lives_ms)
    _wait(tables, row, settlement, now_ms)


def abandon(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    """End an attempt whose lease ran out. One that never began leaves no trace and gives its number back."""
    if row.begun:
        end(tables, row, settlement, now_ms)
    elif settlement.state is not JobState.RETRYING:
        tables.close(row, settlement.state, settlement.code, now_ms)
    else:
        row.attempts -= 1
        row.unstarted += 1
        _wait(tables, row, settlement, now_ms)


def _wait(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    row.revision += 1
    row.code = settlement.code
    if settlement.delay_ms is not None:
        row.due_at_ms = now_ms + settlement.delay_ms
    tables.wait(row, waits_as(row))


def _record(row: JobRow, settlement: Settlement, now_ms: int) -> None:
    outcome = settlement.outcome
    row.history.append(
        AttemptRecord(
            attempt_id=settlement.attempt.attempt_id,
            generation=row.generation,
            number=row.attempts,
            outcome=outcome.kind.value,
            code=outcome.code,
            begun_at_ms=outcome.begun_at_ms,
            ended_at_ms=now_ms,
            usage=outcome.usage,
            error=outcome.error,
        )
    )
