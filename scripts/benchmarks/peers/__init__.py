"""Other job systems, measured beside ours in the same run.

Each lives in an environment of its own, which ``make bench-peers`` makes, so that nothing of it is ever near ours. A
module here that is named ``…_side`` runs there, and what it has to say it prints.
"""
