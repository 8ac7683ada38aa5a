"""Begin: a reserved attempt is authorised to call its handler, charged, and given its payload.

A job that somebody cancelled, or that has expired, is closed instead, and what it held is freed. Sent again, the act
finds the attempt begun and charges nothing.
"""

import msgspec

from runwick.contracts.attempts import Attempt, Begun
from runwick.contracts.errors import StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer
from runwick.contracts.stores import Act
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound, Due, MakesDue
from runwick.stores.postgres.calling import CALLS_MAX, call_in
from runwick.stores.postgres.ending import forget
from runwick.stores.steps import Step, Steps


def begin(bound: Bound, attempt: Attempt) -> Act[Begun]:
    """Authorise and charge a reserved attempt and read its payload, or say why it may not run.

    Raises (when run):
        StoreUnavailable: somebody else's transaction holds the job's row.
    """
    return MakesDue("begin", lambda due: _begin(bound, attempt, due))


def _begin(bound: Bound, attempt: Attempt, due: Due) -> Steps[Begun]:
    ids = packed.Id(attempt.job_id), packed.Id(attempt.claim_token)
    rows = yield Step("begin", (*bound.gate(), *ids, CALLS_MAX))
    if not rows:
        return Begun(None)
    (is_free, ended, executions, payload, *_), *called = rows
    call_in(bound, (tuple(row[4:]) for row in called), due)
    if not is_free:
        raise StoreUnavailable(
            "store_unavailable",
            f"another transaction holds the row of job {id_text(attempt.job_id)}; nothing was written, try again",
        )
    if ended is not None:
        forget(bound, [attempt], [Answer.CANCELLED])
        return Begun(None, ended)
    return Begun(msgspec.structs.replace(attempt, begun=True, execution=executions, payload=payload))
