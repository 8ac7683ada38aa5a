"""The composition root: `Runwick`, and how a command finds an application."""
