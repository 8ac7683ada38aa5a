"""What PostgreSQL says when something goes wrong, and what that means to the caller: was anything written?

::

    no connection, or one that was dead before a word was sent ──▶ no
    the server answered ERROR and waits for the next statement ──▶ not of that statement
    no answer: connection lost, its backend ended, out of time ──▶ nobody knows (of a read: it does not matter)

An act is applied by one statement. When it sent others before, which were applied, then what a later failure leaves
behind is unknown too, unless the act said that those only prepared it.
"""

import uuid
from typing import Final, NamedTuple

import psycopg

from runwick.contracts.administration import Admission
from runwick.contracts.controls import ControlAction, SteerAction
from runwick.contracts.errors import (
    OutcomeUnknown,
    RunwickError,
    SettlementRejected,
    StoreHistoryBroken,
    StoreNotInstalled,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.stores import refusals
from runwick.stores.postgres.revision import REVISION

_COLLISIONS: Final = {
    "40001": "collided with other transactions",
    "40P01": "came into a deadlock with other transactions",
}
_BUSY: Final = {
    **_COLLISIONS,
    "55P03": "did not get a lock in time",
    "57014": "was stopped, by its time limit or by somebody,",
    "25006": "met a server that takes no writes now",
}
"""What can be different the next time…"""
_OUT_OF_REACH: Final = ("08", "53", "57P", "58")
"""… and whole classes of it: connections, resources, operators, the server's own system."""
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_FOREIGN: Final = frozenset({"0A000", "3F000", "42703", "42704", "42809", "42883", "42P01"})
"""A name that is not there, or is something else: of a store of another release, or of none."""
_UNSTORABLE: Final = ("22", "23", "54")
_CREATED_BEFORE: Final = "23505"
_OVERTAKEN: Final = "RW007"
_FORBIDDEN: Final = "42501"
_CREATING: Final = frozenset({"dispatch", "claim", "reveal", *ControlAction, *SteerAction})
"""Acts that create what their caller has named: another sending of the same may just have done it, unseen so far."""


class Situation(NamedTuple):
    """What was being done when something went wrong."""

    act: str
    shown: str
    """The store's address for people."""
    limit_ms: float
    """Of one call."""


def sqlstate(error: BaseException | None) -> str:
    """The server's code of what went wrong; empty for an error that it did not answer."""
    return getattr(error, "sqlstate", None) or ""


def is_collision(error: BaseException | None) -> bool:
    """Whether the same act can succeed at once: the server undid it because of others."""
    return sqlstate(error) in (*_COLLISIONS, _CREATED_BEFORE, _OVERTAKEN)


def is_about_schema(error: BaseException) -> bool:
    """Whether the store's revision says better what is wrong."""
    return sqlstate(error) in _FOREIGN


def first_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    return said.strip().partition("\n")[0]


def unanswered(error: BaseException, situation: Situation, *, writes: bool, ran_out: bool) -> RunwickError:
    """The error to raise when a statement was sent and its answer did not come, in time when it `ran_out`."""
    act, shown, limit_ms = situation
    why = f"no answer in {limit_ms:.0f} ms" if ran_out else first_line(error)
    if not writes:
        return StoreUnavailable("store_unavailable", f"{shown} did not answer {act} ({why}); it only reads, try again")
    return OutcomeUnknown(
        "outcome_unknown", f"the answer to {act} was lost ({why}); it may or may not be applied on {shown}"
    )


def half_done(error: BaseException, situation: Situation) -> OutcomeUnknown:
    """The error to raise when one statement of an act was applied and a later one was not."""
    return OutcomeUnknown(
        "outcome_unknown",
        f"{situation.act} was applied on {situation.shown} in part or in full, then its end failed "
        f"({first_line(error)}); what it left there is unknown",
    )


def refused(error: Exception, situation: Situation) -> Exception:
    """The error to raise instead of the server's own answer `error`, after which nothing of the statement was applied.

    What only a mistake in Runwick can cause is returned as it is.
    """
    act, shown, _ = situation
    state = sqlstate(error)
    if isinstance(error, psycopg.Error) and state.startswith("RW"):
        return _closed_gate(error, state, situation)
    if state == _CREATED_BEFORE and act in _CREATING:
        return StoreUnavailable(
            "store_unavailable",
            f"{act} on {shown} met another sending of itself, or others with its keys; nothing was written; try again",
        )
    is_out_of_reach = state.startswith(_OUT_OF_REACH) or (not state and isinstance(error, psycopg.OperationalError))
    if state == _FORBIDDEN:
        return StoreUnavailable(
            "store_unavailable",
            f"{act} on {shown} is not allowed to this role ({first_line(error)}); nothing was written; give it what "
            "grants.sql beside the PostgreSQL store gives",
        )
    if state in _BUSY or is_out_of_reach:
        why = _BUSY.get(state, "was refused")
        return StoreUnavailable(
            "store_unavailable", f"{act} on {shown} {why} ({first_line(error)}); nothing was written; try again"
        )
    if state in _DAMAGED:
        return StoreHistoryBroken(
            "store_history_broken",
            f"{shown} is damaged ({first_line(error)}); nothing was written; restore it from a backup",
        )
    is_unstorable = state.startswith(_UNSTORABLE) or isinstance(error, (psycopg.DataError, OverflowError, ValueError))
    if act == "settle" and is_unstorable:
        return SettlementRejected(
            "settlement_rejected", f"the store refused a value: {first_line(error)}; nothing was written"
        )
    return error


def _closed_gate(error: psycopg.Error, state: str, situation: Situation) -> Exception:
    """What the schema's own function refused; DETAIL says what it found, HINT for which application."""
    found, application = error.diag.message_detail or "", error.diag.message_hint or ""
    if state == "RW001":
        return refusals.admission_closed(application, Admission(found), situation.act)
    if state == "RW003":
        return revision_mismatch(int(found), situation.shown)
    if state == "RW004":
        return StoreProfileMismatch(
            "store_profile_mismatch",
            f"{situation.shown} has {found.replace('=', ' = ')} now, so that confirmed jobs could be lost; nothing was "
            "written; set it on again, or state allow_unsafe_durability",
        )
    if state == "RW005":
        return refusals.capability_unknown(application, found)
    if state == "RW006":
        operation_id, late_ms = found.split()
        return refusals.command_expired(uuid.UUID(operation_id).bytes, int(late_ms))
    if state == _OVERTAKEN:
        return StoreUnavailable(
            "store_unavailable",
            f"{situation.act} on {situation.shown} was overtaken by others that change the same; nothing was written; "
            "try again",
        )
    return error


def is_verdict(error: BaseException) -> bool:
    """Whether the statement undid itself because of what it found, which holds for the whole act."""
    return sqlstate(error) == "RW006"


def other_store(error: BaseException) -> bytes | None:
    """The identity that the gate found instead of the expected one; None when that is not what `error` says."""
    if isinstance(error, psycopg.Error) and sqlstate(error) == "RW002" and error.diag.message_detail:
        return uuid.UUID(error.diag.message_detail).bytes
    return None


def unreachable(error: psycopg.Error, shown: str) -> StoreUnavailable:
    """The refusal when there is no connection. Why, the driver says in words alone: no code tells a server that is away
    from one that refuses the role."""
    return StoreUnavailable(
        "store_unavailable",
        f"{shown} gives no connection ({first_line(error)}); nothing was sent; try again when the server is there, or "
        "mend the URL, the database or the role where the server names it",
    )


def revision_mismatch(found: int, shown: str) -> StoreRevisionMismatch:
    """The refusal of a store that is not of this release."""
    if found > REVISION:
        age, mend = "newer", "use the release that migrated it"
    else:
        age, mend = "older", "stop the processes of the old release and run `runwick migrate`"
    return StoreRevisionMismatch(
        "store_revision_mismatch",
        f"{shown} has revision {found}, this release works with {REVISION}: the store is {age}; {mend}",
    )


def not_installed(shown: str, found: str) -> StoreNotInstalled:
    """The refusal of a database that holds no store; `found` says what is there instead."""
    return StoreNotInstalled(
        "store_not_installed",
        f"{shown} is not a Runwick store ({found}); create it once with `runwick migrate --app MODULE`",
    )


def no_connection_free(shown: str, wait_ms: float) -> StoreUnavailable:
    """The refusal when all connections are busy."""
    return StoreUnavailable(
        "store_unavailable",
        f"no connection to {shown} came free in {wait_ms:.0f} ms; nothing was sent; call less at once",
    )


def closed(shown: str) -> StoreUnavailable:
    """The refusal when another thread closes the store meanwhile."""
    return StoreUnavailable(
        "store_unavailable", f"{shown} was closed by this process before the call had its turn; nothing was sent"
    )
