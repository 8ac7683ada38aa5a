"""Dispatch: jobs become durable, all of a batch or none, in one call.

The function decides and writes; what it refuses is told here. A job is the receipt of its operation: sent again, an
operation finds it and answers the same.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.dispatching import ANSWERS_KEPT_MS, Command, DuplicateMatch, Receipt, ReceiptDisposition
from runwick.contracts.errors import ItemFailure
from runwick.contracts.identity import job_of_operation
from runwick.contracts.revealing import AuditNote
from runwick.contracts.stores import Act
from runwick.policy import uniqueness
from runwick.stores import by_hand, refusals
from runwick.stores.controls import command_conflict
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.intake import Intake
from runwick.stores.redis.profile import PROFILE

_MATCHES: Final = tuple(DuplicateMatch)


class _Found(msgspec.Struct, frozen=True, array_like=True):
    place: int
    job: bytes
    match: int
    drift: bool


class _Failed(msgspec.Struct, frozen=True, array_like=True):
    place: int
    code: str
    job: bytes


class _Applied(msgspec.Struct, frozen=True, array_like=True, tag=0):
    found: list[_Found]
    failed: list[_Failed]


class _Taken(msgspec.Struct, frozen=True, array_like=True, tag=1):
    place: int
    created_by: bytes


class _Late(msgspec.Struct, frozen=True, array_like=True, tag=2):
    place: int
    now_ms: int


class _Conflict(msgspec.Struct, frozen=True, array_like=True, tag=3):
    place: int
    code: str
    job: bytes


class _Elsewhere(msgspec.Struct, frozen=True, array_like=True, tag=4):
    meant: bytes
    found: bytes


class _NoRates(msgspec.Struct, frozen=True, array_like=True, tag=5):
    pass


class _Used(msgspec.Struct, frozen=True, array_like=True, tag=6):
    pass


_Refusal = _Taken | _Late | _Conflict | _Elsewhere | _NoRates | _Used
_answer: Final = msgspec.msgpack.Decoder(_Applied | _Refusal).decode
_found: Final = msgspec.msgpack.Decoder(_Found | None).decode


def dispatch(
    commands: Sequence[Command], *, continue_on_conflict: bool, note: AuditNote | None
) -> Act[list[Receipt | ItemFailure]]:
    """Create these jobs, all or none; receipts in input order.

    Raises (when run):
        StoreHistoryBroken: one is meant for another store.
        StoreError: a job's id was used by another operation (code ``operation_conflict``), or the application may not
            have rate windows (code ``rate_admission_not_active``).
        CommandExpired: one comes after its deadline.
        OutcomeUnknown: one comes so late that nobody knows (code ``expired_unknown``).
        UniquenessConflict: of the first item that meets one, unless `continue_on_conflict`.
    """
    return Act("dispatch", lambda: _dispatch(commands, continue_on_conflict, note))


def _dispatch(
    commands: Sequence[Command], continue_on_conflict: bool, note: AuditNote | None
) -> Calls[list[Receipt | ItemFailure]]:
    if not commands:
        return []
    distinct = list(_distinct(commands).items())
    answer = _answer((yield _call([command for _, command in distinct], continue_on_conflict, note)))
    if not isinstance(answer, _Applied):
        raise _refused(answer, distinct)
    answers: dict[bytes, Receipt | ItemFailure] = {
        command.job_id: _created(command.job_id, command.operation_id) for _, command in distinct
    }
    for found in answer.found:
        _, command = distinct[found.place]
        answers[command.job_id] = _receipt(command.operation_id, found)
    for failed in answer.failed:
        ordinal, command = distinct[failed.place]
        answers[command.job_id] = uniqueness.conflict_failure(_conflict(ordinal, command, failed.code, failed.job))
    return [
        msgspec.structs.replace(own, ordinal=ordinal) if isinstance(own, ItemFailure) else own
        for ordinal, own in enumerate(answers[command.job_id] for command in commands)
    ]


def _distinct(commands: Iterable[Command]) -> dict[int, Command]:
    """The commands by their places in the input, each job once; what comes twice must come from the same operation."""
    first: dict[bytes, Command] = {}
    distinct = {}
    for ordinal, command in enumerate(commands):
        known = first.get(command.job_id)
        if known is None:
            first[command.job_id] = distinct[ordinal] = command
        elif known.operation_id != command.operation_id:
            raise refusals.operation_conflict(command, known.operation_id)
    return distinct


def _call(commands: Sequence[Command], continue_on_conflict: bool, note: AuditNote | None) -> Call:
    intake = Intake(commands[0].application)
    items = [intake.item(command) for command in commands]
    meant = {command.store_id for command in commands if command.store_id is not None}
    arguments = packed.arguments(
        [packed.binary(store_id) for store_id in meant],
        continue_on_conflict,
        *intake.tables(),
        items,
        None if note is None else _by_hand(commands[0], note),
        ANSWERS_KEPT_MS,
    )
    return Call("dispatch", intake.application, arguments)


def _by_hand(command: Command, note: AuditNote) -> list[Any]:
    actor = note.actor
    fingerprint = packed.binary(by_hand.fingerprint(command, note))
    return [fingerprint, actor.subject, actor.display, actor.scheme, note.reason]


def _refused(refusal: _Refusal, distinct: Sequence[tuple[int, Command]]) -> Exception:
    match refusal:
        case _Taken(place, created_by):
            return refusals.operation_conflict(distinct[place][1], created_by)
        case _Late(place, now_ms):
            too_late = refusals.too_late(distinct[place][1], now_ms)
            assert too_late is not None, "the function judges by the same deadline"
            return too_late
        case _Conflict(place, code, job):
            return uniqueness.conflict_error(_conflict(*distinct[place], code, job))
        case _Elsewhere(meant, found):
            return refusals.identity_mismatch(meant, found)
        case _NoRates():
            return refusals.rate_admission_not_active(distinct[0][1].application)
        case _Used():
            return command_conflict(distinct[0][1])


def _conflict(ordinal: int, command: Command, code: str, job: bytes) -> uniqueness.Conflict:
    return uniqueness.Conflict(uniqueness.item_of(ordinal, command, command.policy), code, job)


def resolve(application: str, operation_id: bytes) -> Act[Receipt | None]:
    """The receipt of an operation that was applied; None when it was not, so far."""
    return Act("resolve", lambda: _resolve(application, operation_id), reads_only=True)


def _resolve(application: str, operation_id: bytes) -> Calls[Receipt | None]:
    job_id = job_of_operation(operation_id)
    arguments = packed.arguments(packed.binary(operation_id), packed.binary(job_id))
    found = _found((yield Call("resolve", application, arguments)))
    return None if found is None else _receipt(operation_id, found)


def _created(job_id: bytes, operation_id: bytes) -> Receipt:
    return Receipt(job_id, operation_id, ReceiptDisposition.CREATED, PROFILE)


def _receipt(operation_id: bytes, found: _Found) -> Receipt:
    match = _MATCHES[found.match]
    if match is DuplicateMatch.NONE:
        return _created(found.job, operation_id)
    return Receipt(found.job, operation_id, ReceiptDisposition.REUSED, PROFILE, match, policy_drift=found.drift)
