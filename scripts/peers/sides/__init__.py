"""What each system is given to do, through its public interface, in its own environment.

A module here knows its own system, `work`, `producing` and nothing else of ours.
"""
