"""Admission: what an application may do in which mode, at every act there is."""

import pytest

from runwick.contracts.administration import Admission, admits
from runwick.contracts.errors import AdmissionClosed
from runwick.contracts.outcomes import Answer
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, LEASE_MS, Bench
from tests.conformance.scene import ACTS, READS, Scene, acts_of_the_protocol, seen, set_scene

CLOSED = [Admission.DRAIN, Admission.MAINTENANCE]


def close(bench: Bench, mode: Admission, application: str | None = APPLICATION) -> None:
    """Go to `mode`, through drain."""
    bench.administration.set_admission(Admission.DRAIN, application)
    bench.administration.set_admission(mode, application)


def run(bench: Bench, scene: Scene, name: str) -> object:
    return bench.run(ACTS[name](bench, scene))


def test_every_act_of_the_protocol_is_tried() -> None:
    assert set(ACTS) == acts_of_the_protocol()


def test_what_reads_says_so(bench: Bench) -> None:
    scene = set_scene(bench)
    assert {name for name, make in ACTS.items() if make(bench, scene).reads_only} == READS


@pytest.mark.parametrize("mode", CLOSED)
@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_admitted_or_refused_by_the_mode(bench: Bench, mode: Admission, name: str) -> None:
    scene = set_scene(bench)
    close(bench, mode)
    before = seen(bench, scene)
    if admits(mode, name, reads_only=name in READS):
        run(bench, scene, name)
        return
    with pytest.raises(AdmissionClosed, match=f'application "{APPLICATION}" is .*so {name} is refused') as refused:
        run(bench, scene, name)
    assert refused.value.code == "admission_closed"
    assert seen(bench, scene) == before
    bench.administration.set_admission(Admission.OPEN, APPLICATION)
    run(bench, scene, name)


@pytest.mark.parametrize("name", sorted(set(ACTS) - READS))
def test_every_act_that_may_write_finds_something_to_write(bench: Bench, name: str) -> None:
    """Otherwise the refusals above would be about nothing."""
    scene = set_scene(bench)
    before = seen(bench, scene)
    bench.clock.advance_ms(1)
    run(bench, scene, name)
    # What is registered cannot be read; what it changes is looked at in its own tests.
    assert name == "register" or seen(bench, scene) != before


def test_running_work_ends_while_the_application_is_drained(bench: Bench) -> None:
    scene = set_scene(bench)
    close(bench, Admission.DRAIN)
    bench.clock.advance_ms(LEASE_MS - 1)
    assert bench.renew(scene.running, scene.reserved).lost == frozenset()
    assert bench.retry(scene.running, delay_ms=0) is Answer.DONE
    assert bench.release(scene.reserved) == [Answer.DONE]
    assert len(bench.recover()) == 1
    bench.administration.set_admission(Admission.OPEN, APPLICATION)
    assert len(bench.claim().attempts) == 4


def test_a_refused_begin_charges_nothing(bench: Bench) -> None:
    scene = set_scene(bench)
    close(bench, Admission.DRAIN)
    with pytest.raises(AdmissionClosed):
        bench.run(bench.store.begin(scene.reserved))
    record = bench.job(scene.reserved.job_id)
    assert (record.state, record.executions) == (JobState.RESERVED, 0)


@pytest.mark.parametrize("mode", CLOSED)
def test_a_dispatch_that_was_applied_is_answered_in_every_mode(bench: Bench, mode: Admission) -> None:
    """A refusal says that nothing was written, which would be false of its first sending."""
    scene = set_scene(bench)
    first = bench.run(bench.store.dispatch([scene.dispatched]))
    close(bench, mode)
    assert bench.run(bench.store.dispatch([scene.dispatched])) == first
    with pytest.raises(AdmissionClosed):
        bench.run(bench.store.dispatch([scene.dispatched, bench.command()]))


def test_an_application_is_closed_for_itself_alone(bench: Bench) -> None:
    bench.dispatch()
    bench.dispatch(application="office")
    close(bench, Admission.MAINTENANCE)
    assert len(bench.claim(application="office").attempts) == 1
    bench.dispatch(application="bakery")
    with pytest.raises(AdmissionClosed):
        bench.run(bench.store.dispatch([bench.command()]))
    assert len(bench.claim(application="bakery").attempts) == 1


def test_every_process_is_refused_from_then_on(bench: Bench) -> None:
    bench.dispatch()
    other = bench.another()
    try:
        other.run(other.dispatch([bench.command()]))
        close(bench, Admission.DRAIN)
        with pytest.raises(AdmissionClosed):
            other.run(other.dispatch([bench.command()]))
        bench.administration.set_admission(Admission.OPEN, None)
        other.run(other.dispatch([bench.command()]))
    finally:
        other.close()
