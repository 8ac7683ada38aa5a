"""Runwick beside other job systems: installed, run and measured in turn, on the same servers with the same durability.

``python -m scripts.peers`` does it, ``make bench-peers`` as well, and writes ``docs/benchmarks/``. What differs between
the systems is told by ``systems`` (how one is run, read here) and ``sides`` (its jobs, read in its own environment);
what is measured, by ``measures``; how everybody is counted alike, by ``board``.
"""
