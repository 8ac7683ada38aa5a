"""The one revision of a PostgreSQL store that this release works with."""

from pathlib import Path
from typing import Final

from runwick.stores.migrations import migrations

FOLDER: Final = Path(__file__).parent / "migrations"
"""Where the migrations lie."""

REVISION: Final = len(migrations(FOLDER))
