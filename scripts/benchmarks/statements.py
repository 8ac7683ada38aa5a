"""The texts of the statements with which the benchmarks fill and question a PostgreSQL server."""

from pathlib import Path
from typing import Final

from runwick.stores.steps import Statements

sql: Final = Statements(Path(__file__).parent / "sql")
"""``sql("fill_pending")`` is the text of ``sql/fill_pending.sql``."""
