"""Claim: due jobs are leased to a worker, and begun and charged at once.

::

    lane by lane, in claim order:   not due ──▶ next lane      not decodable ──▶ passed over
                                    expired ──▶ closed         may not run ahead, or full ──▶ the end
                                    else    ──▶ taken
"""

from collections.abc import Iterator

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, PAYLOAD_INLINE_MAX_BYTES, Attempt, Claim, ClaimPlan
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
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
    next_due_in_ms = _next_due_in_ms(tables, plan, now_ms)
    taken, expired, stopped_at_lone = _choose(tables, plan, now_ms)
    for row in expired:
        tables.leave(row)
        tables.close_expired(row, now_ms)
    for row in taken:
        _take(tables, row, plan, now_ms, ids)
    if not taken:
        return Claim([], next_due_in_ms, stopped_at_lone)
    tables.claims.add(plan.claim_token)
    return Claim([attempt_of(row) for row in taken], None, stopped_at_lone)


def _decodable(tables: Tables, plan: ClaimPlan) -> Iterator[JobRow]:
    """What waits for this plan, in claim order."""
    for lane in plan.lanes:
        for row in tables.waiting(plan.application, lane):
            if row.command.kind in plan.kinds:
                yield row


def _choose(tables: Tables, plan: ClaimPlan, now_ms: int) -> tuple[list[JobRow], list[JobRow], bool]:
    """What to take, what to close as expired, and whether a job that may not run ahead ended the choice."""
    limit = min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)
    taken: list[JobRow] = []
    expired: list[JobRow] = []
    room_bytes = plan.payload_bytes
    for row in _decodable(tables, plan):
        if row.due_at_ms > now_ms:
            continue
        if len(taken) + len(expired) >= limit:
            break
        if row.has_expired(now_ms):
            expired.append(row)
            continue
        if len(taken) >= plan.free and not row.may_run_ahead:
            return taken, expired, True
        room_bytes -= len(row.command.payload)
        if room_bytes < 0 and taken:
            break
        taken.append(row)
    return taken, expired, False


def _take(tables: Tables, row: JobRow, plan: ClaimPlan, now_ms: int, ids: Ids) -> None:
    tables.leave(row)
    begins = len(row.command.payload) <= PAYLOAD_INLINE_MAX_BYTES
    row.state = JobState.RUNNING if begins else JobState.RESERVED
    row.revision += 1
    row.attempts += 1
    row.executions += begins
    row.lease = Lease(ids.ordered(), plan.claim_token, plan.worker, now_ms + plan.lease_ms)


def _claimed_before(tables: Tables, plan: ClaimPlan) -> list[Attempt]:
    """What a claim still holds whose answer was lost, in claim order."""
    rank = {lane: place for place, lane in enumerate(plan.lanes)}
    rows = [
        row
        for row in tables.leased(plan.application)
        if row.lease is not None and row.lease.claim_token == plan.claim_token
    ]
    return [attempt_of(row) for row in sorted(rows, key=lambda row: (rank[row.command.lane], row.entry))]


def _next_due_in_ms(tables: Tables, plan: ClaimPlan, now_ms: int) -> int | None:
    return min((max(0, row.due_at_ms - now_ms) for row in _decodable(tables, plan)), default=None)


def attempt_of(row: JobRow) -> Attempt:
    """The attempt that holds this row; a large payload stays behind."""
    command, lease = row.command, row.lease
    assert lease is not None
    inline = len(command.payload) <= PAYLOAD_INLINE_MAX_BYTES
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
        runs_ahead=command.policy.max_executions - (row.executions - row.begun) >= 2,
        crashes=row.crashes,
        unstarted=row.unstarted,
        policy=command.policy,
        payload=command.payload if inline else None,
        payload_bytes=len(command.payload),
        created_at_ms=row.created_at_ms,
        metadata=command.metadata,
        tenant=command.tenant,
        traceparent=command.traceparent,
        tracestate=command.tracestate,
    )
