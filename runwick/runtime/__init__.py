"""The one shape of a loop, wake-ups, threads, the system's clock, dice and ids, and the tests' named crossings."""
