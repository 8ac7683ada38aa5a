"""The store in memory: the reference model of what every store does, and the store of tests."""
