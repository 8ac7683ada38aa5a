"""Every round trip of every act on PostgreSQL is lost once in every way, and what is said of it is true.

For each act the n-th round trip meets a fault, n = 1, 2, … until there are no more; those that prepare a statement are
among them, and for one act those that open a connection:

    said ──────────────────── the database ──────────── sent again
    StoreError                as before                 the answer of the first time
    OutcomeUnknown            as before, or as after    the answer of the first or of a second time
    an answer                 as after                  the answer of a second time
"""

import itertools
from typing import Any, Final

import pytest

from runwick.contracts.errors import OutcomeUnknown, RunwickError, StoreError
from runwick.stores.postgres.store import PostgresStore
from tests.conformance.scene import acts_of_the_protocol
from tests.faults.postgres_site import Site, site, undisturbed
from tests.faults.proxy import CONNECTION_CUTS, Cut, Fault
from tests.faults.stage import Make, acts

__all__ = ["site"]

NAMES: Final = (
    "dispatch", "dispatch, keyed", "dispatch, by hand", "resolve", "register", "register, capped", "claim",
    "claim, judged", "begin",
    "begin, cancelled", "begin, cancelled and freeing", "release", "release, freeing", "settle",
    "settle, numbers alone", "settle, freeing", "renew", "recover", "recover, of a worker", "expire", "tend",
    "depart", "cancel", "cancel, limited", "retry", "retry, keyed", "rerun", "look", "pause", "resume",
    "set_capacity", "reveal", "reveal, of an attempt", "standing", "jobs", "runs", "backlogs", "names", "audited",
    "events", "audit", "workers", "stack", "why", "queues", "scopes", "rates", "job", "outlook", "costliest",
)  # fmt: skip
HEART: Final = ("dispatch", "claim, judged", "settle, freeing", "renew", "cancel", "retry, keyed")
ERRORS: Final = ("40001", "40P01", "57014", "53300", "25006", "58030")
"""Serialization failure, deadlock, statement time-out, too many connections, read only, input or output error."""


@pytest.mark.parametrize("name", NAMES)
def test_an_act_of_which_any_round_trip_is_lost(site: Site, name: str) -> None:
    trial = Trial(site, name)
    for cut in CONNECTION_CUTS:
        assert trial.campaign(Fault(cut)) >= 2, "preparing and asking are two round trips at least"


@pytest.mark.parametrize("name", HEART)
def test_f071_an_act_of_which_any_round_trip_fails(site: Site, name: str) -> None:
    trial = Trial(site, name)
    faults = [*(Fault(Cut.ERROR, code=code) for code in ERRORS), Fault(Cut.FATAL, code="57P01")]
    for fault in faults:
        assert trial.campaign(fault) >= 2


@pytest.mark.parametrize("cut", CONNECTION_CUTS)
def test_an_opening_of_which_any_round_trip_is_lost(site: Site, cut: Cut) -> None:
    trial = Trial(site, "dispatch")
    assert trial.campaign(Fault(cut), opens=True) >= trial.campaign(Fault(cut)) + 2


def test_every_act_is_tried() -> None:
    assert {name.partition(",")[0] for name in NAMES} == acts_of_the_protocol()


class Trial:
    """One act in a store, and what it does when nothing fails."""

    def __init__(self, site: Site, name: str) -> None:
        self._site: Final = site
        self._make: Final = acts(site.stage)[name]
        self._normal: Final = undisturbed(site, self._make)

    def campaign(self, fault: Fault, *, opens: bool = False) -> int:
        """Let the fault meet each round trip of the act; answers how many there were.

        Args:
            opens: whether opening the store is among them.
        """
        for number in itertools.count(1):
            self._site.restore()
            store = self._site.store()
            if not opens:
                store.check()
            self._site.proxy.arm(fault._replace(nth=number))
            said = outcome_of(store, self._make)
            if not self._site.proxy.disarm():
                store.close()
                return number - 1
            assert fault.cut is Cut.ERROR or self._site.proxy.over.wait(10), "the server has not ended that session"
            self._check(store, said)
            store.close()
        raise AssertionError("it never ends")

    def _check(self, store: PostgresStore, said: Any) -> None:
        """What was said is true of the database, and sending it again brings it to its end, once."""
        normal, found = self._normal, self._site.state()
        if isinstance(said, OutcomeUnknown):
            assert normal.before != normal.after, "a read has no unknown outcome"
            assert found in (normal.before, normal.after), said
        elif isinstance(said, StoreError):
            assert found == normal.before, said
        else:
            assert found == normal.after, said
        applied = found == normal.after and normal.before != normal.after
        assert store.run(self._make(store)) == (normal.second if applied else normal.first), said
        assert self._site.state() == normal.after, said


def outcome_of(store: PostgresStore, make: Make) -> Any:
    """The answer, or the error that Runwick gives; any other error is a fault of its own."""
    try:
        return store.run(make(store))
    except RunwickError as error:
        return error
