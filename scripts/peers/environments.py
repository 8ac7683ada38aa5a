"""An environment for each package, in ``.venv-peers``, made from its pinned requirements when it is missing or old."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from scripts.peers.system import ENVIRONMENTS, OurSystem, System

REQUIREMENTS: Final = Path(__file__).with_name("requirements")
_PATIENCE_S: Final = 600


class NotHere(Exception):
    """A system cannot be installed on this machine; the message says why, for people."""


def version(system: System) -> str:
    """The release that is measured."""
    if isinstance(system, OurSystem):
        from runwick.version import __version__

        return __version__
    pinned = re.search(rf"^{re.escape(system.package)}(\[.*\])?==(\S+)", _requirements(system), re.MULTILINE)
    assert pinned, f"the requirements of {system.name} pin no {system.package}"
    return pinned[2]


def make(system: System) -> None:
    """Make its environment, if there is none from these requirements.

    Raises:
        NotHere: it needs another Python, or pip failed.
    """
    if isinstance(system, OurSystem):
        return
    wanted, folder = _requirements(system), ENVIRONMENTS / system.package
    ready = folder / ".ready"
    if ready.exists() and ready.read_text() == wanted:
        return
    shutil.rmtree(folder, ignore_errors=True)
    _run([_interpreter(system), "-m", "venv", str(folder)])
    pip = [system.program("python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "-r", str(_file(system))])
    ready.write_text(wanted)


def _interpreter(system: System) -> str:
    """A Python that the system takes: ours if it is new enough, or one of pyenv's or on the path."""
    if tuple(map(int, system.python.split("."))) <= sys.version_info[:2]:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(pyenv.glob(f"{system.python}.*/bin/python"))
    for candidate in (*map(str, kept), shutil.which(f"python{system.python}")):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    raise NotHere(f"needs Python {system.python} or newer; there is no python{system.python} on the path or in pyenv")


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.CalledProcessError as failure:
        last = (failure.stderr.strip() or failure.stdout.strip() or "no word").splitlines()[-1]
        raise NotHere(f"could not be installed: {last}") from failure
    except subprocess.TimeoutExpired as failure:
        raise NotHere(f"was not installed within {_PATIENCE_S} s") from failure


def _requirements(system: System) -> str:
    return _file(system).read_text()


def _file(system: System) -> Path:
    return REQUIREMENTS / f"{system.package}.txt"
