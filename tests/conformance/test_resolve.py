"""Resolve: what became of one operation, asked without sending anything."""

from runwick.contracts.administration import Admission
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, Bench


def test_an_operation_that_was_applied_answers_its_receipt(bench: Bench) -> None:
    command = bench.command()
    (receipt,) = bench.run(bench.store.dispatch([command]))
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) == receipt


def test_an_operation_that_was_not_applied_so_far(bench: Bench) -> None:
    command = bench.command()
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is None
    (receipt,) = bench.run(bench.store.dispatch([command]))
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) == receipt


def test_every_operation_of_a_batch_is_asked_for_by_its_own_id(bench: Bench) -> None:
    commands = [bench.command() for _ in range(3)]
    receipts = bench.run(bench.store.dispatch(commands))
    assert [bench.run(bench.store.resolve(APPLICATION, command.operation_id)) for command in commands] == receipts


def test_the_id_of_a_job_is_not_the_id_of_its_operation(bench: Bench) -> None:
    command = bench.command()
    bench.run(bench.store.dispatch([command]))
    assert bench.run(bench.store.resolve(APPLICATION, command.job_id)) is None


def test_a_job_that_another_operation_created_is_not_its_receipt(bench: Bench) -> None:
    command = bench.command()
    bench.run(bench.store.dispatch([bench.command(job_id=command.job_id)]))
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) is None


def test_an_application_does_not_learn_of_anothers_operations(bench: Bench) -> None:
    command = bench.command()
    bench.run(bench.store.dispatch([command]))
    assert bench.run(bench.store.resolve("office", command.operation_id)) is None


def test_the_receipt_outlives_deadline_and_end_of_the_job(bench: Bench) -> None:
    command = bench.command()
    (receipt,) = bench.run(bench.store.dispatch([command]))
    (attempt,) = bench.claim().attempts
    bench.succeed(attempt)
    bench.clock.advance_ms(10 * 24 * 60 * 60 * 1000)
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) == receipt
    assert bench.job(command.job_id).state is JobState.SUCCEEDED


def test_it_is_answered_in_maintenance(bench: Bench) -> None:
    command = bench.command()
    (receipt,) = bench.run(bench.store.dispatch([command]))
    bench.administration.set_admission(Admission.DRAIN, None)
    bench.administration.set_admission(Admission.MAINTENANCE, None)
    assert bench.run(bench.store.resolve(APPLICATION, command.operation_id)) == receipt
