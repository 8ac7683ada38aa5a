"""What a system is to the harness: where it comes from, how it is set, and the commands that run it."""

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal

from scripts.peers.board import VARIABLE, Board

PROJECT: Final = Path(__file__).parents[2]
ENVIRONMENTS: Final = PROJECT / ".venv-peers"
WORKERS: Final = 2
"""Worker processes of every system."""

Store = Literal["postgres", "redis", "sqlite"]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where one measurement of one system takes place: an empty store, a folder for files, and a new board."""

    url: str
    """``postgresql://…`` with the folder of its socket as the host, ``redis://…`` on loopback, or the path of a file
    that does not exist yet."""
    folder: Path
    board: Board
    store_variables: Mapping[str, str]
    job_ms: float = 0.0
    """About how long a job of this measurement works; 0 for those that do nothing. Many systems advise to fetch the
    more jobs ahead, the shorter they are."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment of every process of the system: for PostgreSQL the ``PG…`` variables (which all clients
        read), for Redis ``REDIS_URL``, for SQLite ``SQLITE_PATH``, and the board for all."""
        outside = {name: text for name, text in os.environ.items() if not name.startswith("RUNWICK_")}
        own = {VARIABLE: str(self.board.path), "PYTHONPATH": str(PROJECT), "PEERS_FOLDER": str(self.folder)}
        return {**outside, **own, **self.store_variables}


class System:
    """One system on one store. Subclasses set what stands here without a value and override what differs."""

    name: ClassVar[str]
    """Short and unique, such as ``celery`` or ``huey-sqlite``: for the command line and the JSON."""
    title: ClassVar[str]
    """For people."""
    package: ClassVar[str]
    """Its distribution, whose version is shown. The environment is named after it as well: several systems of one
    package share it."""
    side: ClassVar[str]
    """Its module in `sides`, without the package's name."""
    store: ClassVar[Store]
    promise: ClassVar[Literal["at least once", "at most once"]]
    """What it promises with these settings about a job whose worker is killed."""
    settings: ClassVar[str]
    """Its settings in words, for the page: the best that its documentation advises."""
    python: ClassVar[str] = "3.11"
    """The oldest Python that it takes."""
    noop_jobs: ClassVar[int] = 20_000
    """Jobs of one round of the no-op measure: about three to five seconds of work."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Measures that it cannot take, each with the reason in words."""

    def prepare(self, place: Place) -> Sequence[Sequence[str]]:
        """Commands to run once on an empty store, one after the other, such as those that create its schema."""
        return ()

    def workers(self, place: Place) -> Sequence[Sequence[str]]:
        """The commands of the main processes, all started at once and run until they are stopped: one where it
        manages its `WORKERS` processes itself, else as many."""
        raise NotImplementedError

    def left(self, place: Place) -> int | None:
        """How many jobs its store holds that have not ended, by its own words; None where it cannot tell. Runs in
        our environment."""
        return None

    def producer(self, *arguments: str) -> list[str]:
        """The command of its side with these arguments."""
        return [self.program("python"), "-m", f"scripts.peers.sides.{self.side}", *arguments]

    def program(self, name: str) -> str:
        """The path of a program in its environment."""
        return str(self.programs / name)

    @property
    def programs(self) -> Path:
        """The folder of the programs in its environment."""
        return ENVIRONMENTS / self.package / "bin"


class OurSystem(System):
    """Runs in the environment in which the harness runs."""

    package = "runwick"

    def program(self, name: str) -> str:
        return sys.executable if name == "python" else str(Path(sys.executable).parent / name)

    @property
    def programs(self) -> Path:
        return Path(sys.executable).parent
