"""Executors and supervisors are killed under load, and afterwards everything is counted."""
