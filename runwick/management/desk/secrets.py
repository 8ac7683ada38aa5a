"""The desk's part for what is private: payloads, results, errors, black boxes and stacks, each shown once it is written
down who asked for it. Nothing of it is kept here, or logged."""

import msgspec

from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import BlackBox, ErrorDetail
from runwick.contracts.revealing import RevealCommand, Revealed, Secret
from runwick.management.bodies import RevealBody
from runwick.management.commands import reveal_command_of, secret_of
from runwick.management.desk.ground import Ground, no_job
from runwick.management.desk.shown import maybe_id
from runwick.management.permissions import SECRETS, Caller
from runwick.management.service import CommandId


class SecretDesk(Ground):
    """What an operator may have revealed."""

    async def reveal(
        self,
        caller: Caller,
        what: Secret | str,
        job_id: str,
        attempt_id: str | None = None,
        reason: str | None = None,
        command_id: CommandId = None,
    ) -> RevealBody:
        """Show one secret of one job; needs what `SECRETS` says, for that job. The audit row is committed before
        anything is returned, and with it whether there was something to show.

        Args:
            caller: who asks.
            what: which secret.
            job_id: whose.
            attempt_id: of an error, a black box or a stack, which attempt's; None for payload and result.
            reason: why, for the audit trail.
            command_id: a UUID of the caller's; sent again with the same one, no second row is written.

        Raises:
            Forbidden: the caller may not.
            JobNotFound: there is no such job for him.
            InvalidArgument: something in it cannot be.
            StoreError: nothing was written, and nothing is shown.
            ControlOutcomeUnknown: the row may or may not have been written; nothing is shown.
        """
        secret = secret_of(what)
        caller.allowed.need(SECRETS[secret])
        given = self._command_id(command_id)
        command = reveal_command_of(secret, self.application, job_id, attempt_id, caller.actor, reason, given)
        await self._job(caller, SECRETS[secret], command.job_id)
        revealed = await self._send(self._store.reveal(command), given)
        if revealed is None:
            raise no_job(command.job_id)
        return _body(command, revealed)


def _body(command: RevealCommand, revealed: Revealed) -> RevealBody:
    error = revealed.error or ErrorDetail(type="", message="")
    box = revealed.black_box or BlackBox()
    has_error, has_box = revealed.error is not None, revealed.black_box is not None
    json, damaged = _read(revealed.json)
    return RevealBody(
        job_id=id_text(command.job_id),
        attempt_id=maybe_id(command.attempt_id),
        what=command.what.value,
        json=json,
        type=error.type if has_error else None,
        message=error.message if has_error else None,
        text=error.text if has_error else box.stack if has_box else revealed.text if damaged is None else damaged,
        log=tuple(box.lines.splitlines()) if has_box else None,
        replayed=revealed.replayed,
        command_id=id_text(command.command_id),
    )


def _read(stored: bytes | None) -> tuple[msgspec.Raw | None, str | None]:
    """Payload or result as it was stored; where that is no JSON, as text: whoever asks may look for what is wrong with
    it, and within an answer in JSON it would say what it likes."""
    if stored is None:
        return None, None
    try:
        stored.decode()
        msgspec.json.format(stored)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None, stored.decode(errors="backslashreplace")
    return msgspec.Raw(stored), None
