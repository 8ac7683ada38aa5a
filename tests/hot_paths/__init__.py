"""Holds what a job costs by counts that no machine and no load changes: statements, round trips, rows, syncs, system
calls, instructions of the interpreter. `ceilings` is the one table of what they may be, and
``python -m tests.hot_paths`` writes it anew.
"""
