"""A dispatch before it is sent: checked, serialised, named. Pure: it reads no clock and touches no store.

::

    record known? ▸ options ▸ payload ▸ keys ▸ ids        so that nothing gets an id that cannot be stored
"""

import datetime
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from runwick.contracts.ambient import Ids
from runwick.contracts.dispatching import BATCH_MAX_BYTES, BATCH_MAX_ITEMS, BatchItem, Command, DispatchOptions
from runwick.contracts.errors import DispatchValidationError, ItemFailure
from runwick.contracts.identity import job_of_operation
from runwick.contracts.jobs import Job
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.declarations.suggestions import did_you_mean
from runwick.dispatch.fingerprint import fingerprint
from runwick.dispatch.keys import NO_KEYS, Keys, check_start, keys_of
from runwick.dispatch.needs import NO_NEEDS, Needs, needs_of
from runwick.dispatch.options import check_order, checked_tenant, lane_for, metadata_bytes, when
from runwick.dispatch.trace import NO_TRACE, Trace

NO_CHANGES: Final = DispatchOptions()

_ZERO: Final = datetime.timedelta(0)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


class Validity(NamedTuple):
    """Until when a command can be applied, and where."""

    deadline_ms: int
    """By the store's clock."""
    store_id: bytes | None = None
    """None while this process has not met the store."""


def prepare(
    catalog: Catalog, job: Job, options: DispatchOptions, ids: Ids, validity: Validity, trace: Trace = NO_TRACE
) -> Command:
    """The command that dispatches `job`, ready to be sent as often as needed.

    Raises:
        DispatchValidationError: the record is not declared, or an option, the payload or a key breaks a rule.
    """
    entry = _entry(catalog, job)
    lane = lane_for(catalog, entry, options)
    start = when("not_before", options.not_before, shortest=_ZERO)
    expiry = when("expires_at", options.expires_at, shortest=_MILLISECOND)
    check_order(start, expiry)
    metadata = metadata_bytes(options.metadata)
    tenant = checked_tenant(options.tenant)
    payload = entry.codec.encode(job)
    keys = keys_of(entry, job, options.uniqueness)
    check_start(keys, start.delay_ms)
    needs = needs_of(catalog, entry, job, lane.queue)
    operation_id = ids.ordered()
    command = Command(
        operation_id=operation_id,
        job_id=job_of_operation(operation_id),
        application=catalog.application,
        kind=entry.kind,
        lane=lane,
        policy=entry.policy,
        payload=payload,
        deadline_ms=validity.deadline_ms,
        store_id=validity.store_id,
        not_before_ms=start.at_ms,
        delay_ms=start.delay_ms,
        expires_at_ms=expiry.at_ms,
        expires_in_ms=expiry.delay_ms,
        metadata=metadata,
        tenant=tenant,
        traceparent=trace.traceparent,
        tracestate=trace.tracestate,
    )
    return command if keys is NO_KEYS and needs is NO_NEEDS else _with_limits(command, keys, needs)


def prepare_many(
    catalog: Catalog, items: Sequence[Job | BatchItem], ids: Ids, validity: Validity, trace: Trace = NO_TRACE
) -> list[Command]:
    """The commands of a batch, in input order.

    Raises:
        DispatchValidationError: the batch is too large (``batch_too_large``), or items are invalid: all of them are
            in `item_failures`.
    """
    check_batch_length(len(items))
    commands = []
    failures = []
    for ordinal, item in enumerate(items):
        job, options = (item.job, item.options) if isinstance(item, BatchItem) else (item, None)
        try:
            commands.append(prepare(catalog, job, _options(options), ids, validity, trace))
        except DispatchValidationError as refused:
            failures.append(ItemFailure(ordinal, refused.code, refused.message))
    if failures:
        listed = "; ".join(f"item {failure.ordinal}: {failure.message.rstrip('.')}" for failure in failures)
        message = f"{len(failures)} of {len(items)} items are invalid, nothing was written: {listed}"
        raise DispatchValidationError(failures[0].code, message, failures)
    check_batch_size(commands)
    return commands


def check_batch_length(items: int) -> None:
    """Refuse a batch of too many items.

    Raises:
        DispatchValidationError: ``batch_too_large``.
    """
    if items > BATCH_MAX_ITEMS:
        message = f"a batch holds {BATCH_MAX_ITEMS} items, this has {items:,}; split it"
        raise DispatchValidationError("batch_too_large", message)


def check_batch_size(commands: Sequence[Command]) -> None:
    """Refuse a batch that holds too much.

    Raises:
        DispatchValidationError: ``batch_too_large``.
    """
    size = sum(len(command.payload) + len(command.metadata or b"") for command in commands)
    if size > BATCH_MAX_BYTES:
        message = f"a batch holds {BATCH_MAX_BYTES:,} bytes of payload and metadata, this has {size:,}; split it"
        raise DispatchValidationError("batch_too_large", message)


def _with_limits(command: Command, keys: Keys, needs: Needs) -> Command:
    command = msgspec.structs.replace(command, **keys._asdict(), **needs._asdict())
    if keys.window_key is None:
        return command
    return msgspec.structs.replace(command, fingerprint=fingerprint(command))


def _options(given: DispatchOptions | None) -> DispatchOptions:
    if given is None:
        return NO_CHANGES
    if not isinstance(given, DispatchOptions):
        message = f"its options are {type(given).__name__}, give DispatchOptions(…) or None"
        raise DispatchValidationError("invalid_argument", message)
    return given


def _entry(catalog: Catalog, job: Job) -> JobEntry:
    entry = catalog.by_record.get(type(job))
    if entry is not None:
        return entry
    name = type(job).__qualname__
    if not isinstance(job, Job):
        what = f"the class {job.__qualname__}" if isinstance(job, type) else name
        message = f"a job is an instance of a record that derives from runwick.Job, this is {what}"
        raise DispatchValidationError("unknown_job", message)
    near = did_you_mean(name, [record.__qualname__ for record in catalog.by_record])
    message = f"the record {name} is not declared in application {catalog.application}. {near}".rstrip()
    raise DispatchValidationError("unknown_job", message)
