"""What a fork means to whoever holds threads, locks or connections: each is told before it and after it, in order.

::

    forking thread   before_fork: come to rest ──fork──▶ parent   after_fork_in_parent: go on
                                                  └────▶ child    after_fork_in_child: begin afresh

A fork by foreign code that runs no hooks is noticed at the next use, by `notice`.
"""

import itertools
import os
import threading
from typing import Final
from weakref import WeakSet

_making = itertools.count()
_concerned: "WeakSet[Forkable]" = WeakSet()
_resting: "list[Forkable]" = []
_one_fork = threading.Lock()
_pid = os.getpid()


class Forkable:
    """Something that a fork concerns; it hears of every fork as long as it lives.

    Members are told in the order of their making. Who locks two members locks the older one first. None is made while a
    fork is under way.
    """

    def __init__(self) -> None:
        with _one_fork:
            self.made: Final = next(_making)
            _concerned.add(self)

    def before_fork(self) -> None:
        """In the forking thread: come to rest."""

    def after_fork_in_parent(self) -> None:
        """In the forking thread: go on."""

    def after_fork_in_child(self) -> None:
        """In the child, whose only thread this is: begin afresh."""


def notice() -> None:
    """Notice a fork by foreign code that ran no hooks. Called at each use of a store."""
    if os.getpid() != _pid:
        _after_in_child()


def _before() -> None:
    _one_fork.acquire()
    _resting.extend(_in_order())
    for member in _resting:
        member.before_fork()


def _after_in_parent() -> None:
    for member in _resting:
        member.after_fork_in_parent()
    _resting.clear()
    _one_fork.release()


def _after_in_child() -> None:
    global _one_fork, _pid
    _one_fork = threading.Lock()
    _pid = os.getpid()
    _resting.clear()
    for member in _in_order():
        member.after_fork_in_child()


def _in_order() -> list[Forkable]:
    return sorted(_concerned, key=lambda member: member.made)


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
