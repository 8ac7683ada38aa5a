"""The half of `Runwick` that dispatches: at once, in batches, or prepared first and sent as often as needed.

Every call ends in one of three ways: a receipt, an error that says that nothing was written, or a
`DispatchOutcomeUnknown` that carries what to send again.
"""

from collections.abc import Callable, Iterable
from typing import Unpack, overload

from runwick.contracts.dispatching import (
    BatchItem,
    BatchItemResult,
    BatchReceipt,
    DispatchOptions,
    Prepared,
    PreparedBatch,
    Receipt,
    Resolution,
)
from runwick.contracts.errors import ItemFailure
from runwick.contracts.jobs import Job
from runwick.dispatch.dispatcher import Dispatcher, listed
from runwick.dispatch.options import OptionArguments
from runwick.dispatch.sending import Answers


class Dispatching:
    """What an application does with its jobs before a worker has them."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def dispatch(self, job: Job, **options: Unpack[OptionArguments]) -> Receipt:
        """Store a job; when this returns, the store has confirmed that it is durable.

        Args:
            job: an instance of a declared record.
            queue: another registered queue than the job's own.
            priority: ``high``, ``medium`` or ``low``.
            not_before: the earliest start, as an aware datetime (one that is past means now) or as a delay from now
                by the store's clock. Rounded up to a millisecond.
            metadata: at most 32 entries and 16 KiB, which the handler finds in its context.
            tenant: whom the job belongs to; None is the default tenant.
            expires_at: a job that has not begun by then fails with ``expired`` instead of running.
            uniqueness: keys by which this dispatch finds a job that is there already, and then answers that one with
                ``receipt.disposition == "reused"``. A job that declares a key needs none here, or the same.

        Raises:
            ConfigurationError: the declarations or the store's options are wrong; nothing was sent.
            DispatchValidationError: the job, an option or a key breaks a rule; nothing was sent.
            UniquenessConflict: the window key belongs to another request, or the two keys to two jobs.
            LocalCapacityExceeded: too many calls of this process are under way; nothing was sent.
            StoreError: nothing was written.
            DispatchOutcomeUnknown: the job may or may not exist. Do not dispatch it again; send what the error holds::

                try:
                    receipt = rw.dispatch(ChargeCard(order))
                except DispatchOutcomeUnknown as unknown:
                    receipt = rw.dispatch_prepared(unknown.prepared)  # the same job, however often
        """
        return _receipt(self._dispatcher.send_new(lambda: self.prepare(job, **options)))

    async def dispatch_async(self, job: Job, **options: Unpack[OptionArguments]) -> Receipt:
        """`dispatch` on an event loop, which it never blocks.

        Cancelling it stops the waiting, never a job that the store has accepted. When the dispatch may have reached the
        store, the ``__cause__`` of the CancelledError is a DispatchOutcomeUnknown (code ``cancelled_after_send``);
        otherwise nothing was sent.
        """
        return _receipt(await self._dispatcher.send_new_async(lambda: self.prepare(job, **options)))

    def dispatch_many(self, items: Iterable[Job | BatchItem], *, continue_on_conflict: bool = False) -> BatchReceipt:
        """Store up to 100 jobs in one transaction: all of them or none. Uniqueness keys are judged as if the jobs came
        one after the other.

        Args:
            items: jobs, or `BatchItem` for those with options; at most 2 MiB together.
            continue_on_conflict: an item that meets a `UniquenessConflict` fails alone, which its
                `BatchItemResult.failure` says; all others are stored together.

        Raises:
            DispatchValidationError: `item_failures` lists every invalid item; nothing was sent.
            UniquenessConflict: of the first item that meets one; nothing was written.
            ConfigurationError, LocalCapacityExceeded, StoreError, DispatchOutcomeUnknown: as for `dispatch`.
        """
        make = self._batch(items, continue_on_conflict)
        return _batch_receipt(self._dispatcher.send_new(make))

    async def dispatch_many_async(
        self, items: Iterable[Job | BatchItem], *, continue_on_conflict: bool = False
    ) -> BatchReceipt:
        """`dispatch_many` on an event loop, which it never blocks; cancelled like `dispatch_async`."""
        make = self._batch(items, continue_on_conflict)
        return _batch_receipt(await self._dispatcher.send_new_async(make))

    def prepare(self, job: Job, **options: Unpack[OptionArguments]) -> Prepared:
        """Check, serialise and name a dispatch without asking the store; `dispatch_prepared` sends it.

        Keep its `operation_id`, or the bytes of `export`, before you send it, and no crash leaves a doubt::

            prepared = rw.prepare(ChargeCard(order))
            save(order, prepared.export())
            receipt = rw.dispatch_prepared(prepared)

        It is good for `ProducerOptions.command_lifetime`, by the store's clock; later it is never applied.

        Args:
            job, options: as for `dispatch`.

        Raises:
            ConfigurationError, DispatchValidationError: as for `dispatch`.
        """
        return self._dispatcher.prepare(job, DispatchOptions(**options))

    def prepare_many(self, items: Iterable[Job | BatchItem], *, continue_on_conflict: bool = False) -> PreparedBatch:
        """`prepare` for a batch; takes what `dispatch_many` takes."""
        return self._batch(items, continue_on_conflict)()

    def import_prepared(self, data: bytes | bytearray | memoryview) -> Prepared | PreparedBatch:
        """Read back what `export` of a prepared dispatch wrote. The store is not asked.

        Raises:
            DispatchValidationError: these bytes are none of this application's and this release's (code
                ``invalid_prepared``).
        """
        return self._dispatcher.import_prepared(data)

    @overload
    def dispatch_prepared(self, prepared: Prepared) -> Receipt: ...
    @overload
    def dispatch_prepared(self, prepared: PreparedBatch) -> BatchReceipt: ...
    def dispatch_prepared(self, prepared: Prepared | PreparedBatch) -> Receipt | BatchReceipt:
        """Send a prepared dispatch: the first time, or again to learn what became of it.

        However often it is sent, there is one job (or one batch), and every receipt is the first one; an item of a
        batch that failed alone is judged again. After its deadline it is not applied any more; for 24 hours the answer
        then is the receipt or ``command_expired``.

        An error that says that nothing was written speaks of this call: what an earlier one did is still open, until a
        receipt or `CommandExpired` says it.

        Raises:
            InvalidArgument: it is no prepared dispatch of this application; nothing was sent.
            CommandExpired: it was not applied before its deadline, and never will be.
            UniquenessConflict: as for `dispatch`; of a batch nothing was written.
            DispatchOutcomeUnknown: no answer came; or it is too old for one (code ``expired_unknown``).
            ConfigurationError, LocalCapacityExceeded, StoreError: as for `dispatch`.
        """
        answers = self._dispatcher.send(prepared)
        return _receipt(answers) if isinstance(prepared, Prepared) else _batch_receipt(answers)

    @overload
    async def dispatch_prepared_async(self, prepared: Prepared) -> Receipt: ...
    @overload
    async def dispatch_prepared_async(self, prepared: PreparedBatch) -> BatchReceipt: ...
    async def dispatch_prepared_async(self, prepared: Prepared | PreparedBatch) -> Receipt | BatchReceipt:
        """`dispatch_prepared` on an event loop, which it never blocks; cancelled like `dispatch_async`."""
        answers = await self._dispatcher.send_async(prepared)
        return _receipt(answers) if isinstance(prepared, Prepared) else _batch_receipt(answers)

    def resolve(self, operation_id: str) -> Resolution:
        """Ask what became of a dispatch, without sending it again.

        Args:
            operation_id: of a receipt, of a prepared dispatch, or of any one in a batch, as UUID text.

        Returns:
            ``confirmed`` with the original receipt; ``not_observed`` when it was not applied so far, which is no proof
            that it never will be; ``expired_unknown`` when it is not there and too old for a definite answer.

        Raises:
            InvalidArgument: that is no id (code ``invalid_id``).
            ConfigurationError, StoreError: as for `dispatch`.
        """
        return self._dispatcher.resolve(operation_id)

    async def resolve_async(self, operation_id: str) -> Resolution:
        """`resolve` on an event loop, which it never blocks."""
        return await self._dispatcher.resolve_async(operation_id)

    def _batch(self, items: Iterable[Job | BatchItem], continue_on_conflict: bool) -> Callable[[], PreparedBatch]:
        """What prepares the batch, as often as it is called."""
        jobs = listed(items)
        return lambda: self._dispatcher.prepare_many(jobs, continue_on_conflict)


def _receipt(answers: Answers) -> Receipt:
    [answer] = answers
    assert isinstance(answer, Receipt)  # one dispatch that fails raises
    return answer


def _batch_receipt(answers: Answers) -> BatchReceipt:
    return BatchReceipt([_result(ordinal, answer) for ordinal, answer in enumerate(answers)])


def _result(ordinal: int, answer: Receipt | ItemFailure) -> BatchItemResult:
    if isinstance(answer, ItemFailure):
        return BatchItemResult(ordinal, None, answer)
    return BatchItemResult(ordinal, answer)
