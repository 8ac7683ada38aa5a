"""What the demo's servers have in common: where their files lie, and a command that runs for as long as one does."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(".runwick")
"""Where the demo leaves what it leaves."""


def place() -> Path:
    """The folder, or one that every user may enter where the server is another user, who may not enter it."""
    FOLDER.mkdir(exist_ok=True)
    found = FOLDER.absolute()
    if os.getuid() == 0 and not all(folder.stat().st_mode & 0o001 for folder in (found, *found.parents)):
        return Path(tempfile.gettempdir())
    return found


def run_beside(command: Sequence[str]) -> int:
    """Run a command to its end; answers its exit status. However this process is told to stop, the command goes
    first, so that the server can go after it."""
    with subprocess.Popen(command) as child:
        # A Ctrl-C at the terminal reaches it as well, a TERM does not.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        return child.wait()
