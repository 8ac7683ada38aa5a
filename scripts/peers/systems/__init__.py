"""One module for each package, with all that the harness knows of it; ours is one of them."""

import importlib
from typing import Final

from scripts.peers.system import System

MODULES: Final = (
    "runwick",
    "pgqueuer",
    "oban",
    "procrastinate",
    "celery",
    "dramatiq",
    "rq",
    "huey",
    "taskiq",
    "saq",
    "streaq",
)


def every_system() -> list[System]:
    """All of them, in the order in which they take turns and stand on the page."""
    modules = [importlib.import_module(f"scripts.peers.systems.{name}") for name in MODULES]
    return [system for module in modules for system in module.SYSTEMS]
