"""What a person reads on standard error when Runwick refuses."""

from collections.abc import Iterator

import click
import msgspec

from runwick.cli.failures import Rejected, exit_status_of
from runwick.cli.tables import terminal_text
from runwick.config.layout import lay_out
from runwick.contracts.errors import ConfigurationError, ControlOutcomeUnknown


def tell(failure: Exception) -> int | None:
    """Say what was refused and return the exit status; None when it is no refusal but a fault of the program."""
    status = exit_status_of(failure)
    if status is None:
        return None
    text = lay_out(failure.problems) if isinstance(failure, ConfigurationError) else terminal_text(str(failure))
    click.echo(text, err=True)
    for line in _advice(failure):
        click.echo(line, err=True)
    return status


def _advice(failure: Exception) -> Iterator[str]:
    """How the target stands and what to do, where the refusal does not say it itself."""
    match failure:
        case ControlOutcomeUnknown():
            yield f"Send it again with --command-id {failure.command_id}: it is done once."
        case Rejected(error=error):
            named = {
                "state": error.actual_state,
                "generation": error.actual_generation,
                "revision": error.actual_revision,
            }
            if stands := [f"{name} {value}" for name, value in named.items() if value is not msgspec.UNSET]:
                yield terminal_text(f"It stands at {', '.join(stands)}.")
            if error.hint and error.hint != error.message:
                yield terminal_text(error.hint)
