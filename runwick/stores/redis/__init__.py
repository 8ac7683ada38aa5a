"""The Redis store: jobs on one durable Redis primary, shared by processes of many hosts.

Whatever an act does is one call of one Lua function, which the server runs as a whole or not at all. `store` is where
to begin; `driver` and what it holds know nothing of jobs, and the modules named like acts know nothing of connections.
"""
