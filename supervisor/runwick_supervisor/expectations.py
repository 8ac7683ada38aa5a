"""What runs are expected to take, learned from those that ended, and how deep that lets an executor be filled.

An executor gets what it should finish in 100 ms, the run it is busy with included. That is two runs of 50 ms and ten
thousand of 10 us; longer runs, and kinds that were never seen, are given to free executors alone.
"""

from typing import Final

from runwick.contracts.attempts import Kind

AHEAD_MS: Final = 100.0
"""What one executor may hold, in expected milliseconds."""
SHORT_MS: Final = 50.0
"""A kind that takes longer is never handed ahead."""
_WEIGHT: Final = 1 / 8
"""Of the newest run in the mean. The mean is geometric, so that one long run among short ones does not stop their flow:
what waits behind a long one is taken back anyway. Five in a row make a kind long."""
_SHORTEST_MS: Final = 0.001


class Expectations:
    """Exponentially weighted geometric means of handler times: per kind, and over the mix as it comes."""

    def __init__(self) -> None:
        self._by_kind: dict[Kind, float] = {}
        self.typical_ms: float | None = None
        """What the next run is expected to take while its kind is not known; None before the first end."""

    def learn(self, kind: Kind, *milliseconds: float) -> None:
        """Runs of this kind took so long, one after the other."""
        mean_ms, typical_ms = self._by_kind.get(kind), self.typical_ms
        is_all_there_is = mean_ms == typical_ms
        for took_ms in milliseconds:
            took_ms = max(took_ms, _SHORTEST_MS)
            mean_ms = _moved(mean_ms, took_ms)
            typical_ms = mean_ms if is_all_there_is else _moved(typical_ms, took_ms)
        if mean_ms is not None:
            self._by_kind[kind], self.typical_ms = mean_ms, typical_ms

    def expected_ms(self, kind: Kind) -> float | None:
        """What a run of this kind should take; None for a kind that never ended here."""
        return self._by_kind.get(kind)

    def runs_in(self, milliseconds: float) -> int:
        """How many typical runs fit into that time; 0 while runs are long or unknown."""
        typical = self.typical_ms
        if typical is None or typical > SHORT_MS or milliseconds <= 0:
            return 0
        return int(milliseconds / typical)


def _moved(mean: float | None, milliseconds: float) -> float:
    """The geometric mean, moved towards the newest value."""
    return milliseconds if mean is None else mean * (milliseconds / mean) ** _WEIGHT
