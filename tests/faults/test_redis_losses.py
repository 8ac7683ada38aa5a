"""Every call of every act on Redis is lost once in every way, and what is said of it is true.

For each act the n-th call of a function meets a fault, n = 1, 2, … until there are no more; for one act every command
counts, those among them that open a connection:

    said ──────────────────── the database ──────────── sent again
    StoreError                as before                 the answer of the first time
    OutcomeUnknown            as before, or as after    the answer of the first or of a second time
    an answer                 as after                  the answer of a second time
"""

import itertools
from typing import Any, Final

import pytest

from runwick.contracts.errors import OutcomeUnknown, RunwickError, StoreError
from runwick.stores.redis.store import RedisStore
from tests.conformance.scene import acts_of_the_protocol
from tests.faults.proxy import CONNECTION_CUTS, Cut, Fault
from tests.faults.redis_site import Site, site, undisturbed
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
CALLS: Final = {"recover": 2, "recover, of a worker": 3, "begin": 2, "release": 2, "settle": 2}
"""What acts cost that cost more than one call: recovery looks and then ends; a process that has claimed nothing asks
first which application an attempt is of."""
HEART: Final = ("dispatch", "claim, judged", "settle, freeing", "renew", "recover", "cancel", "retry, keyed")
ERRORS: Final = ("BUSY", "READONLY", "OOM", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS", "NOPERM")


@pytest.mark.parametrize("name", NAMES)
def test_an_act_of_which_any_call_is_lost(site: Site, name: str) -> None:
    trial = Trial(site, name)
    calls = {trial.campaign(Fault(cut)) for cut in CONNECTION_CUTS}
    assert calls == {CALLS.get(name) or CALLS.get(name.partition(",")[0], 1)}, "what an act costs"


@pytest.mark.parametrize("name", HEART)
def test_f071_an_act_of_which_any_call_is_refused_by_the_server(site: Site, name: str) -> None:
    trial = Trial(site, name)
    for code in ERRORS:
        assert trial.campaign(Fault(Cut.ERROR, code=code)) >= 1
    assert trial.campaign(Fault(Cut.FATAL, code="LOADING")) >= 1


@pytest.mark.parametrize("cut", CONNECTION_CUTS)
def test_an_opening_of_which_any_command_is_lost(site: Site, cut: Cut) -> None:
    trial = Trial(site, "dispatch")
    site.proxy.counts_all = True
    assert trial.campaign(Fault(cut), opens=True) >= 8, "to open, to look at the server, to meet the store, to ask"
    site.proxy.counts_all = False


@pytest.mark.parametrize("cut", CONNECTION_CUTS)
def test_a_call_whose_function_is_gone_and_of_which_any_command_is_lost(site: Site, cut: Cut) -> None:
    trial = Trial(site, "dispatch", forgets=True)
    assert trial.campaign(Fault(cut)) == 3, "the call, the loading, the call again"


def test_every_act_is_tried() -> None:
    assert {name.partition(",")[0] for name in NAMES} == acts_of_the_protocol()


class Trial:
    """One act in a store, and what it does when nothing fails.

    Args:
        site: where the store is.
        name: of the act.
        forgets: whether the server has no functions each time.
    """

    def __init__(self, site: Site, name: str, *, forgets: bool = False) -> None:
        self._site: Final = site
        self._forgets: Final = forgets
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
                self._site.first_write(store)
            if self._forgets:
                self._site.database.client.function_flush()
            self._site.proxy.arm(fault._replace(nth=number))
            said = outcome_of(store, self._make)
            if not self._site.proxy.disarm():
                store.close()
                return number - 1
            assert fault.cut is Cut.ERROR or self._site.proxy.over.wait(10), "the server has not ended that connection"
            self._check(store, said)
            store.close()
        raise AssertionError("it never ends")

    def _check(self, store: RedisStore, said: Any) -> None:
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


def outcome_of(store: RedisStore, make: Make) -> Any:
    """The answer, or the error that Runwick gives; any other error is a fault of its own."""
    try:
        return store.run(make(store))
    except RunwickError as error:
        return error
