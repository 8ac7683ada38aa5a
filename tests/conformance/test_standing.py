"""How a store takes work of an application, as the application's own role may read it."""

from runwick.contracts.administration import Admission, Capability
from tests.conformance.ground import APPLICATION, Bench


def test_one_that_never_used_the_store_is_open_and_capable_of_nothing(bench: Bench) -> None:
    bench.dispatch()
    standing = bench.run(bench.store.standing("another"))
    assert (standing.admission, list(standing.capabilities)) == (Admission.OPEN, [])


def test_it_says_what_the_administration_says(bench: Bench) -> None:
    bench.dispatch()
    for mode in (Admission.OPEN, Admission.DRAIN, Admission.MAINTENANCE):
        bench.administration.set_admission(mode, APPLICATION)
        status = bench.administration.status()
        (stands,) = status.applications
        standing = bench.run(bench.store.standing(APPLICATION))
        assert (standing.store_id, standing.revision) == (status.store_id, status.revision)
        assert (standing.admission, list(standing.capabilities)) == (mode, list(stands.capabilities))
    assert list(standing.capabilities) == sorted(Capability)
