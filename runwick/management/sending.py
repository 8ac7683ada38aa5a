"""One command on its way to the store, and the honest end of it. Of threads and event loops it knows nothing.

    send ── answered ─────────────────────────────────────▶ reply
      ├──── a row is locked for a moment ── 50 ms ── send again, for up to 5 s
      ├──── nothing was written ──────────────────────────▶ the store's error
      └──── answer lost ── send again ── answered ────────▶ reply (replayed, if the first one was applied)
                               └──────── anything else ───▶ ControlOutcomeUnknown with the command's id

Sending again is safe, for the store knows the command by its id.
"""

import asyncio
from collections.abc import Generator
from typing import Any, Final, TypeVar

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import ControlOutcomeUnknown, Disposition, OutcomeUnknown, RunwickError, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.contracts.stores import Act

_PAUSE_S: Final = 0.05
_TRIES_FOR_S: Final = 5.0
"""How long a command is tried while somebody's transaction holds one of its rows."""

Reply = TypeVar("Reply")


def sending(act: Act[Reply], command_id: bytes, clock: Clock) -> Generator[Act[Reply] | float, Any, Reply]:
    """Send a command that may have been sent before. It yields what the store is to do, or for how many seconds to
    pause, and takes the store's answer or its error.

    Args:
        act: what the store makes of the command.
        command_id: by which the store knows it.
        clock: limits how long it is tried.

    Raises:
        StoreError: nothing was written.
        ControlOutcomeUnknown: it may or may not have been applied.
    """
    until_s = clock.steady_s() + _TRIES_FOR_S
    lost: Exception | None = None
    step: Act[Reply] | float = act
    while True:
        try:
            reply = yield step
        except StoreUnavailable as error:
            if clock.steady_s() >= until_s:
                raise (error if lost is None else _unknown(act, command_id, lost, error)) from lost
            step = _PAUSE_S
        except Exception as error:
            if lost is not None:
                raise _unknown(act, command_id, lost, error) from lost
            if isinstance(error, RunwickError) and error.disposition is Disposition.KNOWN_NOT_APPLIED:
                raise
            lost = error
        except BaseException as stopped:
            _tell(act, command_id, stopped, lost)
            raise
        else:
            if step is act:
                answered: Reply = reply
                return answered
            step = act


def _tell(act: Act[Any], command_id: bytes, stopped: BaseException, lost: Exception | None) -> None:
    """Whoever stops waiting gets what was raised; whether the command may have been applied is its cause."""
    was_sent = not isinstance(stopped, asyncio.CancelledError) or isinstance(stopped.__cause__, OutcomeUnknown)
    if was_sent or lost is not None:
        message = (
            f"{_named(act, command_id)} may or may not have been applied: its caller stopped waiting for the answer"
        )
        unknown = ControlOutcomeUnknown("outcome_unknown", message, id_text(command_id))
        unknown.__cause__ = stopped.__cause__
        stopped.__cause__ = unknown


def _unknown(act: Act[Any], command_id: bytes, lost: Exception, again: Exception) -> ControlOutcomeUnknown:
    message = (
        f"{_named(act, command_id)} may or may not have been applied ({_shown(lost)}; sent again: {_shown(again)}). "
        "Sending it again with the same command_id is safe and gives the answer"
    )
    return ControlOutcomeUnknown("outcome_unknown", message, id_text(command_id))


def _named(act: Act[Any], command_id: bytes) -> str:
    return f"{act.name}, command {id_text(command_id)},"


def _shown(error: Exception) -> str:
    """What an error says; a foreign one can say anything, so only its name is told."""
    return str(error) if isinstance(error, RunwickError) else type(error).__name__
