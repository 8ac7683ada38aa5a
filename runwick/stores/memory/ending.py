"""What ends an attempt: its place in the history, and what becomes of its job."""

from typing import Final

import msgspec

from runwick.contracts.errors import SettlementRejected
from runwick.contracts.history import EventKind
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer, OutcomeKind, Settlement
from runwick.contracts.states import LEGAL_MOVES, JobState
from runwick.contracts.stores import AttemptRecord
from runwick.contracts.usage import Usage
from runwick.stores.memory.rows import JobRow, waits_as
from runwick.stores.memory.tables import Tables

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
    texts = (settlement.code, outcome.code, outcome.error, outcome.death, outcome.black_box, settlement.if_cancelled)
    try:
        msgspec.json.encode(texts)
    except UnicodeEncodeError as error:
        raise SettlementRejected("settlement_rejected", f"text is not Unicode: {error}; nothing was written") from error


def end(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> Answer:
    """End the attempt that holds `row`, as the settlement says; DONE, or CANCELLED where a cancel stood."""
    written = _under_a_cancel(row, settlement)
    _record(tables, row, written, now_ms)
    if written.state is not JobState.RETRYING:
        row.result = written.outcome.result if written.state is JobState.SUCCEEDED else None
        tables.close(row, written.state, written.code, now_ms)
    else:
        row.crashes += written.outcome.kind is OutcomeKind.CRASHED
        if row.begun:
            row.unstarted = 0
        _wait(tables, row, written, now_ms)
    return Answer.DONE if written is settlement else Answer.CANCELLED


def abandon(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    """End an attempt that nobody keeps any more. One that never began leaves no trace and gives its number back."""
    written = _under_a_cancel(row, settlement)
    if row.begun:
        end(tables, row, settlement, now_ms)
    elif written.state is not JobState.RETRYING:
        tables.close(row, written.state, written.code, now_ms)
    else:
        row.attempts -= 1
        row.unstarted += 1
        _wait(tables, row, written, now_ms)


def _under_a_cancel(row: JobRow, settlement: Settlement) -> Settlement:
    """What is written: the settlement itself unless a cancel stands and it says what that changes."""
    instead = settlement.if_cancelled
    if instead is None or not row.cancel_stands:
        return settlement
    outcome = msgspec.structs.replace(settlement.outcome, kind=instead.outcome, code=instead.outcome_code)
    return Settlement(settlement.attempt, outcome, JobState.CANCELLED, instead.code)


def _wait(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    row.revision += 1
    row.code = settlement.code
    if settlement.delay_ms is not None:
        row.due_at_ms = now_ms + settlement.delay_ms
    if row.expires_at_ms is not None and row.lives_ms is not None and (row.begun or settlement.delay_ms is not None):
        # A wait that was planned moves the expiry on, and so does a run: it was in time.
        row.expires_at_ms = max(row.expires_at_ms, now_ms + (settlement.delay_ms or 0) + row.lives_ms)
    tables.wait(row, waits_as(row))


def _record(tables: Tables, row: JobRow, settlement: Settlement, now_ms: int) -> None:
    outcome, lease = settlement.outcome, row.lease
    assert lease is not None
    record = AttemptRecord(
        attempt_id=settlement.attempt.attempt_id,
        generation=row.generation,
        number=row.attempts,
        outcome=outcome.kind.value,
        code=outcome.code,
        begun_at_ms=lease.begun_at_ms if outcome.begun_at_ms is None else outcome.begun_at_ms,
        ended_at_ms=now_ms,
        usage=outcome.usage,
        worker=lease.worker,
        delay_ms=settlement.delay_ms if settlement.state is JobState.RETRYING else None,
        death=outcome.death,
        error=outcome.error,
        black_box=outcome.black_box,
    )
    row.history.append(record)
    tables.tell(
        row,
        EventKind.ATTEMPT_ENDED,
        now_ms,
        number=record.number,
        state=record.outcome,
        code=record.code,
        attempt_id=record.attempt_id,
    )
