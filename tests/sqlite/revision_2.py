"""A store as the release before limits left it: `revision_1`'s jobs, another one, and what an operator did."""

import shutil
import sqlite3
from pathlib import Path
from typing import Final

from runwick.stores.migrations import MigrationResult
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import FOLDER
from tests.ambient import FakeClock, FakeIds
from tests.sqlite import revision_1

RETRYING: Final = (6).to_bytes(16)


def install(path: Path) -> MigrationResult:
    """Create the store beside a folder of its release's migrations."""
    revision_1.install(path)
    folder = path.parent / "revision-2"
    folder.mkdir()
    for name in ("0001_jobs.sql", "0002_administration.sql"):
        shutil.copy(FOLDER / name, folder)
    result = migrate(path, FakeClock(), FakeIds(), folder=folder)
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_suffix(".sql").read_text())
    connection.close()
    return result
