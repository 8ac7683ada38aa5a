"""Sends prepared dispatches to the store and hands back receipts, blocking or on an event loop, from one source."""

import sys
import warnings
from collections.abc import Callable, Iterable

from runwick.contracts.ambient import Ids
from runwick.contracts.dispatching import (
    BatchItem,
    BatchItemResult,
    BatchReceipt,
    Command,
    DispatchOptions,
    Receipt,
)
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.jobs import Job
from runwick.contracts.stores import DispatchStore
from runwick.declarations.catalog import Catalog
from runwick.declarations.places import depth_of_call
from runwick.dispatch.prepare import prepare, prepare_many
from runwick.dispatch.trace import current_trace


class Dispatcher:
    """Dispatches the jobs of one application.

    Args:
        catalog: answers the declarations as they stand.
        store: answers the store, opened at first use.
        ids: names jobs and operations.
    """

    def __init__(self, catalog: Callable[[], Catalog], store: Callable[[], DispatchStore], ids: Ids) -> None:
        self._catalog = catalog
        self._store = store
        self._ids = ids

    def dispatch(self, job: Job, options: DispatchOptions) -> Receipt:
        """Store one job; the receipt says that it is durable.

        Raises:
            DispatchValidationError: nothing was sent.
            StoreError: nothing was written.
            OutcomeUnknown: the job may or may not exist.
        """
        return self._send([self._prepared(job, options)])[0]

    async def dispatch_async(self, job: Job, options: DispatchOptions) -> Receipt:
        """`dispatch` for an event loop, which it never blocks."""
        return (await self._send_async([self._prepared(job, options)]))[0]

    def dispatch_many(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """Store all of these jobs in one transaction, or none; raises like `dispatch`."""
        return _batch_receipt(self._send(self._prepared_many(items)))

    async def dispatch_many_async(self, items: Iterable[Job | BatchItem]) -> BatchReceipt:
        """`dispatch_many` for an event loop, which it never blocks."""
        return _batch_receipt(await self._send_async(self._prepared_many(items)))

    def _prepared(self, job: Job, options: DispatchOptions) -> Command:
        return prepare(self._catalog(), job, options, self._ids, current_trace())

    def _prepared_many(self, items: Iterable[Job | BatchItem]) -> list[Command]:
        if not isinstance(items, Iterable):
            message = f"a batch is an iterable of jobs, this is {type(items).__name__}; dispatch(…) takes one job"
            raise InvalidArgument("invalid_argument", message)
        return prepare_many(self._catalog(), list(items), self._ids, current_trace())

    def _send(self, commands: list[Command]) -> list[Receipt]:
        _warn_on_event_loop()
        if not commands:
            return []
        store = self._store()
        return store.run(store.dispatch(commands))

    async def _send_async(self, commands: list[Command]) -> list[Receipt]:
        if not commands:
            return []
        store = self._store()
        return await store.run_async(store.dispatch(commands))


def _batch_receipt(receipts: list[Receipt]) -> BatchReceipt:
    return BatchReceipt([BatchItemResult(ordinal, receipt) for ordinal, receipt in enumerate(receipts)])


def _warn_on_event_loop() -> None:
    """Blocking works on an event loop, but everything else there waits; Python shows the warning once per place."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return
    warnings.warn(
        "a blocking dispatch on a running event loop holds up everything else on it until the store has answered; "
        "use await dispatch_async(…) or await dispatch_many_async(…) there",
        RuntimeWarning,
        stacklevel=depth_of_call(),
    )
