"""Administration: what an operator sees of a store, and may change in it."""

import pytest

from runwick.contracts.administration import LEGAL_ADMISSIONS, WORKER_ALIVE_MS, Admission
from runwick.contracts.errors import InvalidArgument
from tests.conformance.ground import APPLICATION, LEASE_MS, Bench
from tests.conformance.scene import set_scene


def go_to(bench: Bench, mode: Admission, application: str | None = None) -> None:
    if mode is Admission.MAINTENANCE:
        bench.administration.set_admission(Admission.DRAIN, application)
    bench.administration.set_admission(mode, application)


def modes(bench: Bench) -> dict[str, Admission]:
    return {status.name: status.admission for status in bench.administration.status().applications}


def test_a_store_that_nobody_has_used(bench: Bench) -> None:
    status = bench.administration.status()
    assert status.revision == status.revision_expected
    assert list(status.applications) == []
    assert bench.administration.set_admission(Admission.DRAIN, None) == []
    assert "\n" not in bench.administration.description


def test_leases_and_workers_are_counted(bench: Bench) -> None:
    set_scene(bench)
    (status,) = bench.administration.status().applications
    assert (status.name, status.admission) == (APPLICATION, Admission.OPEN)
    assert (status.leases, status.leases_valid, status.workers) == (3, 2, 1)


def test_a_worker_counts_until_it_was_not_seen_for_long(bench: Bench) -> None:
    bench.renew()
    bench.clock.advance_ms(WORKER_ALIVE_MS - 1)
    assert bench.administration.status().applications[0].workers == 1
    bench.clock.advance_ms(1)
    assert bench.administration.status().applications[0].workers == 0


def test_a_worker_that_said_good_bye_does_not_count(bench: Bench) -> None:
    bench.renew()
    bench.run(bench.store.depart(bench.presence()))
    assert bench.administration.status().applications[0].workers == 0


@pytest.mark.parametrize("start", Admission)
@pytest.mark.parametrize("end", Admission)
def test_maintenance_is_reached_from_drain_alone(bench: Bench, start: Admission, end: Admission) -> None:
    bench.dispatch()
    if start is not Admission.OPEN:
        go_to(bench, start)
    if end is start or end in LEGAL_ADMISSIONS[start]:
        (status,) = bench.administration.set_admission(end, APPLICATION)
        assert (status.name, status.admission) == (APPLICATION, end)
        assert modes(bench) == {APPLICATION: end}
        return
    with pytest.raises(InvalidArgument, match=f'"{APPLICATION}" is in {start.value}') as refused:
        bench.administration.set_admission(end, APPLICATION)
    assert refused.value.code == "invalid_admission"
    assert modes(bench) == {APPLICATION: start}


def test_all_applications_change_together_or_not_at_all(bench: Bench) -> None:
    bench.dispatch()
    bench.dispatch(application="office")
    go_to(bench, Admission.DRAIN, "office")
    with pytest.raises(InvalidArgument) as refused:
        bench.administration.set_admission(Admission.MAINTENANCE, None)
    assert refused.value.code == "invalid_admission"
    assert modes(bench) == {"office": Admission.DRAIN, APPLICATION: Admission.OPEN}
    changed = bench.administration.set_admission(Admission.DRAIN, None)
    assert [status.name for status in changed] == ["office", APPLICATION]
    assert {status.admission for status in changed} == {Admission.DRAIN}
    bench.administration.set_admission(Admission.MAINTENANCE, None)
    assert set(modes(bench).values()) == {Admission.MAINTENANCE}


def test_an_application_that_never_came(bench: Bench) -> None:
    bench.dispatch()
    with pytest.raises(InvalidArgument, match='no application "yard"') as refused:
        bench.administration.set_admission(Admission.DRAIN, "yard")
    assert refused.value.code == "unknown_application"
    assert modes(bench) == {APPLICATION: Admission.OPEN}


def refusal_to_reidentify(bench: Bench) -> str:
    before = bench.administration.status().store_id
    with pytest.raises(InvalidArgument) as refused:
        bench.administration.reidentify()
    assert refused.value.code == "store_in_use"
    assert bench.administration.status().store_id == before
    return refused.value.message


def test_a_store_in_use_keeps_its_identity(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.renew()
    bench.dispatch(application="office")
    for mode in (Admission.OPEN, Admission.DRAIN):
        go_to(bench, mode)
        assert f"is in {mode.value}" in refusal_to_reidentify(bench)
    go_to(bench, Admission.MAINTENANCE, APPLICATION)
    assert '"office" is in drain' in refusal_to_reidentify(bench)
    go_to(bench, Admission.MAINTENANCE, "office")
    assert "1 leases that have not run out and 1 workers" in refusal_to_reidentify(bench)
    bench.clock.advance_ms(LEASE_MS)
    assert "0 leases that have not run out and 1 workers" in refusal_to_reidentify(bench)
    bench.clock.advance_ms(WORKER_ALIVE_MS)
    store_id = bench.administration.reidentify()
    assert bench.administration.status().store_id == store_id != bench.store.store_id
    assert attempt.job_id


def test_a_store_that_nobody_has_used_gets_another_identity(bench: Bench) -> None:
    before = bench.administration.status().store_id
    assert bench.administration.reidentify() != before
