"""What ends attempts, as settle and recover send it.

What ends in the same way is told once, and members name their way by its place::

    ways      claim token, outcome, code, state, code …   1: T, succeeded, –, succeeded, –   2: T, failed, …, retrying
    members   job, way, begun …                           way 1 1 1 2 1 1 2 1 …
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.errors import SettlementRejected
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import LEASED_STATES, LEGAL_MOVES, JobState
from runwick.stores.redis.packed import STATE_NUMBERS, binary

_EXACT_MAX: Final = 2**53 - 1
"""Lua has no other numbers than those in which this is the last exact integer."""

_OUTCOME_NUMBERS: Final = {kind: number for number, kind in enumerate(OutcomeKind)}

_BARRED: Final = {
    state: next((leased for leased in LEASED_STATES if state not in LEGAL_MOVES[leased]), None) for state in JobState
}
"""By the state that a settlement asks for: the one from which the move is not legal."""

_NOTHING: Final = (None, None, None, None)
_encode: Final = msgspec.msgpack.Encoder().encode

_Way = tuple[bytes, OutcomeKind, str | None, JobState, str | None, IfCancelled | None]


def endings(settlements: Sequence[Settlement]) -> tuple[list[Sequence[Any]], list[Any], int]:
    """Settlements as both functions take them first: ways, members, how many these are.

    Raises:
        SettlementRejected: the content of one cannot be stored; nothing was written.
    """
    ways: dict[_Way, int] = {}
    members: list[Any] = []
    try:
        for settlement in settlements:
            attempt, outcome = settlement.attempt, settlement.outcome
            way = (
                attempt.claim_token,
                outcome.kind,
                outcome.code,
                settlement.state,
                settlement.code,
                settlement.if_cancelled,
            )
            cpu_us, rss_bytes = _costs(outcome)
            members += (
                attempt.job,
                ways.setdefault(way, len(ways) + 1),
                outcome.begun_at_ms,
                settlement.delay_ms,
                cpu_us,
                rss_bytes,
                _detail(outcome),
                None if outcome.result is None else binary(outcome.result),
            )
        told = [_told(way) for way in ways]
        _encode(told)  # what cannot be sent is refused here, by its own name
    except (UnicodeEncodeError, OverflowError) as error:
        raise SettlementRejected(
            "settlement_rejected", f"the store cannot hold a value: {error}; nothing was written"
        ) from error
    return told, members, len(settlements)


def illegal(settlement: Settlement) -> SettlementRejected:
    """What to raise when the job stands where it cannot be moved from as the settlement says."""
    barred = _BARRED[settlement.state]
    assert barred is not None, "only what is barred somewhere is refused"
    return SettlementRejected(
        "settlement_rejected",
        f"job {id_text(settlement.attempt.job_id)} is {barred.value} and cannot become {settlement.state.value}; "
        "begin the attempt first, or release it",
    )


def _told(way: _Way) -> Sequence[Any]:
    token, outcome, outcome_code, state, code, instead = way
    barred = _BARRED[state]
    return (
        binary(token),
        _OUTCOME_NUMBERS[outcome],
        outcome_code,
        STATE_NUMBERS[state],
        code,
        None if barred is None else STATE_NUMBERS[barred],
        *(() if instead is None else (_OUTCOME_NUMBERS[instead.outcome], instead.outcome_code, instead.code)),
    )


def _costs(outcome: Outcome) -> tuple[int | None, int | None]:
    """CPU time and memory, by which runs are ranked.

    Raises:
        OverflowError: a number is too large to be exact everywhere.
    """
    usage = outcome.usage
    costs = (None, None) if usage is None else (usage.cpu_us, usage.rss_peak_bytes)
    wall_us = None if usage is None else usage.wall_us
    if max(outcome.begun_at_ms or 0, wall_us or 0, costs[0] or 0, costs[1] or 0) > _EXACT_MAX:
        raise OverflowError("a number is beyond 53 bits")
    return costs


def _detail(outcome: Outcome) -> msgspec.Raw | None:
    """What is kept of an attempt besides how it ended; None where there is nothing."""
    kept = (outcome.usage, outcome.error, outcome.death, outcome.black_box)
    return None if kept == _NOTHING else binary(_encode(kept))
