"""What the campaigns share."""

from tests.faults.failing_sqlite import saboteur
from tests.faults.sqlite_site import scene, site

__all__ = ["saboteur", "scene", "site"]
