"""Where run files lie: a directory of this user alone, on this host.

    said by the operator ─▶ it must do                         refused otherwise, before anything is started
    said by nobody       ─▶ the first of these that does:      $RUNTIME_DIRECTORY · $XDG_RUNTIME_DIR/runwick
                                                               /run/user/UID/runwick · TMP/runwick-UID

It is the same for all workers of a user, so that a start finds what the last one left. Where there is none that can be
trusted, the leases decide, which is said once.
"""

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from runwick.contracts.errors import Problem
from runwick.runtime.filesystems import MOUNTS, Trust, filesystem_of

LEASES_DECIDE: Final = "What a killed worker leaves is recovered when its leases have run out."


class RunDir(NamedTuple):
    """What was found."""

    path: Path | None = None
    """None where run files would prove nothing, or cannot be made."""
    note: str | None = None
    """Then: why, for the operator."""
    problem: Problem | None = None
    """What the operator said cannot be done."""


def find_run_dir(
    said: str | None, said_by: str, environ: Mapping[str, str], *, make: bool = True, mounts: Path = MOUNTS
) -> RunDir:
    """The directory for run files.

    Args:
        said: what the operator says, if anything.
        said_by: the option or the variable that says it.
        environ: where the system tells its directories.
        make: create it where it is not there yet; otherwise only say what would happen.
        mounts: the kernel's table of mounts.
    """
    if said is not None:
        path = Path(said)
        why_not = "must be an absolute path" if not path.is_absolute() else _why_not(path, make)
        if why_not is not None:
            return RunDir(problem=Problem("invalid_policy", said_by, f"{said} {why_not}."))
        return _trusted(path, mounts)
    refused = []
    for path in _usual(environ):
        if (why_not := _why_not(path, make)) is None:
            return _trusted(path, mounts)
        refused.append(f"{path} {why_not}")
    return RunDir(note=f"there is no directory for run files ({'; '.join(refused)}). {LEASES_DECIDE}")


def _usual(environ: Mapping[str, str]) -> Iterator[Path]:
    if system := environ.get("RUNTIME_DIRECTORY"):
        yield Path(system.partition(":")[0])
    if session := environ.get("XDG_RUNTIME_DIR"):
        yield Path(session) / "runwick"
    user = os.geteuid()
    if (of_user := Path(f"/run/user/{user}")).is_dir():
        yield of_user / "runwick"
    yield Path(tempfile.gettempdir()) / f"runwick-{user}"


def _why_not(path: Path, make: bool) -> str | None:
    """Why run files cannot lie there; a directory that is not there yet is made."""
    try:
        if make:
            path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except FileExistsError:
        return "is no directory"
    except FileNotFoundError:
        return None if not make and path.parent.is_dir() else f"cannot be made: there is no {path.parent}"
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return "is no directory"
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by others: it must belong to the worker's user alone"
    return None


def _trusted(path: Path, mounts: Path) -> RunDir:
    filesystem = filesystem_of(path.resolve(), mounts)
    if filesystem.trust is Trust.LOCAL:
        return RunDir(path)
    return RunDir(
        note=f"run files prove nothing in {path}, which lies on a file system that is not known to be local "
        f"({filesystem.kind}). {LEASES_DECIDE}"
    )
