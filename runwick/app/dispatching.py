"""The half of `Runwick` that dispatches: at once, in batches, or prepared first and sent as often as needed.

Every call ends in one of three ways: a receipt, an error that says that nothing was written, or a
`DispatchOutcomeUnknown` that carries what to send again.
"""

from collections.abc import Iterable
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
from runwick.contracts.jobs import Job
from runwick.dispatch.dispatcher import Dispatcher, listed
from runwick.dispatch.options import OptionArguments


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

        Raises:
            ConfigurationError: the declarations or the store's options are wrong; nothing was sent.
            DispatchValidationError: the job or an option breaks a rule; nothing was sent.
            LocalCapacityExceeded: too many calls of this process are under way; nothing was sent.
            StoreError: nothing was written.
            DispatchOutcomeUnknown: the job may or may not exist. Do not dispatch it again; send what the error holds::

                try:
                    receipt = rw.dispatch(ChargeCard(order))
                except DispatchOutcomeUnknown as unknown:
                    receipt = rw.dispatch_prepared(unknown.prepared)  # the same job, however often
        """
        return self._dispatcher.send_new(lambda: self.prepare(job, **options))[0]

    async def dispatch_async(self, job: Job, **options: Unpack[OptionArguments]) -> Receipt:
        """`dispatch` on an event loop, which it never blocks.

        Cancelling it stops the waiting, never a job that the store has accepted. When the dispatch may have reached the
        store, the ``__cause__`` of the CancelledError is a DispatchOutcomeUnknown (code ``cancelled_after_send``);
        otherwise nothing was sent.
        """
        return (await self._dispatcher.send_new_async(lambda: self.prepare(job, **options)))[0]

    def dispatch_many(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """Store up to 100 jobs in one transaction: all of them or none.

        Args:
            items: jobs, or `BatchItem` for those with options; at most 2 MiB together.

        Raises:
            DispatchValidationError: `item_failures` lists every invalid item; nothing was sent.
            ConfigurationError, LocalCapacityExceeded, StoreError, DispatchOutcomeUnknown: as for `dispatch`.
        """
        jobs = listed(items)
        return _batch_receipt(self._dispatcher.send_new(lambda: self._dispatcher.prepare_many(jobs)))

    async def dispatch_many_async(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """`dispatch_many` on an event loop, which it never blocks; cancelled like `dispatch_async`."""
        jobs = listed(items)
        return _batch_receipt(await self._dispatcher.send_new_async(lambda: self._dispatcher.prepare_many(jobs)))

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

    def prepare_many(self, items: Iterable[Job | BatchItem]) -> PreparedBatch:
        """`prepare` for a batch, which is applied whole or not at all; takes what `dispatch_many` takes."""
        return self._dispatcher.prepare_many(listed(items))

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

        However often it is sent, there is one job (or one batch), and every receipt is the first one. After its
        deadline it is not applied any more; for 24 hours the answer then is the receipt or ``command_expired``.

        An error that says that nothing was written speaks of this call: what an earlier one did is still open, until a
        receipt or `CommandExpired` says it.

        Raises:
            InvalidArgument: it is no prepared dispatch of this application; nothing was sent.
            CommandExpired: it was not applied before its deadline, and never will be.
            DispatchOutcomeUnknown: no answer came; or it is too old for one (code ``expired_unknown``).
            ConfigurationError, LocalCapacityExceeded, StoreError: as for `dispatch`.
        """
        receipts = self._dispatcher.send(prepared)
        return receipts[0] if isinstance(prepared, Prepared) else _batch_receipt(receipts)

    @overload
    async def dispatch_prepared_async(self, prepared: Prepared) -> Receipt: ...
    @overload
    async def dispatch_prepared_async(self, prepared: PreparedBatch) -> BatchReceipt: ...
    async def dispatch_prepared_async(self, prepared: Prepared | PreparedBatch) -> Receipt | BatchReceipt:
        """`dispatch_prepared` on an event loop, which it never blocks; cancelled like `dispatch_async`."""
        receipts = await self._dispatcher.send_async(prepared)
        return receipts[0] if isinstance(prepared, Prepared) else _batch_receipt(receipts)

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


def _batch_receipt(receipts: list[Receipt]) -> BatchReceipt:
    return BatchReceipt([BatchItemResult(ordinal, receipt) for ordinal, receipt in enumerate(receipts)])
