"""What ends attempts, as settle and recover send it: one statement for a batch of any shapes.

::

    all succeeded and leave nothing but numbers ──▶ settle_plain ─┬─ all are the caller's, running, free, and nobody
                                                                  │  cancelled them ──▶ written
                                                                  └─ nothing was written ──┐
    anything else ─────────────────────────────────────────────────────────────────────────┴──▶ settle

What ends in the same way is told once, and members name their way by its number::

    ways      claim token, outcome, code, state, code …   1: T, succeeded, –, succeeded, –   2: T, failed, …, retrying
    members   job, attempt, way, usage …                  way 1 1 1 2 1 1 2 1 …
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, ParamSpec, TypeVar

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.errors import SettlementRejected
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer, BlackBox, Death, ErrorDetail, Settlement
from runwick.contracts.states import LEASED_STATES, LEGAL_MOVES, JobState
from runwick.contracts.usage import Usage
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.succeeding import narrow_of
from runwick.stores.steps import Step, Steps, Trial

P = ParamSpec("P")
T = TypeVar("T")

_NOBODY: Final = bytes(16)
"""No claim has this token."""

_LOCKED: Final = Answer.LOCKED
_NOTHING_MEASURED: Final = Usage()
_STANDS: Final = (None, None, None)
"""What a settlement writes that stands whatever was asked for."""

_Way = tuple[bytes, str, str | None, str, str | None, str | None, str | None, str | None]
"""Claim token; outcome, its code, state, its code; the same without the state for a job that somebody cancelled."""

_BARRED: Final = {
    state.value: next((leased.value for leased in LEASED_STATES if state not in LEGAL_MOVES[leased]), None)
    for state in JobState
}
"""By the state that a settlement asks for: the one from which the move is not legal."""


def end(
    bound: Bound, act: str, settlements: Sequence[Settlement], due: Due, *, dead: Sequence[bytes] = ()
) -> Steps[list[Answer]]:
    """End these attempts, for settle or recover; answers in input order. For what they held, others are called.

    Args:
        bound: the store.
        act: ``settle`` or ``recover``.
        settlements: what is to be written.
        due: of the act.
        dead: workers that are known to be dead: their attempts are recovered although no lease has run out, and
            their presence ends.

    Raises:
        SettlementRejected: the content of one cannot be stored, or its job's state does not allow the move; nothing
            was written.
    """
    finished = packed.ids(bound.claims.ended())
    narrow = _storable(narrow_of, bound.claims, settlements) if act == "settle" else None
    if narrow is not None and not (yield Trial("settle_plain", (*bound.gate(), *narrow.parameters, finished))):
        for token, jobs in narrow.jobs.items():
            bound.claims.gone(token, jobs)
        return [Answer.DONE] * len(settlements)
    parameters = (
        *bound.gate(),
        packed.Text(act.encode()),
        packed.ids(dead),
        *_storable(_columns, settlements),
        finished,
        CALLS_MAX,
    )
    attempts = [settlement.attempt for settlement in settlements]
    answers = [Answer.DONE] * len(settlements)
    rows = yield Step("settle", parameters)
    for place, answer, lane, due_at_ms, job in rows:
        if answer == "illegal":
            raise _illegal(settlements[place - 1])
        if answer == "waits":
            bound.marks.lower(lane, (due_at_ms, job))
        elif answer != "called":
            answers[place - 1] = Answer(answer)
    call_in(bound, (tuple(row[2:]) for row in rows if row[1] == "called"), due)
    forget(bound, attempts, answers)
    return answers


def _storable(make: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What packs settlements, done.

    Raises:
        SettlementRejected: the content of one cannot be stored.
    """
    try:
        return make(*arguments, **named)
    except (OverflowError, ValueError) as error:
        raise SettlementRejected(
            "settlement_rejected", f"the store cannot hold a value: {error}; nothing was written"
        ) from error


def forget(bound: Bound, attempts: Sequence[Attempt], answers: Sequence[Answer]) -> None:
    """What was answered is not held any more, except what is locked."""
    locked = {attempt.job for attempt, answer in zip(attempts, answers, strict=True) if answer is _LOCKED}
    for attempt in attempts:
        if attempt.job not in locked:
            bound.claims.gone(attempt.claim_token, (attempt.job_id,))


def tokens_of(attempts: Iterable[Attempt]) -> list[bytes]:
    """The claim tokens of these attempts; one that comes twice holds nothing the second time."""
    seen: set[tuple[int, bytes]] = set()
    tokens = []
    for attempt in attempts:
        key = attempt.job, attempt.claim_token
        tokens.append(_NOBODY if key in seen else attempt.claim_token)
        seen.add(key)
    return tokens


def _way(token: bytes, settlement: Settlement) -> _Way:
    outcome, instead = settlement.outcome, settlement.if_cancelled
    if_cancelled = _STANDS if instead is None else (str(instead.outcome), instead.outcome_code, instead.code)
    return token, str(outcome.kind), outcome.code, str(settlement.state), settlement.code, *if_cancelled


def _columns(settlements: Sequence[Settlement]) -> tuple[packed.Packed, ...]:
    """The settlements, and then the ways in which they end, as the statement takes them."""
    ways: dict[_Way, int] = {}
    attempts = [settlement.attempt for settlement in settlements]
    numbers = [
        ways.setdefault(_way(token, settlement), len(ways) + 1)
        for token, settlement in zip(tokens_of(attempts), settlements, strict=True)
    ]
    outcomes = [settlement.outcome for settlement in settlements]
    usages = [outcome.usage or _NOTHING_MEASURED for outcome in outcomes]
    tokens, *ends = zip(*ways, strict=True) if ways else ((),) * 8
    barred = [_BARRED[state] for state in ends[2]]
    texts = list(map(packed.texts, ends))
    return (
        packed.ids([attempt.job_id for attempt in attempts]),
        packed.ids([attempt.attempt_id for attempt in attempts]),
        packed.numbers(numbers),
        packed.numbers([outcome.begun_at_ms for outcome in outcomes]),
        packed.numbers([usage.wall_us for usage in usages]),
        packed.numbers([usage.cpu_us for usage in usages]),
        packed.numbers([usage.rss_peak_bytes for usage in usages]),
        packed.jsons([_json(outcome.usage) for outcome in outcomes]),
        packed.numbers([settlement.delay_ms for settlement in settlements]),
        packed.jsons([_json(outcome.error) for outcome in outcomes]),
        packed.blobs([outcome.result for outcome in outcomes]),
        packed.jsons([_json(outcome.death) for outcome in outcomes]),
        packed.jsons([_json(outcome.black_box) for outcome in outcomes]),
        packed.ids(tokens),
        *texts[:4],
        packed.texts(barred),
        *texts[4:],
    )


def _json(value: Usage | ErrorDetail | Death | BlackBox | None) -> bytes | None:
    return None if value is None else msgspec.json.encode(value)


def _illegal(settlement: Settlement) -> SettlementRejected:
    state = settlement.state.value
    return SettlementRejected(
        "settlement_rejected",
        f"job {id_text(settlement.attempt.job_id)} is {_BARRED[state]} and cannot become {state}; begin the attempt "
        "first, or release it",
    )
