"""Identity: a process works with the store it first met, and with no other."""

import pytest

from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.errors import StoreHistoryBroken
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.scene import ACTS, seen, set_scene


def reidentify(bench: Bench) -> bytes:
    """Give the store another identity, when all leases have run out and the worker is long gone."""
    bench.clock.advance_ms(WORKER_ALIVE_MS)
    bench.administration.set_admission(Admission.DRAIN, None)
    bench.administration.set_admission(Admission.MAINTENANCE, None)
    store_id = bench.administration.reidentify()
    bench.administration.set_admission(Admission.OPEN, None)
    return store_id


def test_the_identity_is_known_from_the_first_use_on_and_the_same_for_all(bench: Bench) -> None:
    bench.store.check()
    other = bench.another()
    try:
        other.run(other.dispatch([bench.command()]))
        assert bench.store.store_id == other.store_id == bench.administration.status().store_id
    finally:
        other.close()


def test_a_new_identity_is_kept(bench: Bench) -> None:
    bench.store.check()
    store_id = reidentify(bench)
    assert store_id != bench.store.store_id
    assert bench.administration.status().store_id == store_id


@pytest.mark.parametrize("name", ACTS)
def test_every_act_of_a_process_that_knew_another_store_is_refused(bench: Bench, name: str) -> None:
    scene = set_scene(bench)
    reidentify(bench)
    newcomer = bench.another()
    try:
        before = seen(bench, scene, newcomer)
        with pytest.raises(StoreHistoryBroken) as refused:
            bench.run(ACTS[name](bench, scene))
        assert refused.value.code == "store_identity_mismatch"
        assert seen(bench, scene, newcomer) == before
    finally:
        newcomer.close()


def test_a_dispatch_meant_for_another_store_is_refused_whole(bench: Bench) -> None:
    bench.store.check()
    meant = bench.command(store_id=bench.store.store_id)
    bench.run(bench.store.dispatch([meant]))
    stray = bench.command(store_id=bench.ids.ordered())
    fresh = bench.command()
    with pytest.raises(StoreHistoryBroken) as refused:
        bench.run(bench.store.dispatch([fresh, stray]))
    assert refused.value.code == "store_identity_mismatch"
    assert bench.run(bench.store.job(APPLICATION, fresh.job_id)) is None
    assert bench.run(bench.store.job(APPLICATION, stray.job_id)) is None


def test_a_prepared_dispatch_does_not_land_in_a_copy_that_got_its_own_identity(bench: Bench) -> None:
    bench.store.check()
    prepared = bench.command(store_id=bench.store.store_id)
    reidentify(bench)
    copy = bench.another()
    try:
        with pytest.raises(StoreHistoryBroken):
            copy.run(copy.dispatch([prepared]))
        assert copy.run(copy.resolve(APPLICATION, prepared.operation_id)) is None
    finally:
        copy.close()
