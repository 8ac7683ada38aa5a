"""Prepares dispatches, lets them wait for their turn, has them sent, and asks what became of them: blocking or on an
event loop, from one source."""

import asyncio
import datetime
import warnings
from collections.abc import Callable, Iterable, Sequence

from runwick.config.options import ProducerOptions
from runwick.contracts.ambient import Ids
from runwick.contracts.dispatching import (
    ANSWERS_KEPT_MS,
    COMMAND_LIFETIME_MAX_MS,
    BatchItem,
    DispatchOptions,
    Prepared,
    PreparedBatch,
    Receipt,
    Resolution,
    ResolutionStatus,
)
from runwick.contracts.errors import DispatchValidationError, InvalidArgument
from runwick.contracts.identity import id_bytes, issued_at_ms
from runwick.contracts.jobs import Job
from runwick.contracts.stores import DispatchStore
from runwick.declarations.catalog import Catalog
from runwick.declarations.places import depth_of_call
from runwick.declarations.suggestions import quoted
from runwick.dispatch.imported import imported
from runwick.dispatch.prepare import Validity, prepare, prepare_many
from runwick.dispatch.sending import Answers, Request, Sending, commands_of, sending, sending_new
from runwick.dispatch.trace import current_trace
from runwick.dispatch.turns import Turns
from runwick.runtime.asking import ask, ask_async

_MILLISECOND = datetime.timedelta(milliseconds=1)


class Dispatcher:
    """Dispatches the jobs of one application.

    Args:
        application: its name.
        catalog: answers the declarations as they stand.
        store: answers the store, opened at first use; refuses options out of bounds before that.
        ids: names jobs and operations.
        options: how much at once, and how long a dispatch is good for.
    """

    def __init__(
        self,
        application: str,
        catalog: Callable[[], Catalog],
        store: Callable[[], DispatchStore],
        ids: Ids,
        options: ProducerOptions,
    ) -> None:
        self._application = application
        self._catalog = catalog
        self._store = store
        self._ids = ids
        self._options = options
        self._turns = Turns(options)

    def prepare(self, job: Job, options: DispatchOptions) -> Prepared:
        """Fix one dispatch; the store is not asked.

        Raises:
            DispatchValidationError: the job or an option breaks a rule.
        """
        return Prepared(prepare(self._catalog(), job, options, self._ids, self._validity(), current_trace()))

    def prepare_many(self, items: Sequence[Job | BatchItem], continue_on_conflict: bool) -> PreparedBatch:
        """Fix a batch; the store is not asked. Raises like `prepare`, with every invalid item."""
        if not isinstance(continue_on_conflict, bool):
            message = f"continue_on_conflict is {continue_on_conflict!r}; give True or False"
            raise DispatchValidationError("invalid_argument", message)
        commands = prepare_many(self._catalog(), items, self._ids, self._validity(), current_trace())
        return PreparedBatch(tuple(commands), continue_on_conflict)

    def import_prepared(self, data: bytes | bytearray | memoryview) -> Prepared | PreparedBatch:
        """What `export` wrote; the store is not asked.

        Raises:
            DispatchValidationError: they are other bytes (code ``invalid_prepared``).
        """
        return imported(data, self._application, self._store().now_ms())

    def send(self, prepared: Prepared | PreparedBatch) -> Answers:
        """Send a request that may have been sent before; answers in input order.

        Raises:
            InvalidArgument: it is none of this application's; nothing was sent.
            LocalCapacityExceeded: too many calls are under way; nothing was sent.
            StoreError: nothing was written.
            DispatchOutcomeUnknown: it may or may not have been applied.
        """
        self._check_ours(prepared)
        return self._run(prepared, sending(self._store(), prepared))

    async def send_async(self, prepared: Prepared | PreparedBatch) -> Answers:
        """`send` for an event loop, which it never blocks."""
        self._check_ours(prepared)
        return await self._run_async(prepared, sending(self._store(), prepared))

    def send_new(self, make: Callable[[], Request]) -> Answers:
        """Prepare a request and send it, prepared anew if it was too late at once; raises like `make` and `send`."""
        prepared = make()
        return self._run(prepared, sending_new(self._store(), prepared, make))

    async def send_new_async(self, make: Callable[[], Request]) -> Answers:
        """`send_new` for an event loop, which it never blocks."""
        prepared = make()
        return await self._run_async(prepared, sending_new(self._store(), prepared, make))

    def resolve(self, operation_id: str) -> Resolution:
        """What the store knows of an operation.

        Raises:
            InvalidArgument: that is no id (code ``invalid_id``).
            StoreError: the store refuses, or does not answer.
        """
        store, operation = self._store(), id_bytes(operation_id)
        return self._resolution(operation, store.run(store.resolve(self._application, operation)))

    async def resolve_async(self, operation_id: str) -> Resolution:
        """`resolve` for an event loop, which it never blocks."""
        store, operation = self._store(), id_bytes(operation_id)
        return self._resolution(operation, await store.run_async(store.resolve(self._application, operation)))

    def _validity(self) -> Validity:
        store = self._store()
        return Validity(store.now_ms() + self._options.command_lifetime // _MILLISECOND, store.store_id)

    def _check_ours(self, prepared: Prepared | PreparedBatch) -> None:
        if not isinstance(prepared, Prepared | PreparedBatch):
            message = f"this is {type(prepared).__name__}; give what prepare, prepare_many or import_prepared returned"
            raise InvalidArgument("invalid_argument", message)
        for command in commands_of(prepared):
            if command.application != self._application:
                prepared_by = quoted(command.application)
                message = f"it was prepared by application {prepared_by}, this is {quoted(self._application)}"
                raise DispatchValidationError("invalid_prepared", message)

    def _run(self, prepared: Prepared | PreparedBatch, steps: Sending) -> Answers:
        _warn_on_event_loop()
        if not commands_of(prepared):
            return []
        store = self._store()
        with self._turns.turn():
            return ask(store, steps)

    async def _run_async(self, prepared: Prepared | PreparedBatch, steps: Sending) -> Answers:
        if not commands_of(prepared):
            return []
        store = self._store()
        async with self._turns.turn_async():
            return await ask_async(store, steps)

    def _resolution(self, operation: bytes, receipt: Receipt | None) -> Resolution:
        if receipt is not None:
            return Resolution(ResolutionStatus.CONFIRMED, receipt)
        forgotten_ms = issued_at_ms(operation) + COMMAND_LIFETIME_MAX_MS + ANSWERS_KEPT_MS
        if self._store().now_ms() > forgotten_ms:
            return Resolution(ResolutionStatus.EXPIRED_UNKNOWN)
        return Resolution(ResolutionStatus.NOT_OBSERVED)


def listed(items: Iterable[Job | BatchItem]) -> list[Job | BatchItem]:
    """The items of a batch, which can be prepared more than once.

    Raises:
        InvalidArgument: they are none (code ``invalid_argument``).
    """
    if not isinstance(items, Iterable):
        message = f"a batch is an iterable of jobs, this is {type(items).__name__}; dispatch(…) takes one job"
        raise InvalidArgument("invalid_argument", message)
    return list(items)


def _warn_on_event_loop() -> None:
    """Blocking works on an event loop, but everything else there waits; Python shows the warning once per place."""
    if asyncio._get_running_loop() is None:
        return
    warnings.warn(
        "a blocking dispatch on a running event loop holds up everything else on it until the store has answered; "
        "use await dispatch_async(…), dispatch_many_async(…) or dispatch_prepared_async(…) there",
        RuntimeWarning,
        stacklevel=depth_of_call(),
    )
