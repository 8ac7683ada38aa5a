"""A store as the release before administration left it, with one job in every place a job can be."""

import sqlite3
from pathlib import Path
from typing import Final

from runwick.contracts.attempts import Attempt
from runwick.stores.migrations import MigrationResult
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import FOLDER
from tests.ambient import FakeClock, FakeIds
from tests.attempts import an_attempt

APPLICATION: Final = "shop"
WAITING, RUNNING, FINISHED = (number.to_bytes(16) for number in (1, 2, 4))
LEASE_MS: Final = 60_000


def install(path: Path) -> MigrationResult:
    """Create the store beside a folder of its release's migrations."""
    folder = path.parent / "revision-1"
    folder.mkdir()
    (folder / "0001_jobs.sql").write_bytes((FOLDER / "0001_jobs.sql").read_bytes())
    result = migrate(path, FakeClock(), FakeIds(), folder=folder)
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_suffix(".sql").read_text())
    connection.close()
    return result


def running() -> Attempt:
    """The attempt under way, as its worker holds it."""
    return an_attempt(2, attempt_id=RUNNING, claim_token=(0xCC).to_bytes(16))
