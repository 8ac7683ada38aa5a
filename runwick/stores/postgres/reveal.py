"""Reveal: what is private is shown to somebody, and the audit trail says so, in one statement.

What was shown is never kept with the command: sent again it reads again, and writes no second row.
"""

from runwick.contracts.outcomes import BlackBox, ErrorDetail
from runwick.contracts.revealing import RevealCommand, Revealed, Secret
from runwick.contracts.stores import Act
from runwick.stores.controls import command_conflict
from runwick.stores.damage import maybe_read
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.names import Wanted
from runwick.stores.revealing import audit_action, audit_target, fingerprint
from runwick.stores.steps import Step, Steps


def reveal(bound: Bound, command: RevealCommand) -> Act[Revealed | None]:
    """Show it; None when there is no such job.

    Raises (when run):
        StoreError: the command id was used for something else (code ``operation_conflict``).
    """
    return Act("reveal", lambda: _reveal(bound, command))


def _reveal(bound: Bound, command: RevealCommand) -> Steps[Revealed | None]:
    application = yield from bound.names.find(Wanted(command.application))
    if application is None:
        return None
    ((known_fingerprint, is_there, json, text),) = yield Step(
        "reveal",
        (
            *bound.gate(),
            packed.number(application),
            packed.Id(command.command_id),
            fingerprint(command),
            packed.text(command.actor.subject),
            command.actor.display,
            command.actor.scheme,
            command.reason,
            packed.text(audit_action(command)),
            audit_target(command),
            packed.Id(command.job_id),
            None if command.attempt_id is None else packed.Id(command.attempt_id),
            packed.text(command.what.value),
        ),
    )
    if known_fingerprint not in (None, fingerprint(command)):
        raise command_conflict(command)
    return _shown(command.what, json, text, replayed=known_fingerprint is not None) if is_there else None


def _shown(what: Secret, json: bytes | None, text: str | None, *, replayed: bool) -> Revealed:
    match what:
        case Secret.ERROR:
            return Revealed(error=maybe_read(text, ErrorDetail), replayed=replayed)
        case Secret.BLACK_BOX:
            return Revealed(black_box=maybe_read(text, BlackBox), replayed=replayed)
        case _:
            return Revealed(json=json, text=text, replayed=replayed)
