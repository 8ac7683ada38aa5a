"""Real servers for the tests, the demo and the benchmarks: started for one process, and gone with it."""
