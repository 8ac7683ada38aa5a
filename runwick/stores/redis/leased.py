"""Attempts under way, as `lua/leased.lua` tells of them."""

from collections.abc import Iterable

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.limits import Fence
from runwick.stores.redis.packed import Legend


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What was asked for, as dispatch packed it."""

    payload: bytes | None
    """None where it lies apart."""
    metadata: bytes | None
    traceparent: str | None
    tracestate: str | None


class Leased(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One attempt; lane, kind, tenant and policy by number."""

    job: int
    job_id: bytes
    attempt_id: bytes
    claim_token: bytes
    kind: int
    lane: int
    tenant: int
    """0: none."""
    policy: int
    number: int
    execution: int
    generation: int
    begun: bool
    runs_ahead: bool
    crashes: int
    unstarted: int
    payload_bytes: int
    created_at_ms: int
    holds: int
    fences: list[tuple[str, int]]
    body: Body
    apart: bytes | None
    """A payload that lies apart and comes along."""


def attempts_of(rows: Iterable[Leased], legend: Legend) -> list[Attempt]:
    """The attempts that these stand for."""
    lanes, kinds, policies = legend.lanes, legend.kinds, legend.policies
    return [
        Attempt(
            row.job,
            row.job_id,
            row.attempt_id,
            row.claim_token,
            kinds[row.kind],
            lanes[row.lane],
            row.number,
            row.execution,
            row.generation,
            row.begun,
            row.runs_ahead,
            row.crashes,
            row.unstarted,
            policies[row.policy],
            row.body.payload if row.apart is None else row.apart,
            row.payload_bytes,
            row.created_at_ms,
            row.body.metadata,
            legend.tenant(row.tenant) if row.tenant else None,
            row.body.traceparent,
            row.body.tracestate,
            row.holds,
            tuple([Fence(*fence) for fence in row.fences]) if row.fences else (),
        )
        for row in rows
    ]
