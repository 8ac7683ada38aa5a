"""What Redis says when something goes wrong, and what that means to the caller: was anything written?

::

    no connection, or one that was dead before a byte was sent ──▶ no
    the server answered an error before the function ran       ──▶ no
    the function answered an error of the gate                 ──▶ no
    no answer: connection lost, out of time                    ──▶ nobody knows (of a read: it does not matter)

An error out of the middle of a function is a mistake in Runwick, and raised as it is.
"""

from typing import Final, NamedTuple

import redis.exceptions

from runwick.contracts.administration import Admission
from runwick.contracts.errors import (
    OutcomeUnknown,
    RunwickError,
    SettlementRejected,
    StoreError,
    StoreNotInstalled,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.stores import refusals
from runwick.stores.redis.revision import REVISION

_BUSY: Final = {
    "BUSY": "met a server that is busy with a script",
    "READONLY": "met a replica, where nothing can be written",
    "OOM": "met a server whose memory is full (maxmemory)",
    "MISCONF": "met a server that cannot write to its disk",
    "LOADING": "met a server that is still loading its data",
    "MASTERDOWN": "met a replica that has lost its primary",
    "NOREPLICAS": "met a server that wants more replicas (min-replicas-to-write)",
}
"""What can be different the next time…"""
_FORBIDDEN: Final = {
    "NOPERM": "is not allowed to this user",
    "NOAUTH": "needs a user and a password",
    "WRONGPASS": "was refused: user and password do not fit",
}
"""… and what an operator must mend."""
_NUMBERED: Final = {
    "applications": "applications",
    "L": "lanes of an application (queues by their priorities)",
    "K": "job types of an application (names by their versions)",
    "T": "tenants of an application",
    "P": "retry settings of an application",
}
"""What the store knows by numbers, of which there are not so many."""
_IN_FUNCTION: Final = ", on @user_function:"
"""Stands in what was raised in the middle of one, whatever its first word is."""
_FORBIDDEN_INSIDE: Final = "ACL failure in script"
_NO_FUNCTION: Final = "Function not found"
_LOADED_ALREADY: Final = "already exists"


class Situation(NamedTuple):
    """What was being done when something went wrong."""

    act: str
    shown: str
    """The store's address for people."""
    limit_ms: float
    """Of one command."""


def code_of(error: BaseException | None) -> str:
    """The first word of the server's own answer; empty for an error that it did not answer."""
    if not isinstance(error, redis.exceptions.RedisError):
        return ""
    if error.status_code is not None:
        return error.status_code
    return str(error).partition(" ")[0] if isinstance(error, redis.exceptions.ResponseError) else ""


def is_function_missing(error: BaseException) -> bool:
    """Whether the server does not have the library: nothing ran."""
    return code_of(error) == "ERR" and str(error) == _NO_FUNCTION


def is_loaded_already(error: BaseException) -> bool:
    """Whether the server has the library that was to be loaded: somebody was faster."""
    return code_of(error) == "ERR" and _LOADED_ALREADY in str(error)


def first_line(error: BaseException) -> str:
    """What went wrong, on one line, with the server's code."""
    said = str(error).strip().partition("\n")[0]
    code = code_of(error)
    return said if not code or said.startswith(code) else f"{code} {said}"


def unanswered(error: BaseException, situation: Situation, *, writes: bool) -> RunwickError:
    """The error to raise when a command was sent and its answer did not come."""
    act, shown, limit_ms = situation
    ran_out = isinstance(error, redis.exceptions.TimeoutError)
    why = f"no answer in {limit_ms:.0f} ms" if ran_out else first_line(error)
    if not writes:
        return StoreUnavailable("store_unavailable", f"{shown} did not answer {act} ({why}); nothing was written")
    return OutcomeUnknown(
        "outcome_unknown", f"the answer to {act} was lost ({why}); it may or may not be applied on {shown}"
    )


def is_cut_short(error: BaseException) -> bool:
    """Whether an ACL forbade a command in the middle of a function."""
    return _FORBIDDEN_INSIDE in str(error) and _IN_FUNCTION in str(error)


def cut_short(error: BaseException, situation: Situation, *, writes: bool) -> RunwickError:
    """The error to raise then. What permits a function is asked before, so the ACL has changed since."""
    act, shown, _ = situation
    why = f"the server's ACL forbids one of its commands ({first_line(error)}); mend the ACL"
    if not writes:
        return StoreUnavailable("store_unavailable", f"{act} on {shown} was not answered: {why}")
    return OutcomeUnknown("outcome_unknown", f"{act} may or may not be applied on {shown}: {why}")


def refused(error: Exception, situation: Situation, application: str) -> Exception:
    """The error to raise instead of the server's own answer `error`, after which nothing was written.

    What only a mistake in Runwick can cause is returned as it is.
    """
    act, shown, _ = situation
    code, found = code_of(error), str(error).partition(" ")[2]
    if _IN_FUNCTION in str(error):
        return error
    if code == "RWREVISION":
        return revision_mismatch(int(found), shown)
    if code == "RWCLOSED":
        return refusals.admission_closed(application, Admission(found.strip()), act)
    if code == "RWFULL":
        return _full(found.strip(), application, shown)
    if code == "RWCAPABILITY":
        return refusals.capability_unknown(application, found.strip())
    if is_function_missing(error):
        return StoreUnavailable(
            "store_unavailable",
            f"{act} on {shown} found its function gone again after it was loaded; nothing was written; see who runs "
            "FUNCTION FLUSH",
        )
    if code in _BUSY:
        return StoreUnavailable(
            "store_unavailable", f"{act} on {shown} {_BUSY[code]} ({first_line(error)}); nothing was written; try again"
        )
    if code in _FORBIDDEN:
        return StoreUnavailable(
            "store_unavailable",
            f"{act} on {shown} {_FORBIDDEN[code]} ({first_line(error)}); nothing was written; mend the URL or the "
            "server's ACL",
        )
    if not code and isinstance(error, redis.exceptions.RedisError):  # before a byte was sent
        return StoreUnavailable(
            "store_unavailable", f"{act} on {shown} was not sent ({first_line(error)}); nothing was written; try again"
        )
    return error


def _full(found: str, application: str, shown: str) -> StoreError:
    """The refusal of what would need one number more than there are."""
    most, _, of = found.partition(" ")
    return StoreError(
        "store_full",
        f'{shown} keeps {int(most):,} {_NUMBERED[of]}, and "{application}" would need one more; nothing was written; '
        "use fewer different ones",
    )


def unpackable(error: Exception, act: str) -> Exception:
    """The error to raise instead of `error`, by which an act's arguments could not be packed; nothing was sent."""
    if act == "settle":
        return SettlementRejected(
            "settlement_rejected", f"a value cannot be sent: {first_line(error)}; nothing was written"
        )
    return error


def unreachable(error: BaseException, shown: str) -> StoreUnavailable:
    """The refusal when there is no connection."""
    return StoreUnavailable(
        "store_unavailable",
        f"{shown} gives no connection ({first_line(error)}); nothing was sent; try again when the server is there, or "
        "mend the URL or the server's ACL",
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


def not_installed(shown: str) -> StoreNotInstalled:
    """The refusal of a database that holds no store."""
    return StoreNotInstalled(
        "store_not_installed", f"{shown} is not a Runwick store; create it once with `runwick migrate --app MODULE`"
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
