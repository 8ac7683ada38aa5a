"""One prepared dispatch on its way to the store, and the honest end of it. Of threads and event loops it knows nothing.

::

    send ── answered ──────────────────────────────────────────▶ receipts
      ├──── nothing was written ───────────────────────────────▶ the store's error
      ├──── too late at the first try: this clock was wrong ───▶ prepared anew and sent, once
      └──── answer lost ── send again ── answered ─────────────▶ receipts
                               └──────── anything else ────────▶ DispatchOutcomeUnknown with the prepared request

Sending again is safe, for the store knows the operation. Whoever stops waiting (a cancelled task, Ctrl-C) gets what it
raises as ever; when the dispatch may have reached the store, its ``__cause__`` is the DispatchOutcomeUnknown.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from runwick.contracts.dispatching import Command, Prepared, PreparedBatch, Receipt
from runwick.contracts.errors import (
    CommandExpired,
    DispatchOutcomeUnknown,
    Disposition,
    ItemFailure,
    OutcomeUnknown,
    RunwickError,
)
from runwick.contracts.identity import id_text
from runwick.contracts.stores import Act, DispatchStore

Request = TypeVar("Request", Prepared, PreparedBatch)
Answers = list[Receipt | ItemFailure]
"""In input order; failures are there only where a batch goes on after conflicts."""
Sending = Generator[Act[Answers], Answers, Answers]
"""Yields what the store is to do, takes its answer or its error, and returns the answers."""


def sending(store: DispatchStore, prepared: Prepared | PreparedBatch) -> Sending:
    """Send a request that may have been sent before.

    Raises:
        StoreError: nothing was written.
        DispatchOutcomeUnknown: it may or may not have been applied.
    """
    goes_on = isinstance(prepared, PreparedBatch) and prepared.continue_on_conflict
    act = store.dispatch(commands_of(prepared), continue_on_conflict=goes_on)
    try:
        return (yield act)
    except Exception as error:
        lost = _lost(error, prepared)
    except BaseException as stopped:
        # Of a cancelled call the store says whether it had been sent; of any other one nobody knows.
        if not isinstance(stopped, asyncio.CancelledError) or isinstance(stopped.__cause__, OutcomeUnknown):
            stopped.__cause__ = _stopped(prepared, stopped)
        raise
    try:
        return (yield act)
    except Exception as error:
        raise _unknown("outcome_unknown", prepared, f"{_shown(lost)}; sent again: {_shown(error)}") from lost
    except BaseException as stopped:
        stopped.__cause__ = _stopped(prepared, stopped)
        raise


def sending_new(store: DispatchStore, prepared: Request, anew: Callable[[], Request]) -> Sending:
    """Send a request that nobody else has seen; raises like `sending`.

    Args:
        store: where to.
        prepared: the request.
        anew: prepares the same jobs with new ids, by the clock as the store has corrected it.
    """
    try:
        return (yield from sending(store, prepared))
    except CommandExpired:
        pass  # it waited too long on its way, or this process's clock is slow
    except DispatchOutcomeUnknown as unknown:
        if unknown.code != "expired_unknown":
            raise
        # So late that the store would not remember it; but it was made just now, so there is nothing to remember.
    return (yield from sending(store, anew()))


def commands_of(prepared: Prepared | PreparedBatch) -> tuple[Command, ...]:
    """What there is to send, in input order."""
    return (prepared.command,) if isinstance(prepared, Prepared) else prepared.commands


def _lost(error: Exception, prepared: Prepared | PreparedBatch) -> Exception:
    """The error itself when it leaves open whether anything was written, as one that nobody foresaw does too.

    Raises:
        RunwickError: it does not, or sending again cannot help.
    """
    if isinstance(error, RunwickError) and error.disposition is Disposition.KNOWN_NOT_APPLIED:
        raise error
    if isinstance(error, OutcomeUnknown) and error.code == "expired_unknown":
        raise DispatchOutcomeUnknown(error.code, error.message, prepared) from error
    return error


def _stopped(prepared: Prepared | PreparedBatch, stopped: BaseException) -> DispatchOutcomeUnknown:
    unknown = _unknown("cancelled_after_send", prepared, "its caller stopped waiting for the answer")
    unknown.__cause__ = stopped.__cause__
    return unknown


def _unknown(code: str, prepared: Prepared | PreparedBatch, why: str) -> DispatchOutcomeUnknown:
    first, *more = commands_of(prepared)
    named = f"operation {id_text(first.operation_id)}" + (f" and {len(more)} more of its batch" if more else "")
    return DispatchOutcomeUnknown(
        code,
        f"{named} may or may not have been applied ({why}). Sending the prepared request again with "
        "rw.dispatch_prepared is safe, rw.resolve asks; a new dispatch could make a second job",
        prepared,
    )


def _shown(error: Exception) -> str:
    """What an error says; a foreign one can say anything, so only its name is told."""
    return str(error) if isinstance(error, RunwickError) else type(error).__name__
