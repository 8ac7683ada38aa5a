"""Capabilities: a new store's applications have all, and a release creates no work where it does not know one."""

import pytest

from runwick.contracts.administration import Admission, Capability, admits
from runwick.contracts.errors import InvalidArgument, StoreError
from tests.conformance.ground import APPLICATION, HIGH, KINDS, Bench
from tests.conformance.scene import ACTS, READS, as_a_later_release, seen, set_scene

ALL = sorted(Capability)


def test_whoever_comes_first_makes_the_application_known_with_all_capabilities(bench: Bench) -> None:
    bench.run(bench.store.register("office", [HIGH], KINDS))
    bench.dispatch(application="shop")
    bench.renew(application="yard")
    applications = bench.administration.status().applications
    assert [(status.name, list(status.capabilities)) for status in applications] == [
        ("office", ALL),
        ("shop", ALL),
        ("yard", ALL),
    ]


def test_activating_what_is_active_changes_nothing(bench: Bench) -> None:
    bench.dispatch()
    for capability in Capability:
        assert not bench.administration.activate(capability, APPLICATION, "operator")
    (status,) = bench.administration.status().applications
    assert list(status.capabilities) == ALL


def test_an_application_that_never_came(bench: Bench) -> None:
    bench.dispatch()
    with pytest.raises(InvalidArgument, match='no application "yard"') as refused:
        bench.administration.activate(Capability.SCHEDULER, "yard", "operator")
    assert refused.value.code == "unknown_application"


@pytest.mark.parametrize("name", ACTS)
def test_a_capability_that_this_release_does_not_know_refuses_new_work_alone(bench: Bench, name: str) -> None:
    scene = set_scene(bench)
    as_a_later_release(bench)
    before = seen(bench, scene)
    if admits(Admission.DRAIN, name, reads_only=name in READS):
        bench.run(ACTS[name](bench, scene))
        return
    with pytest.raises(StoreError, match='capability "time_travel"') as refused:
        bench.run(ACTS[name](bench, scene))
    assert refused.value.code == "capability_unknown"
    assert seen(bench, scene) == before


def test_other_applications_go_on(bench: Bench) -> None:
    bench.dispatch()
    as_a_later_release(bench)
    bench.dispatch(application="office")
    assert len(bench.claim(application="office").attempts) == 1
    (office, shop) = bench.administration.status().applications
    assert (list(office.capabilities), list(shop.capabilities)) == (ALL, sorted([*ALL, "time_travel"]))
