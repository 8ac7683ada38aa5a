"""Options with their units, bounds and rules, where they come from, and the one check that reports every problem."""
