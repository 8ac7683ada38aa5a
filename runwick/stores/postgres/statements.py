"""The texts of this store's statements."""

from pathlib import Path
from typing import Final

from runwick.stores.steps import Statements

sql: Final = Statements(Path(__file__).parent / "sql")
"""``sql("claim_ready")`` is the text of ``sql/claim_ready.sql``."""
