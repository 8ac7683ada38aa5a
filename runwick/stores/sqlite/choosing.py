"""What a claim of plain jobs takes: candidates are read with all that their attempts hand out, and chosen among.

::

    one kind is due in the lane ──▶ claim_whole: in claim order, from the index into the rows
    several                     ──▶ ready: from the index alone, merged ──▶ claim_some: the rows of those

So what is leased needs not be read again. Where a candidate has limits all of them are judged instead.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, PAYLOAD_INLINE_MAX_BYTES, Attempt, ClaimPlan, Lane
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import COUNTING_BITS, counted_from, json_list
from runwick.stores.sqlite.ready import Turn, ready
from runwick.stores.steps import Step, Steps

Whole = tuple[int, bytes, int, int, int, bytes | None, str | None]
"""(job, job_id, kind, policy, created_at_ms, payload, more): a row of ``claim_whole.sql``."""


class More(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a plain job has none of when it is tried for the first time, as ``claim_whole.sql`` reads it."""

    limited: int = 0
    expires_at_ms: int | None = None
    payload_bytes: int = 0
    generation: int = 1
    attempts: int = 0
    executions: int = 0
    unstarted: int = 0
    crashes: int = 0
    tenant: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    metadata: str | None = None


_NO_MORE: Final = More()
_more: Final = msgspec.json.Decoder(More)


class Choice:
    """What a claim takes, as far as its plan allows.

    Args:
        first_attempt_id: from which the ids of its attempts are counted.
    """

    def __init__(self, interned: Interned, plan: ClaimPlan, now_ms: int, first_attempt_id: bytes) -> None:
        self.attempts: list[Attempt] = []
        """To be leased, in claim order, as they stand then."""
        self.begun: list[int] = []
        self.reserved: list[int] = []
        """Their jobs; those are reserved whose payload is read later, so that the claim cannot begin them."""
        self.expired: list[int] = []
        self.stopped_at_lone = False
        self.full = False
        self._interned = interned
        self._plan = plan
        self._now_ms = now_ms
        self._limit = min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)
        self._room_bytes = plan.payload_bytes
        self._counted_from = counted_from(first_attempt_id)

    @property
    def wanted(self) -> int:
        """How many more jobs the plan has room for."""
        return self._limit - len(self.attempts) - len(self.expired)

    def add(self, lane: Lane, rows: Iterable[Whole]) -> bool:
        """Go through waiting jobs of a lane in claim order; `full` says when the plan has ended.

        Returns:
            False where it meets a job that has limits.
        """
        policies, kinds = self._interned.policies.values, self._interned.kinds.values
        for job, job_id, kind, policy_number, created_at_ms, payload, more in rows:
            its = _NO_MORE if more is None else _more.decode(more)
            if its.limited:
                return False
            if its.expires_at_ms is not None and its.expires_at_ms <= self._now_ms:
                self.expired.append(job)
                continue
            policy = policies[policy_number]
            runs_ahead = policy.max_executions - its.executions >= 2
            if not runs_ahead and len(self.attempts) >= self._plan.free:
                self.stopped_at_lone = self.full = True
                return True
            begun = payload is not None
            payload_bytes = its.payload_bytes if payload is None else len(payload)
            self._room_bytes -= payload_bytes
            if self._room_bytes < 0 and self.attempts:
                self.full = True
                return True
            (self.begun if begun else self.reserved).append(job)
            self.attempts.append(
                Attempt(
                    job,
                    job_id,
                    (self._counted_from + (job & COUNTING_BITS)).to_bytes(16),
                    self._plan.claim_token,
                    kinds[kind][1],
                    lane,
                    its.attempts + 1,
                    its.executions + begun,
                    its.generation,
                    begun,
                    runs_ahead,
                    its.crashes,
                    its.unstarted,
                    policy,
                    payload,
                    payload_bytes,
                    created_at_ms,
                    None if its.metadata is None else its.metadata.encode(),
                    its.tenant,
                    its.traceparent,
                    its.tracestate,
                )
            )
        self.full = self.wanted <= 0
        return True


def choose(
    interned: Interned, plan: ClaimPlan, turns: Iterable[Turn], now_ms: int, first_attempt_id: bytes
) -> Steps[Choice | None]:
    """What the plan takes, in the order of its turns; None where it meets a job that has limits."""
    choice = Choice(interned, plan, now_ms, first_attempt_id)
    for turn in turns:
        if turn.kinds and not choice.full:
            rows = yield from _whole(turn, min(turn.most, choice.wanted))
            if rows is None or not choice.add(interned.lanes.values[turn.lane][1], rows):
                return None
    return choice


def _whole(turn: Turn, wanted: int) -> Steps[Sequence[Whole] | None]:
    """The first `wanted` due jobs of a turn; None where the index tells of one that has limits."""
    rows: list[Whole]
    if len(turn.kinds) == 1:
        rows = yield Step("claim_whole", (turn.lane, turn.kinds[0], turn.due_by_ms, wanted, PAYLOAD_INLINE_MAX_BYTES))
        return rows
    entries = yield from ready(turn, wanted)
    if any(entry[-1] for entry in entries):
        return None
    jobs = [entry[2] for entry in entries]
    rows = yield Step("claim_some", (json_list(jobs), PAYLOAD_INLINE_MAX_BYTES))
    by_job = {row[0]: row for row in rows}
    return [by_job[job] for job in jobs]
