"""What the campaigns share."""

from tests.faults.failing_sqlite import saboteur
from tests.faults.sqlite_site import site, stage

__all__ = ["saboteur", "site", "stage"]
