"""The one shape of a loop, wake-ups, the system's clock, dice and ids, and the named crossings of the tests."""
