"""Builds the compiled part of the supervisor while the distribution is built, wherever there is a C compiler.

It is one shared library without any of Python's symbols, so that one build serves every Python of a platform. Where it
cannot be built, Runwick is installed without it: the build says so and goes on. An older build never stays behind.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE: Final = "supervisor/runwick_supervisor/native/runwick_native.c"
_FLAGS: Final = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra", "-Werror=implicit")
_BUILD_TIMEOUT_S: Final = 60


class NativeBuild(BuildHookInterface[Any]):
    """Called by hatchling for a wheel, and for an installation that uses the files in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root, _SOURCE)
        library = source.with_suffix(".so")
        library.unlink(missing_ok=True)
        refused = build(source, library)
        if refused is not None:
            self.app.display_warning(f"Runwick is built without its compiled part: {refused}")
        elif version == "standard":
            build_data["artifacts"].append(str(library.relative_to(self.root)))
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


def build(source: Path, library: Path) -> str | None:
    """Compile `source` to `library`; answers why that cannot be done. The library is there whole, or not at all."""
    compiler = _compiler()
    if compiler is None:
        return "no C compiler was found (CC, cc, gcc, clang)"
    unfinished = library.with_suffix(f".{os.getpid()}")
    command = [*compiler, *_FLAGS, "-o", str(unfinished), str(source), "-lrt"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S)
        unfinished.replace(library)
    except subprocess.CalledProcessError as error:
        return f"{compiler[0]} refused it: {error.stderr.strip()}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{compiler[0]} could not be run: {error}"
    finally:
        unfinished.unlink(missing_ok=True)
    return None


def _compiler() -> list[str] | None:
    if chosen := os.environ.get("CC", "").split():
        return chosen
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
