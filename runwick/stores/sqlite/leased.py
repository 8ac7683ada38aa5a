"""Jobs under a lease: the attempt that a leased row stands for, and whether a row is still somebody's."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES, Attempt
from runwick.contracts.limits import Fence
from runwick.contracts.states import JobState
from runwick.stores.sqlite.interned import Interned
from runwick.stores.steps import Step, Steps

COUNTING_BITS: Final = (1 << 61) - 1
"""The part of a UUID that a job's key is added into; the bit above it is cleared, so that nothing carries beyond."""

Holding = tuple[bytes | None, str, int, int | None, int]
"""Claim token, state and application (its number) of a lease, when somebody cancelled its job, scopes that it holds."""

NOBODY: Final[Holding] = (None, "", 0, None, 0)
"""What there is of a job that is not leased."""


def held(attempts: Iterable[Attempt]) -> Steps[dict[int, Holding]]:
    """The leases under these attempts, by job. The token says whether one is still theirs."""
    rows = yield Step("held", (json_list(attempt.job for attempt in attempts),))
    return {job: tuple(holding) for job, *holding in rows}


def leased(
    interned: Interned, jobs: Sequence[int], *, payload_max_bytes: int = PAYLOAD_INLINE_MAX_BYTES
) -> Steps[list[Attempt]]:
    """The attempts under way of these jobs, in their order and without tokens; larger payloads stay where they are."""
    rows = yield Step("leased", (json_list(jobs), payload_max_bytes))
    by_job = {row[0]: row for row in rows}
    return [attempt_of(interned, by_job[job]) for job in jobs]


def fenced(attempts: list[Attempt]) -> Steps[list[Attempt]]:
    """These attempts with their tokens."""
    holders = [attempt.job for attempt in attempts if attempt.holds]
    if not holders:
        return attempts
    tokens: defaultdict[int, list[tuple[int, Fence]]] = defaultdict(list)
    for job, scope, key, token, in_order in (yield Step("fences", (json_list(holders),))):
        tokens[job].append((in_order.index(scope), Fence(key, token)))
    return [
        msgspec.structs.replace(attempt, fences=tuple(fence for _, fence in sorted(tokens[attempt.job])))
        if attempt.job in tokens
        else attempt
        for attempt in attempts
    ]


def attempt_of(interned: Interned, row: Sequence[Any]) -> Attempt:
    """The attempt that a row of ``leased.sql`` stands for."""
    (
        job,
        job_id,
        first_attempt_id,
        claim_token,
        lane,
        kind,
        policy,
        state,
        generation,
        attempts,
        executions,
        max_executions,
        unstarted,
        crashes,
        limited,
        holds,
        created_at_ms,
        metadata,
        tenant,
        traceparent,
        tracestate,
        payload_bytes,
        payload,
    ) = row
    begun = state == JobState.RUNNING.value
    return Attempt(
        job,
        job_id,
        attempt_id(first_attempt_id, job),
        claim_token,
        interned.kinds.values[kind][1],
        interned.lanes.values[lane][1],
        attempts,
        executions,
        generation,
        begun,
        # As the claim judged it: before the charge.
        max_executions - (executions - begun) >= 2 and not limited and not holds,
        crashes,
        unstarted,
        interned.policies.values[policy],
        payload,
        payload_bytes,
        created_at_ms,
        metadata,
        tenant,
        traceparent,
        tracestate,
        holds,
    )


def attempt_id(first_attempt_id: bytes, job: int) -> bytes:
    """The id of the attempt that a claim made of a job: a UUIDv7 like the claim's first one, counted on by the job."""
    return (counted_from(first_attempt_id) + (job & COUNTING_BITS)).to_bytes(16)


def counted_from(first_attempt_id: bytes) -> int:
    """What the ids of a claim's attempts are counted from, each by its job's `COUNTING_BITS`."""
    return int.from_bytes(first_attempt_id) & ~(COUNTING_BITS + 1)


def json_list(numbers: Iterable[int]) -> str:
    """Numbers as one parameter, for ``json_each``."""
    return json_text(list(numbers))


def json_text(value: object) -> str:
    """A value as JSON text."""
    return msgspec.json.encode(value).decode()
