"""Prepared requests that come back from where an application kept them. Foreign input: every rule is checked again.

::

    bytes ▸ form and version ▸ typed commands ▸ are they what `export` writes? ▸ each command ▸ the batch

Only what `export` of this release writes is taken, so that nothing unknown slips through. Nothing is imported or
called, and no payload becomes a record: what is not declared any more can still be sent again for its answer.
"""

import datetime
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from runwick.config.check import check_job_settings
from runwick.contracts.dispatching import (
    COMMAND_LIFETIME_MAX_MS,
    EXPORT_BATCH,
    EXPORT_ONE,
    Command,
    Prepared,
    PreparedBatch,
    exported,
)
from runwick.contracts.errors import DispatchValidationError, InvalidArgument
from runwick.contracts.identity import job_of_operation
from runwick.contracts.jobs import JobSettings
from runwick.contracts.names import JOB_NAME_MAX_CHARACTERS, name_problem
from runwick.contracts.policies import JobPolicy
from runwick.declarations.suggestions import quoted
from runwick.dispatch.imported_limits import check_keys, check_needs
from runwick.dispatch.options import DELAY_MAX, LAST_MS, When, check_order, checked_tenant, metadata_bytes
from runwick.dispatch.prepare import check_batch_length, check_batch_size
from runwick.dispatch.trace import Trace, is_well_formed
from runwick.wire.limits import PAYLOAD_MAX_BYTES
from runwick.wire.strict import decode_strict

CLOCKS_APART_MAX_MS: Final = 24 * 60 * 60 * 1000
"""How far a deadline may seem too late, for this process may not have met the store and its clock may be wrong."""

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_DELAY_MAX_MS: Final = DELAY_MAX // _MILLISECOND
_ID_BYTES: Final = 16
_VERSION_MAX: Final = 2**31 - 1

_READ: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_READ_FORM: Final = msgspec.msgpack.Decoder(str)
_READ_FLAG: Final = msgspec.msgpack.Decoder(bool)
_READ_COMMAND: Final = msgspec.msgpack.Decoder(Command)


def imported(data: bytes | bytearray | memoryview, application: str, now_ms: int) -> Prepared | PreparedBatch:
    """The prepared request that `export` wrote.

    Args:
        data: what it wrote.
        application: who reads it; requests of another application are refused.
        now_ms: the store's time, as far as it is known.

    Raises:
        DispatchValidationError: they are other bytes (code ``invalid_prepared``).
    """
    try:
        form, continue_on_conflict, commands = _decoded(data)
        for command in commands:
            _check(command, application, now_ms)
        _check_batch(commands)
    except InvalidArgument as refused:
        what = "these bytes are no prepared dispatch that this application can send"
        raise DispatchValidationError("invalid_prepared", f"{what}: {refused.message}") from None
    return Prepared(commands[0]) if form == EXPORT_ONE else PreparedBatch(commands, continue_on_conflict)


def _decoded(data: Any) -> tuple[str, bool, tuple[Command, ...]]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise _refusal(f"give the bytes that export() wrote, this is {type(data).__name__}")
    try:
        data = bytes(data)
        read_form, read_flag, *read_commands = _READ.decode(data)
        form, continue_on_conflict = _READ_FORM.decode(read_form), _READ_FLAG.decode(read_flag)
        commands = tuple(_READ_COMMAND.decode(each) for each in read_commands)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _refusal(f"they cannot be read ({error})") from None
    _require(form in (EXPORT_ONE, EXPORT_BATCH), f"this release does not read the form {quoted(form)}")
    _require(len(commands) == 1 or form == EXPORT_BATCH, f"one dispatch is expected, there are {len(commands)}")
    _require(not continue_on_conflict or form == EXPORT_BATCH, "only a batch can go on after a conflict")
    written = exported(form, commands, continue_on_conflict=continue_on_conflict)
    _require(written == data, "they hold more than a prepared dispatch, or hold it in another way")
    return form, continue_on_conflict, commands


def _check(command: Command, application: str, now_ms: int) -> None:
    """Hold one command against what `prepare` could have made."""
    _check_ids(command)
    _require(
        command.application == application,
        f"they were prepared by application {quoted(command.application)}, this is {quoted(application)}",
    )
    _require(
        0 < command.deadline_ms <= now_ms + COMMAND_LIFETIME_MAX_MS + CLOCKS_APART_MAX_MS,
        "the deadline is later than any that can have been given by now",
    )
    _check_name("the job's name", command.kind.name, JOB_NAME_MAX_CHARACTERS)
    _require(1 <= command.kind.version <= _VERSION_MAX, f"the job's version is {command.kind.version}")
    _check_name("the queue", command.lane.queue)
    _check_policy(command.policy)
    _require(len(command.payload) <= PAYLOAD_MAX_BYTES, f"the payload has {len(command.payload):,} bytes")
    decode_strict(command.payload, dict[str, msgspec.Raw])
    start = _when("not_before", command.not_before_ms, command.delay_ms, shortest_ms=0)
    expiry = _when("expires_at", command.expires_at_ms, command.expires_in_ms, shortest_ms=1)
    check_order(start, expiry)
    if command.metadata is not None:
        read = decode_strict(command.metadata, dict[str, str])
        _require(metadata_bytes(read) == command.metadata, "the metadata are not written as export() writes them")
    checked_tenant(command.tenant)
    check_needs(command)
    check_keys(command)
    _require(is_well_formed(Trace(command.traceparent, command.tracestate)), "the trace context is none")


def _check_ids(command: Command) -> None:
    operation = command.operation_id
    _require(len(operation) == _ID_BYTES and operation[6] >> 4 == 7, "the operation's id is no UUIDv7")
    _require(command.job_id == job_of_operation(operation), "the job's id does not belong to the operation's")
    _require(command.store_id is None or len(command.store_id) == _ID_BYTES, "the store's id is none")


def _check_name(what: str, name: str, max_characters: int | None = None) -> None:
    why = name_problem(name) if max_characters is None else name_problem(name, max_characters=max_characters)
    _require(why is None, f"{what} {quoted(name)} is not a name: {why}")


def _check_policy(policy: JobPolicy) -> None:
    """The bounds are those of declared settings, so they are checked as such."""
    limit_ms = policy.execution_timeout_ms
    settings = JobSettings(
        max_executions=policy.max_executions,
        execution_timeout=None if limit_ms is None else _duration(limit_ms),
        retry_delay=(_duration(policy.retry_initial_ms), _duration(policy.retry_max_ms)),
        max_unstarted=policy.max_unstarted,
        unstarted_delay=(_duration(policy.unstarted_initial_ms), _duration(policy.unstarted_max_ms)),
        max_crashes=policy.max_crashes,
    )
    for problem in check_job_settings("policy", settings):
        raise _refusal(problem.text)


def _duration(milliseconds: int) -> datetime.timedelta:
    try:
        return milliseconds * _MILLISECOND
    except OverflowError:
        raise _refusal(f"the policy has a duration of {milliseconds:,} ms") from None


def _when(name: str, at_ms: int | None, delay_ms: int | None, shortest_ms: int) -> When:
    _require(at_ms is None or delay_ms is None, f"{name} is a time and a delay at once")
    _require(at_ms is None or 0 <= at_ms <= LAST_MS, f"{name} is no time that can be shown")
    _require(delay_ms is None or shortest_ms <= delay_ms <= _DELAY_MAX_MS, f"the delay of {name} is out of bounds")
    return When(at_ms, delay_ms)


def _check_batch(commands: Sequence[Command]) -> None:
    check_batch_length(len(commands))
    check_batch_size(commands)
    _require(len({command.operation_id for command in commands}) == len(commands), "an operation is there twice")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _refusal(otherwise)


def _refusal(why: str) -> InvalidArgument:
    return InvalidArgument("invalid_prepared", why)
