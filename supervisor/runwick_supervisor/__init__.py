"""Runs the attempts of a Runwick worker on forked executors, and is the command that does so: `runwick-supervise`."""
