"""Claim: due jobs are leased to a worker, and begun and charged at once; those that meet a full limit are moved aside.

::

    turn by turn, in claim order:   not due ──▶ next turn      not decodable ──▶ passed over
                                    expired ──▶ closed         a limit is full ──▶ in its line, or due later
                                    else    ──▶ taken          may not run ahead, or full ──▶ the end

Which of them it is, `runwick.policy.admission` decides. Turns on paused queues count as if they were not in the plan.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import (
    CLAIM_MAX_ATTEMPTS,
    PAYLOAD_INLINE_MAX_BYTES,
    Attempt,
    Claim,
    ClaimPlan,
    LaneTurn,
)
from runwick.contracts.limits import Fence
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.policy.admission import Admitted, Candidate, Fate, Verdict, admit, candidates_per_turn
from runwick.stores.memory.rows import JobRow, Lease
from runwick.stores.memory.tables import Tables, act


def claim(tables: Tables, plan: ClaimPlan, clock: Clock, ids: Ids) -> Act[Claim]:
    """Take due jobs under a lease, as the plan says; a plan that is sent again gets what it got."""
    return act("claim", lambda: _claim(tables, plan, clock.now_ms(), ids))


def _claim(tables: Tables, plan: ClaimPlan, now_ms: int, ids: Ids) -> Claim:
    tables.admit("claim", plan.application)
    if plan.claim_token in tables.claims:
        attempts = _claimed_before(tables, plan)
        return Claim(attempts, None if attempts else 0)
    turns = [turn for turn in plan.turns if not tables.is_paused(plan.application, turn.lane.queue)]
    next_due_in_ms = _next_due_in_ms(tables, plan, turns, now_ms)
    rows, admitted = _judge(tables, plan, turns, now_ms)
    taken: list[JobRow] = []
    for verdict in admitted.verdicts:
        row = rows[verdict.place]
        _do(tables, row, verdict, now_ms)
        if verdict.fate is Fate.TAKEN:
            _take(tables, row, plan, verdict, now_ms, ids)
            taken.append(row)
    tables.take_calls(admitted.called)
    if taken:
        tables.claims.add(plan.claim_token)
    fates = Counter(verdict.fate for verdict in admitted.verdicts)
    return Claim(
        [attempt_of(row) for row in taken],
        None if taken else next_due_in_ms,
        admitted.stopped_at_lone,
        admitted.again,
        _alarms(admitted, now_ms),
        fates[Fate.PARKED],
        fates[Fate.DEFERRED],
    )


def _judge(
    tables: Tables, plan: ClaimPlan, turns: Sequence[LaneTurn], now_ms: int
) -> tuple[list[JobRow], Admitted[JobRow]]:
    """The candidates, and what becomes of them. Their limits have changed afterwards."""
    most = [turn.most for turn in turns]
    want = min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)
    rows: list[JobRow] = []
    candidates: list[Candidate] = []
    for place, (turn, read) in enumerate(zip(turns, candidates_per_turn(most, want), strict=True)):
        for row in itertools.islice(_due(tables, plan, turn, now_ms), read):
            rows.append(row)
            candidates.append(_candidate(tables, row, place, now_ms))
    needed = {limit for each in candidates for limit in (*each.scopes, *each.rates, each.called)}
    windows = {limit: each.window for limit, each in tables.limits.windows.items() if limit in needed}
    admitted = admit(
        candidates,
        {limit: each.scope for limit, each in tables.limits.scopes.items() if limit in needed},
        windows,
        tables.open_line,
        most=most,
        want=want,
        free=plan.free,
        room_bytes=plan.payload_bytes,
        now_ms=now_ms,
    )
    for window in windows.values():
        window.written.clear()
    return rows, admitted


def _due(tables: Tables, plan: ClaimPlan, turn: LaneTurn, now_ms: int) -> Iterator[JobRow]:
    """What is due and decodable in a turn's lane, in claim order."""
    for row in tables.waiting(plan.application, turn.lane):
        if row.due_at_ms > now_ms - turn.waited_ms:
            return
        if row.command.kind in plan.kinds:
            yield row


def _candidate(tables: Tables, row: JobRow, turn: int, now_ms: int) -> Candidate:
    return Candidate(
        turn=turn,
        job_id=row.command.job_id,
        payload_bytes=len(row.command.payload),
        lone=not row.may_run_ahead,
        expired=row.has_expired(now_ms),
        called=row.called,
        scopes=tables.limits.scopes_of(row),
        rates=row.rates,
    )


def _do(tables: Tables, row: JobRow, verdict: Verdict, now_ms: int) -> None:
    match verdict.fate:
        case Fate.EXPIRED:
            tables.leave(row)
            row.called = None  # passed on already
            tables.close_expired(row, now_ms)
        case Fate.PARKED:
            assert verdict.limit is not None
            tables.park(row, verdict.limit)
        case Fate.DEFERRED:
            assert verdict.limit is not None
            tables.call(row, verdict.limit, verdict.due_ms)


def _take(tables: Tables, row: JobRow, plan: ClaimPlan, verdict: Verdict, now_ms: int, ids: Ids) -> None:
    tables.leave(row)
    begins = _comes_along(row)
    row.called = None
    row.state = JobState.RUNNING if begins else JobState.RESERVED
    row.revision += 1
    row.attempts += 1
    row.executions += begins
    row.lease = Lease(
        ids.ordered(),
        plan.claim_token,
        plan.worker,
        now_ms + plan.lease_ms,
        holds=tables.limits.scopes_of(row),
        fences=dict(verdict.fences),
    )


def _comes_along(row: JobRow) -> bool:
    """Whether the claim carries its payload, and so begins it. A run that is charged to windows always is."""
    return len(row.command.payload) <= PAYLOAD_INLINE_MAX_BYTES or bool(row.command.rates)


def _alarms(admitted: Admitted[JobRow], now_ms: int) -> tuple[int, ...]:
    dues = [
        *(verdict.due_ms for verdict in admitted.verdicts if verdict.fate is Fate.DEFERRED),
        *(call.due_ms for call in admitted.called),
    ]
    return tuple(sorted(0 if due_ms is None else max(0, due_ms - now_ms) for due_ms in dues))


def _claimed_before(tables: Tables, plan: ClaimPlan) -> list[Attempt]:
    """What a claim still holds whose answer was lost, in claim order."""
    rank = {turn.lane: place for place, turn in enumerate(plan.turns)}
    rows = [
        row
        for row in tables.leased(plan.application)
        if row.lease is not None and row.lease.claim_token == plan.claim_token
    ]
    return [attempt_of(row) for row in sorted(rows, key=lambda row: (rank[row.command.lane], row.entry))]


def _next_due_in_ms(tables: Tables, plan: ClaimPlan, turns: Sequence[LaneTurn], now_ms: int) -> int | None:
    """Of what stands in the lanes when the claim begins, however long a turn wants it to have waited."""
    dues = (
        max(0, row.due_at_ms - now_ms)
        for turn in turns
        for row in tables.waiting(plan.application, turn.lane)
        if row.command.kind in plan.kinds
    )
    return min(dues, default=None)


def attempt_of(row: JobRow) -> Attempt:
    """The attempt that holds this row; a large payload stays behind."""
    command, lease = row.command, row.lease
    assert lease is not None
    return Attempt(
        job=row.job,
        job_id=command.job_id,
        attempt_id=lease.attempt_id,
        claim_token=lease.claim_token,
        kind=command.kind,
        lane=command.lane,
        number=row.attempts,
        execution=row.executions,
        generation=row.generation,
        begun=row.begun,
        # As the claim judged it: before the charge.
        runs_ahead=not lease.holds
        and not command.rates
        and command.policy.max_executions - (row.executions - row.begun) >= 2,
        crashes=row.crashes,
        unstarted=row.unstarted,
        policy=command.policy,
        payload=command.payload if _comes_along(row) else None,
        payload_bytes=len(command.payload),
        created_at_ms=row.created_at_ms,
        metadata=command.metadata,
        tenant=command.tenant,
        traceparent=command.traceparent,
        tracestate=command.tracestate,
        holds=len(lease.holds),
        fences=tuple(Fence(key, lease.fences[limit]) for key, limit in row.resources if limit in lease.fences),
    )
