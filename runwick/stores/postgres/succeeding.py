"""The narrow way to settle: attempts that succeeded and leave nothing but numbers, as most do.

What is alike in all of them is not sent; what belongs to a claim is sent once for each, and attempts name it by its
place::

    claims    token, worker, time          1: T …   2: U …
    members   job, attempt, claim, usage … claim 1 1 1 2 1 1 2 1 …
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.outcomes import OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.stores.postgres import packed
from runwick.stores.postgres.claims import Claims

_SUCCESS: Final = OutcomeKind.SUCCEEDED
_SUCCEEDED: Final = JobState.SUCCEEDED
_NOTHING_MEASURED: Final = Usage()

_json: Final = msgspec.json.Encoder().encode


class Narrow(NamedTuple):
    """A batch that may go this way."""

    parameters: tuple[packed.Packed, ...]
    """Of ``settle_plain``, between the gate's and the claims of which nothing is left."""
    jobs: dict[bytes, list[bytes]]
    """By the token of their claim."""


def narrow_of(claims: Claims, settlements: Sequence[Settlement]) -> Narrow | None:
    """The batch as it goes the narrow way; None if it does not: one leaves more than numbers, holds a scope, comes
    twice or is of a claim that is not known here, or they are of several applications.

    Raises:
        OverflowError: a number is beyond 64 bits.
    """
    attempts = [settlement.attempt for settlement in settlements]
    outcomes = [settlement.outcome for settlement in settlements]
    jobs = [attempt.job_id for attempt in attempts]
    tokens = [attempt.claim_token for attempt in attempts]
    by_token: dict[bytes, list[bytes]] = {token: [] for token in tokens}
    makers = [maker for token in by_token if (maker := claims.maker(token)) is not None]
    if (
        any(map(_leaves_more, settlements))
        or len(makers) != len(by_token)
        or len({maker.application for maker in makers}) != 1
        or len(set(jobs)) != len(jobs)
    ):
        return None
    places = {token: place for place, token in enumerate(by_token, start=1)}
    for token, job in zip(tokens, jobs, strict=True):
        by_token[token].append(job)
    usages = [outcome.usage or _NOTHING_MEASURED for outcome in outcomes]
    parameters = (
        packed.number(makers[0].application),
        packed.ids(jobs),
        packed.ids([attempt.attempt_id for attempt in attempts]),
        packed.numbers([places[token] for token in tokens]),
        packed.numbers([outcome.begun_at_ms for outcome in outcomes]),
        packed.numbers([usage.wall_us for usage in usages]),
        packed.numbers([usage.cpu_us for usage in usages]),
        packed.numbers([usage.rss_peak_bytes for usage in usages]),
        packed.jsons([None if outcome.usage is None else _json(outcome.usage) for outcome in outcomes]),
        packed.ids([*by_token]),
        packed.ids([maker.worker for maker in makers]),
        packed.numbers([maker.claimed_at_ms for maker in makers]),
    )
    return Narrow(parameters, by_token)


def _leaves_more(settlement: Settlement) -> bool:
    """Whether it is no success, or has a code, error, result, death or black box to keep, or holds a scope."""
    outcome = settlement.outcome
    return (
        settlement.state is not _SUCCEEDED
        or outcome.kind is not _SUCCESS
        or settlement.code is not None
        or outcome.code is not None
        or outcome.error is not None
        or outcome.result is not None
        or outcome.death is not None
        or outcome.black_box is not None
        or settlement.attempt.holds > 0
    )
