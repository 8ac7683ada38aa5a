"""What stores refuse for reasons that they all share, in the same words."""

from typing import Final

from runwick.contracts.administration import Admission, Capability
from runwick.contracts.dispatching import ANSWERS_KEPT_MS, Command
from runwick.contracts.errors import (
    AdmissionClosed,
    CommandExpired,
    InvalidArgument,
    OutcomeUnknown,
    StoreError,
    StoreHistoryBroken,
)
from runwick.contracts.identity import id_text

_CURSOR_SHOWN: Final = 64
"""Characters of one, which may be anything, in a message."""


def admission_closed(application: str, mode: Admission, act: str) -> AdmissionClosed:
    """An act that the application's mode does not admit."""
    why = "is being drained" if mode is Admission.DRAIN else "is under maintenance"
    return AdmissionClosed(
        "admission_closed",
        f'application "{application}" {why}, so {act} is refused and nothing was written; try again when the operator '
        "has opened it (`runwick store admission --mode open`)",
    )


def capability_unknown(application: str, capability: str) -> StoreError:
    """New work for an application that can hold what this release does not know."""
    return StoreError(
        "capability_unknown",
        f'application "{application}" has the capability "{capability}", which this release does not know; nothing was '
        "written, use the release that activated it",
    )


def rate_admission_not_active(application: str) -> StoreError:
    """Jobs with rate windows where older releases, which know of none, may still claim."""
    return StoreError(
        "rate_admission_not_active",
        f'application "{application}" has not activated "{Capability.RATE_ADMISSION.value}", so it takes no jobs with '
        "rate windows; nothing was written, activate it when every worker is of this release "
        f"(`runwick store activate-capability --name {Capability.RATE_ADMISSION.value}`)",
    )


def identity_mismatch(known: bytes, found: bytes) -> StoreHistoryBroken:
    """Another store stands where this process, or a prepared dispatch, knew one."""
    return StoreHistoryBroken(
        "store_identity_mismatch",
        f"the store is {id_text(found)}, this is meant for {id_text(known)}; nothing was written, restart against the "
        "store that was meant",
    )


def too_late(command: Command, now_ms: int) -> CommandExpired | OutcomeUnknown | None:
    """What to answer to a dispatch whose job is not there: None before its deadline; for a day after it that it was
    never applied; later, when its job may have come and gone, that nobody knows."""
    late_ms = now_ms - command.deadline_ms
    if late_ms <= 0:
        return None
    if late_ms <= ANSWERS_KEPT_MS:
        return command_expired(command.operation_id, late_ms)
    return OutcomeUnknown(
        "expired_unknown",
        f"operation {id_text(command.operation_id)} came {late_ms:,} ms after its deadline, too late for a definite "
        "answer; it was not applied now, look for the job itself",
    )


def no_cursor(cursor: str) -> InvalidArgument:
    """A text that no reading of this store has answered, or that stands in front of what has not happened yet."""
    shown = repr(cursor if len(cursor) <= _CURSOR_SHOWN else cursor[:_CURSOR_SHOWN] + "…")
    return InvalidArgument("invalid_argument", f"{shown} is no cursor of this store; begin without one")


def command_expired(operation_id: bytes, late_ms: int) -> CommandExpired:
    """A dispatch that came after its deadline and was not applied before."""
    return CommandExpired(
        "command_expired",
        f"operation {id_text(operation_id)} came {late_ms:,} ms after its deadline; it was not applied and never will "
        "be, dispatch it as a new job",
    )


def operation_conflict(command: Command, created_by: bytes) -> StoreError:
    """A job's id that another operation has used."""
    return StoreError(
        "operation_conflict",
        f"job {id_text(command.job_id)} was created by operation {id_text(created_by)}, this is operation "
        f"{id_text(command.operation_id)}; nothing was written, dispatch it as a new job",
    )
