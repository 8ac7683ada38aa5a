"""One command on its way to the store, and the honest end of it. Of threads and event loops it knows nothing.

    send ── answered ─────────────────────────────────────▶ reply
      ├──── a job is locked for a moment ── 50 ms ── send again, for up to 5 s
      ├──── nothing was written ──────────────────────────▶ the store's error
      └──── answer lost ── send again ── answered ────────▶ reply (replayed, if the first one was applied)
                               └──────── anything else ───▶ ControlOutcomeUnknown with the command's id

Sending again is safe, for the store knows the command by its id.
"""

import asyncio
from collections.abc import Generator
from typing import Final, TypeAlias

from runwick.contracts.ambient import Clock
from runwick.contracts.controls import ControlCommand, ControlReply
from runwick.contracts.errors import ControlOutcomeUnknown, Disposition, OutcomeUnknown, RunwickError, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.contracts.stores import Act, ControlStore

_PAUSE_S: Final = 0.05
_TRIES_FOR_S: Final = 5.0
"""How long a command is tried while somebody's transaction holds one of its jobs."""

Sending: TypeAlias = Generator[Act[ControlReply] | float, ControlReply | None, ControlReply]
"""Yields what the store is to do, or for how many seconds to pause; takes the store's answer or its error."""


def sending(store: ControlStore, command: ControlCommand, clock: Clock) -> Sending:
    """Send a command that may have been sent before.

    Raises:
        StoreError: nothing was written.
        ControlOutcomeUnknown: it may or may not have been applied.
    """
    act = store.control(command)
    until_s = clock.steady_s() + _TRIES_FOR_S
    lost: Exception | None = None
    step: Act[ControlReply] | float = act
    while True:
        try:
            reply = yield step
        except StoreUnavailable as error:
            if clock.steady_s() >= until_s:
                raise (error if lost is None else _unknown(command, lost, error)) from lost
            step = _PAUSE_S
        except Exception as error:
            if lost is not None:
                raise _unknown(command, lost, error) from lost
            if isinstance(error, RunwickError) and error.disposition is Disposition.KNOWN_NOT_APPLIED:
                raise
            lost = error
        except BaseException as stopped:
            _tell(command, stopped, lost)
            raise
        else:
            if reply is not None:
                return reply
            step = act


def _tell(command: ControlCommand, stopped: BaseException, lost: Exception | None) -> None:
    """Whoever stops waiting gets what was raised; whether the command may have been applied is its cause."""
    was_sent = not isinstance(stopped, asyncio.CancelledError) or isinstance(stopped.__cause__, OutcomeUnknown)
    if was_sent or lost is not None:
        message = f"{_named(command)} may or may not have been applied: its caller stopped waiting for the answer"
        unknown = ControlOutcomeUnknown("outcome_unknown", message, id_text(command.command_id))
        unknown.__cause__ = stopped.__cause__
        stopped.__cause__ = unknown


def _unknown(command: ControlCommand, lost: Exception, again: Exception) -> ControlOutcomeUnknown:
    message = (
        f"{_named(command)} may or may not have been applied ({_shown(lost)}; sent again: {_shown(again)}). "
        "Sending it again with the same command_id is safe and gives the answer"
    )
    return ControlOutcomeUnknown("outcome_unknown", message, id_text(command.command_id))


def _named(command: ControlCommand) -> str:
    return f"{command.action.value}, command {id_text(command.command_id)},"


def _shown(error: Exception) -> str:
    """What an error says; a foreign one can say anything, so only its name is told."""
    return str(error) if isinstance(error, RunwickError) else type(error).__name__
