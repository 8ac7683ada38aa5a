"""Register: a worker makes known what it serves, before the first job of that kind exists."""

import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.errors import AdmissionClosed
from tests.conformance.ground import APPLICATION, BUILD, HIGH, KINDS, LOW, MEDIUM, Bench
from tests.conformance.scene import NEW_KIND, NEW_LANE


def known(bench: Bench) -> list[str]:
    return [status.name for status in bench.administration.status().applications]


def test_it_makes_the_application_known(bench: Bench) -> None:
    bench.run(bench.store.register(APPLICATION, [HIGH, LOW], KINDS))
    assert known(bench) == [APPLICATION]
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)


def test_twice_is_once(bench: Bench) -> None:
    for _ in range(2):
        bench.run(bench.store.register(APPLICATION, [HIGH], frozenset({BUILD})))
    bench.run(bench.store.register(APPLICATION, [HIGH, MEDIUM], KINDS))
    assert known(bench) == [APPLICATION]
    assert bench.claim().attempts == []


def test_what_one_process_registered_another_dispatches_and_the_first_claims(bench: Bench) -> None:
    bench.run(bench.store.register(APPLICATION, [NEW_LANE], frozenset({NEW_KIND})))
    other = bench.another()
    try:
        command = bench.command(lane=NEW_LANE, kind=NEW_KIND)
        other.run(other.dispatch([command]))
    finally:
        other.close()
    (attempt,) = bench.claim(lanes=[NEW_LANE], kinds=frozenset({NEW_KIND})).attempts
    assert (attempt.job_id, attempt.lane, attempt.kind) == (command.job_id, NEW_LANE, NEW_KIND)


def test_a_drained_application_takes_no_new_worker(bench: Bench) -> None:
    bench.run(bench.store.register(APPLICATION, [HIGH], KINDS))
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    with pytest.raises(AdmissionClosed):
        bench.run(bench.store.register(APPLICATION, [HIGH], KINDS))
    bench.run(bench.store.register("office", [HIGH], KINDS))
    assert known(bench) == ["office", APPLICATION]
