"""Recover: attempts whose lease ran out are closed as the policy says, whoever held them.

::

    expired: look at the claims that are due ──▶ decide ──▶ settle, if the lease is still run out ──▶ look further
             put off what was renewed

Between looking and writing nobody is kept from anything: a settlement or renewal that comes in between wins.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from runwick.contracts.attempts import Expired
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.ending import end
from runwick.stores.postgres.leased import attempt_ids, attempts_of, know
from runwick.stores.postgres.marks import START
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Preparation, Steps

_CLAIMS_AT_ONCE: Final = 500
_LOOKS_MAX: Final = 40
"""What one pass looks at is bounded; the rest is due in the next."""


def recover(bound: Bound, application: str, decide: Callable[[Expired], Settlement], limit: int) -> Act[int]:
    """Close up to `limit` expired attempts of an application, the longest expired first; answers how many."""
    return MakesDue("recover", lambda due: _recover(bound, application, decide, limit, due))


def _recover(
    bound: Bound, application: str, decide: Callable[[Expired], Settlement], limit: int, due: Due
) -> Steps[int]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return 0
    recovered, behind = 0, START
    for _ in range(_LOOKS_MAX):
        rows = yield Preparation(
            "expired",
            (
                *bound.gate(),
                packed.number(number),
                packed.number(behind[0]),
                packed.Id(behind[1]),
                packed.number(_CLAIMS_AT_ONCE),
                packed.number(limit - recovered),
            ),
        )
        claims, *behind = rows[0][:3]
        found = [row[3:] for row in rows if row[4] is not None]
        if found:
            settlements = [decide(expired) for expired in (yield from _expired(bound, found))]
            answers = yield from end(bound, "recover", settlements)
            recovered += answers.count(Answer.DONE)
            due.add(number)
        if claims < _CLAIMS_AT_ONCE or recovered >= limit:
            break
    return recovered


def _expired(bound: Bound, rows: Sequence[Sequence[Any]]) -> Steps[list[Expired]]:
    """What the policy is shown: rows of cancel, claim token, first attempt id, place, attempt."""
    yield from know(bound.names, [row[4:] for row in rows])
    shown = []
    for cancel_requested, claim_token, first_attempt_id, place, *attempt in rows:
        ids = attempt_ids(first_attempt_id, [place])
        (expired,) = attempts_of(bound.names, claim_token, ids, [attempt])
        shown.append(Expired(expired, cancel_requested))
    return shown
