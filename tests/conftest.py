"""What every folder of tests can ask for."""

from tests.servers import database, empty_database, postgres

__all__ = ["database", "empty_database", "postgres"]
