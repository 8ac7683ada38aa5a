"""Runs of jobs that say when they begin and end, read from the board."""

from typing import NamedTuple

from scripts.peers.board import Board


class Run(NamedTuple):
    """One run of one job."""

    number: int
    """Of the job."""
    pid: int
    begun_ns: int
    ended_ns: int
    """0 while it goes on, and for ever if its process died or it was stopped."""

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return not self.ended_ns

    def was_on(self, at_ns: int) -> bool:
        """Whether it went on at that moment."""
        return self.begun_ns <= at_ns and (self.goes_on or self.ended_ns > at_ns)


def runs_of(board: Board) -> list[Run]:
    """All runs so far, in the order of their begins."""
    ends = board.lines("end")
    runs = []
    for number, pid, begun_ns in board.lines("begin"):
        mine = [at for of, by, at in ends if of == number and by == pid and at >= begun_ns]
        runs.append(Run(number, pid, begun_ns, min(mine, default=0)))
    return sorted(runs, key=lambda run: run.begun_ns)
