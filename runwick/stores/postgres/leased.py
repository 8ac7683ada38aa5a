"""Attempts under way, as the statements of `sql/` tell of them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.limits import Fence
from runwick.stores.postgres.names import Names
from runwick.stores.steps import Steps

_COUNTING_BITS: Final = (1 << 61) - 1
"""The part of a UUID that the place in a claim is added into; the bit above is cleared, so nothing carries on."""

Row = Sequence[Any]
"""The columns of an attempt under way: job, lane, kind, policy, begun, generation, attempts, executions,
max_executions, unstarted, crashes, payload_bytes, created_at_ms, metadata, tenant, traceparent, tracestate, payload."""

COLUMNS: Final = 19
"""Of a row as a claim answers it: due_at_ms, and those."""

Limits = Sequence[Any]
"""Behind them, where an attempt may hold limits: whether its job has some of its own, how many scopes it holds, its
tokens, [key, value], or None."""


def know(names: Names, rows: Sequence[Row]) -> Steps[None]:
    """Learn what the numbers in these rows stand for."""
    lanes, kinds, policies = ({row[column] for row in rows} for column in (1, 2, 3))
    if not (lanes <= names.lane_of.keys() and kinds <= names.kind_of.keys() and policies <= names.policy_of.keys()):
        yield from names.read(lanes, kinds, policies)


def attempts_of(names: Names, claim_token: bytes, attempt_ids: Iterable[bytes], rows: Iterable[Row]) -> list[Attempt]:
    """The attempts that these rows of one claim stand for."""
    lane_of, kind_of, policy_of = names.lane_of, names.kind_of, names.policy_of
    return [
        Attempt(
            int.from_bytes(job_id),
            job_id,
            attempt_id,
            claim_token,
            kind_of[kind],
            lane_of[lane],
            attempts,
            executions,
            generation,
            begun,
            # As the claim judged it: before the charge.
            max_executions - (executions - begun) >= 2,
            crashes,
            unstarted,
            policy_of[policy],
            payload,
            payload_bytes,
            created_at_ms,
            metadata,
            tenant,
            traceparent,
            tracestate,
        )
        for attempt_id, (
            job_id,
            lane,
            kind,
            policy,
            begun,
            generation,
            attempts,
            executions,
            max_executions,
            unstarted,
            crashes,
            payload_bytes,
            created_at_ms,
            metadata,
            tenant,
            traceparent,
            tracestate,
            payload,
        ) in zip(attempt_ids, rows, strict=True)
    ]


def limited_of(attempts: list[Attempt], limits: Sequence[Limits]) -> list[Attempt]:
    """These attempts with what each holds. Where limits are concerned none runs ahead."""
    if not any(limits):
        return attempts
    return [
        msgspec.structs.replace(
            attempt, runs_ahead=False, holds=holds, fences=tuple(Fence(key, value) for key, value in fences or ())
        )
        if is_limited or holds
        else attempt
        for attempt, (is_limited, holds, fences) in zip(attempts, limits, strict=True)
    ]


def attempt_ids(first: bytes, places: Iterable[int]) -> list[bytes]:
    """The ids of the attempts in these places of a claim, from 1: UUIDv7 like the claim's first one, counted on."""
    number = int.from_bytes(first) & ~(_COUNTING_BITS + 1)
    return [(number + place - 1).to_bytes(16) for place in places]
