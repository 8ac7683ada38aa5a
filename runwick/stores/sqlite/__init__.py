"""The SQLite store: one file, shared by all processes of one host.

Acts (what a store does)         dispatch claim begin release settle lease recover read, over `steps` and `sql/`
The way to the file              store ─▶ driver ─▶ works: turnstile, link ─▶ opening; desk for event loops
What keeps it well               checkpoint, hint, forks, faults; migrate is the only part that creates anything
"""
