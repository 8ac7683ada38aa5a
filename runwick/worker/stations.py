"""A station for each pool of a worker: a claimer, a share of the tickets, and the sink of its backend.

Pools come and go while the worker runs. One that stays, known by its backend, goes on with what it holds; one that is
taken away claims nothing more and leaves when what runs in it has ended.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.backends import Backend
from runwick.contracts.states import JobState
from runwick.telemetry import events
from runwick.worker.claimer import Claimer
from runwick.worker.pools import Pools, PoolSink, ServedPool
from runwick.worker.registry import Share


class Station(NamedTuple):
    """What serves one pool."""

    backend: Backend
    claimer: Claimer
    sink: PoolSink
    share: Share


class Stations:
    """All stations of one worker.

    Args:
        pools: told which pools are served.
        build: makes the station of a pool, given a phrase that names it among several.
        release: takes what was handed over and will not be run.
    """

    def __init__(
        self,
        pools: Pools,
        build: Callable[[ServedPool, frozenset[Kind], str], Station],
        release: Callable[[Sequence[Attempt]], None],
    ) -> None:
        self._pools = pools
        self._build = build
        self._release = release
        self._serving: list[Station] = []
        self._leaving: list[Station] = []

    @property
    def claimers(self) -> list[Claimer]:
        """Of all pools, also of those that leave."""
        return [station.claimer for station in (*self._serving, *self._leaving)]

    @property
    def sinks(self) -> list[PoolSink]:
        """Of the pools that are served, in their order."""
        return [station.sink for station in self._serving]

    def new_for(self, pools: Sequence[ServedPool], kinds: frozenset[Kind]) -> list[Station]:
        """Stations for those of these pools whose backend has none yet. They do nothing until they are served."""
        known = [station.backend for station in self._serving]
        return [
            self._build(pool, kinds, f' of pool "{pool.name}"' if len(pools) > 1 else "")
            for pool in pools
            if not any(pool.backend is backend for backend in known)
        ]

    def serve(self, pools: Sequence[ServedPool], kinds: frozenset[Kind], new: Sequence[Station]) -> list[Station]:
        """Serve exactly these pools from now on; answers the stations that leave.

        Args:
            pools: known by their backends.
            kinds: what is claimed from now on.
            new: made by `new_for` these pools; their backends are up, or about to be.
        """
        total = sum(pool.size for pool in pools)
        leaving = [*self._serving, *new]
        serving = []
        for pool in pools:
            station = next(station for station in leaving if station.backend is pool.backend)
            leaving.remove(station)
            station.share.allow(pool.size, total)
            station.claimer.serve(pool, kinds)
            serving.append(station)
        for station in leaving:
            station.claimer.stop()
            self._release(station.backend.take_back())
        self._serving = serving
        self._leaving += leaving
        self._pools.serve(pools)
        return leaving

    def has_left(self, station: Station) -> None:
        """Its backend has been stopped."""
        self._leaving.remove(station)
        self._pools.has_left(station.backend)

    def stop_claiming(self) -> None:
        """Claim nothing more, for any pool."""
        for claimer in self.claimers:
            claimer.stop()

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way, whose answer nobody holds yet."""
        return any(claimer.is_claiming for claimer in self.claimers)

    @property
    def found_nothing(self) -> bool:
        """Whether nothing was due for any pool when it last asked."""
        return all(station.claimer.found_nothing for station in self._serving)

    def look_for_work(self) -> None:
        """Something has become due."""
        for claimer in self.claimers:
            claimer.wake.ring()

    def join(self) -> None:
        """Results are written now."""
        for claimer in self.claimers:
            claimer.join()

    def tickets_returned(self) -> None:
        """The registry has let go of some attempts."""
        for claimer in self.claimers:
            claimer.tickets_returned()

    def set_alarms(self, event: events.Settled) -> None:
        """What was settled to run again is due soon: whoever may take it is woken then."""
        retrying = JobState.RETRYING
        for settlement in event.settlements:
            if settlement.state is retrying:
                for claimer in self.claimers:
                    claimer.due_in(settlement.attempt.lane, settlement.delay_ms or 0)
