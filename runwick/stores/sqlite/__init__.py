"""The SQLite store: one file, shared by all processes of one host.

Acts (what a store does)         dispatch register claim begin release settle lease recover read, over `steps`, `sql/`
The way to the file              store ─▶ driver ─▶ works: turnstile, link ─▶ opening; desk for event loops
What every act meets             gate: revision, identity, admission; clock: a time that never goes back
What keeps it well               checkpoint, hint, forks, faults
What operators do                administer; migrate, the only part that creates anything
"""
