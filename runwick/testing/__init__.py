"""What users' own tests need: an application's jobs run in the test itself, against a store in memory."""

from runwick.testing.running import Running, running

__all__ = ["Running", "running"]
