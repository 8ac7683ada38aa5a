"""The `runwick-supervise` command, run as its users run it."""
