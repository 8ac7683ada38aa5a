"""The PostgreSQL store: one schema in one database, shared by processes on many hosts.

Acts (what a store does)         dispatch register claim begin release settle lease recover read, over `sql/`
The way to the server            store ─▶ driver ─▶ link, pool ─▶ opening ─▶ connection; server: what it must be
What every act meets             the gate, a function of the schema; history: a store that never goes back
What keeps it well               faults, hint, listening, telling, forks
What operators do                administer; migrate with schema, the only part that creates anything; grants.sql
"""
