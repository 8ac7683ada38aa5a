"""Recover: attempts whose lease ran out, or whose worker is dead, are closed as the policy says.

::

    expired: look at the claims that are due ──▶ decide ──▶ settle, if the lease is still run out ──▶ look further
             put off what was renewed                       (of a dead worker: if it is still its)

Between looking and writing nobody is kept from anything: a settlement or renewal that comes in between wins, and a
cancel is found with the row.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.ending import end
from runwick.stores.postgres.leased import COLUMNS, attempt_ids, attempts_of, know, limited_of
from runwick.stores.postgres.marks import START
from runwick.stores.postgres.names import Wanted
from runwick.stores.steps import Preparation, Step, Steps

_CLAIMS_AT_ONCE: Final = 500
_LOOKS_MAX: Final = 40
"""What one pass looks at is bounded; the rest is due in the next."""


def recover(
    bound: Bound, application: str, decide: Callable[[Attempt], Settlement], limit: int, *, worker: bytes | None
) -> Act[int]:
    """Close up to `limit` expired attempts of an application, the longest expired first; answers how many.

    Args:
        bound: the store.
        application: whose attempts.
        decide: the settlement of one.
        limit: at most this many.
        worker: one that is dead: its attempts are closed, run out or not, no others, and its presence ends.
    """
    return MakesDue("recover", lambda due: _recover(bound, application, decide, limit, worker, due))


def _recover(
    bound: Bound,
    application: str,
    decide: Callable[[Attempt], Settlement],
    limit: int,
    worker: bytes | None,
    due: Due,
) -> Steps[int]:
    number = yield from bound.names.find(Wanted(application))
    if number is None:
        return 0
    dead = [] if worker is None else [worker]
    ended, recovered, behind = 0, 0, START
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
                packed.ids(dead),
            ),
        )
        claims, *behind = rows[0][:3]
        found = [row[3:] for row in rows if row[3] is not None]
        if found:
            settlements = [decide(expired) for expired in (yield from _expired(bound, found))]
            answers = yield from end(bound, "recover", settlements, due, dead=dead)
            ended += len(answers)
            recovered += sum(answer in (Answer.DONE, Answer.CANCELLED) for answer in answers)
            due.add(number)
        if claims < _CLAIMS_AT_ONCE or recovered >= limit:
            break
    if worker is not None and not ended:
        yield Step("depart", (*bound.gate(), packed.number(number), packed.Id(worker), packed.flag(False)))
    return recovered


def _expired(bound: Bound, rows: Sequence[Sequence[Any]]) -> Steps[list[Attempt]]:
    """What the policy is shown: rows of claim token, first attempt id, place, attempt."""
    yield from know(bound.names, [row[3 : COLUMNS + 2] for row in rows])
    shown = []
    for claim_token, first_attempt_id, place, *attempt in rows:
        ids = attempt_ids(first_attempt_id, [place])
        attempts = attempts_of(bound.names, claim_token, ids, [attempt[: COLUMNS - 1]])
        shown += limited_of(attempts, [attempt[COLUMNS - 1 :]])
    return shown
