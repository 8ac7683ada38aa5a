"""What a list may show and where it has to look, in the store's numbers."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from runwick.contracts.listing import Within
from runwick.stores.postgres import packed
from runwick.stores.postgres.bound import Bound
from runwick.stores.steps import Preparation, Steps

KINDS_WALKED: Final = 4
"""So many versions of a job type ``jobs_of.sql`` and ``runs_of.sql`` walk at once."""


class Sight(NamedTuple):
    """What somebody may see of an application's jobs."""

    everything: bool
    lanes: Sequence[int] = ()
    """Of these the jobs of all tenants…"""
    pairs: Sequence[tuple[int, str]] = ()
    """…of these a lane's jobs of one tenant…"""
    untenanted: Sequence[int] = ()
    """…and of these the ones without a tenant."""

    @property
    def nothing(self) -> bool:
        return not (self.everything or self.lanes or self.pairs or self.untenanted)

    @property
    def all_lanes(self) -> set[int]:
        """Where anything of it can be."""
        return {*self.lanes, *self.untenanted, *(lane for lane, _ in self.pairs)}

    def columns(self) -> tuple[packed.Packed, ...]:
        """$5 to $9 of the statements that list jobs and runs."""
        return (
            packed.flag(self.everything),
            packed.numbers(self.lanes),
            packed.numbers([lane for lane, _ in self.pairs]),
            packed.texts([tenant for _, tenant in self.pairs]),
            packed.numbers(self.untenanted),
        )


def look(
    bound: Bound, application: int, queue: str | None, name: str | None, within: Within
) -> Steps[tuple[Sight, Sequence[int]]]:
    """What can be seen of a queue (None: of all), and the kinds of a job type, the latest version first."""
    bounded = queue is not None or (within is not None and not _is_all(within))
    if not bounded and name is None:
        return Sight(everything=True), ()
    rows = yield Preparation("lanes_and_kinds", (*bound.reading(), packed.number(application), name))
    kinds = [number for number, of_queue in rows if of_queue is None]
    if not bounded:
        return Sight(everything=True), kinds
    lanes = [(number, of_queue) for number, of_queue in rows if of_queue is not None and queue in (None, of_queue)]
    return _sight(lanes, within), kinds


def _is_all(within: Within) -> bool:
    return within is None or any(reach.queues is None and reach.tenants is None for reach in within)


def _sight(lanes: Sequence[tuple[int, str]], within: Within) -> Sight:
    whole: list[int] = []
    pairs: set[tuple[int, str]] = set()
    untenanted: list[int] = []
    for number, queue in lanes:
        if _is_all(within):
            whole.append(number)
            continue
        reaches = [reach for reach in within or () if reach.queues is None or queue in reach.queues]
        if any(reach.tenants is None for reach in reaches):
            whole.append(number)
            continue
        tenants = {tenant for reach in reaches for tenant in reach.tenants or ()}
        pairs |= {(number, tenant) for tenant in tenants if tenant is not None}
        if None in tenants:
            untenanted.append(number)
    return Sight(False, whole, sorted(pairs), untenanted)
