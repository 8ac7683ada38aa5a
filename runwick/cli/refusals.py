"""What a person reads on standard error when Runwick refuses, and the exit status that a script reads."""

from typing import Final

import click

from runwick.config.layout import lay_out
from runwick.contracts.errors import ConfigurationError, InvalidArgument, OutcomeUnknown, RunwickError, StoreUnavailable

FAILED: Final = 1
WRONG_INPUT: Final = 2
OUTCOME_UNKNOWN: Final = 3
UNAVAILABLE: Final = 4


def tell(failure: Exception) -> int | None:
    """Say what was refused and return the exit status; None when it is no refusal but a fault of the program."""
    match failure:
        case ConfigurationError():
            click.echo(lay_out(failure.problems), err=True)
            return WRONG_INPUT
        case RunwickError():
            click.echo(str(failure), err=True)
        case _:
            return None
    match failure:
        case InvalidArgument():
            return WRONG_INPUT
        case OutcomeUnknown():
            return OUTCOME_UNKNOWN
        case StoreUnavailable():
            return UNAVAILABLE
        case _:
            return FAILED
