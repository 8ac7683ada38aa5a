"""The password or token of one call. It is kept nowhere, and shown nowhere.

``--secret-stdin`` ▸ the context's environment variable ▸ ``RUNWICK_SECRET`` ▸ a hidden prompt, for people at a terminal
"""

import os
import sys
from typing import Final

import click

from runwick.cli.failures import NotSignedIn
from runwick.cli.modes import Mode

SECRET: Final = "RUNWICK_SECRET"
_MAX_CHARACTERS: Final = 64 * 1024


def find_secret(mode: Mode, variable: str | None, *, from_stdin: bool, asked_for: str) -> str:
    """The secret to sign in with.

    Args:
        mode: people may be asked for it.
        variable: the environment variable that the context names.
        from_stdin: it is on standard input.
        asked_for: whose, for the prompt.

    Raises:
        NotSignedIn: there is none (code ``credential_missing``).
    """
    if from_stdin:
        secret = sys.stdin.read(_MAX_CHARACTERS).rstrip("\r\n")
    else:
        secret = (os.environ.get(variable, "") if variable else "") or os.environ.get(SECRET, "")
        if not secret and mode is Mode.PEOPLE and sys.stdin.isatty() and sys.stderr.isatty():
            secret = click.prompt(asked_for, hide_input=True, err=True, default="", show_default=False)
    if not secret or not secret.isprintable():
        if from_stdin:
            where = "standard input holds none that can be sent"
        else:
            where = f"neither {variable} nor {SECRET} holds one" if variable else f"{SECRET} holds none"
        raise NotSignedIn("credential_missing", f"there is no secret to sign in with: {where}")
    return secret
