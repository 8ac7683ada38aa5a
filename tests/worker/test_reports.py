"""What a worker tells with each renewal call."""

import asyncio
from collections.abc import Sequence

import pytest

from runwick.contracts.activity import ExecutorActivity, StackAnswer, StackRequest
from runwick.contracts.attempts import Attempt, Kind
from runwick.contracts.errors import StoreUnavailable
from runwick.worker.timings import ACTIVITY_MAX, STACKS_MAX
from tests.worker.ground import KIND, Ground

AWAY = StoreUnavailable("store_unavailable", "away")


def running(ground: Ground, count: int = 1) -> Sequence[Attempt]:
    ground.dispatch(count)
    asyncio.run(ground.claimer.run_once())
    return list(ground.backend.held)


def poll(ground: Ground) -> None:
    ground.clock.advance_ms(900)
    asyncio.run(ground.heartbeat.run_once())


def lost(ground: Ground) -> None:
    """A call whose answer does not come."""
    ground.store.faults["renew"] = [AWAY]
    with pytest.raises(StoreUnavailable):
        poll(ground)


def executor(number: int, attempt: Attempt | None = None) -> ExecutorActivity:
    if attempt is None:
        return ExecutorActivity(number=number, pool="pool-1", phase="idle")
    return ExecutorActivity(number=number, pool="pool-1", phase="handle", attempt_id=attempt.attempt_id)


def test_what_executors_do_is_told_when_it_has_changed() -> None:
    ground = Ground(free=1)
    (attempt,) = running(ground)
    ground.backend.activity = [executor(1)]
    lost(ground)
    for _ in range(2):
        poll(ground)
    ground.backend.activity = [executor(1, attempt)]
    poll(ground)
    told = [report.executors for report in ground.store.reports]
    assert told == [[executor(1)], [executor(1)], None, [executor(1, attempt)]]
    (record,) = ground.store.run(ground.store.workers("reports"))
    assert record.executors == [executor(1, attempt)]


def test_of_many_executors_those_that_run_something_are_told() -> None:
    ground = Ground(free=1)
    (attempt,) = running(ground)
    idle = [executor(number) for number in range(ACTIVITY_MAX)]
    ground.backend.activity = [*idle, executor(ACTIVITY_MAX, attempt)]
    poll(ground)
    told = ground.store.reports[0].executors
    assert told is not None
    assert (len(told), told[0]) == (ACTIVITY_MAX, executor(ACTIVITY_MAX, attempt))


def test_that_a_run_has_begun_is_told_once_when_it_is_a_second_old() -> None:
    ground = Ground(free=3)
    (receipt,) = ground.dispatch(1)
    asyncio.run(ground.claimer.run_once())
    (attempt,) = ground.backend.held
    begun_at_ms = ground.clock.now_ms()
    ground.backend.mark(attempt, begun_at_ms)
    poll(ground)
    assert ground.job(receipt).begun_at_ms is None, "it is only handed over, as far as anybody knows"
    lost(ground)
    poll(ground)
    poll(ground)
    assert [len(report.marks) for report in ground.store.reports] == [0, 1, 1, 0]
    assert ground.job(receipt).begun_at_ms == begun_at_ms


def test_the_mark_of_a_run_whose_lease_is_lost_is_not_told() -> None:
    ground = Ground(free=1)
    (attempt,) = running(ground)
    ground.backend.mark(attempt, ground.clock.now_ms())
    ground.clock.advance_ms(50_000)
    asyncio.run(ground.watchdog.run_once())
    poll(ground)
    assert [list(report.marks) for report in ground.store.reports] == [[]]


def test_stacks_are_told_until_the_store_has_them() -> None:
    ground = Ground(free=1)
    (attempt,) = running(ground)
    answers = [StackAnswer(number.to_bytes(16), "in handle") for number in range(STACKS_MAX + 1)]
    ground.parts.asker.look([StackRequest(each.attempt_id, attempt.job, attempt.claim_token) for each in answers])
    for answer in answers:
        ground.sinks[0].looked(answer)
    lost(ground)
    for _ in range(3):
        poll(ground)
    told = [list(report.stacks) for report in ground.store.reports]
    assert told == [answers[:-1], answers[:-1], answers[-1:], []]


def test_a_stack_that_the_store_did_not_ask_for_stays_here() -> None:
    ground = Ground(free=1)
    running(ground)
    ground.sinks[0].looked(StackAnswer(bytes(16), "in handle"))
    poll(ground)
    assert [list(report.stacks) for report in ground.store.reports] == [[]]


def test_what_it_decodes_is_told_once_and_again_when_it_has_changed() -> None:
    ground = Ground()
    running(ground)
    lost(ground)
    for _ in range(2):
        poll(ground)
    other = Kind("reports.send", 2)
    ground.parts.serve(ground.parts.pools.served, frozenset({KIND, other}), [])
    poll(ground)
    told = [report.presence.kinds for report in ground.store.reports]
    assert told == [[KIND], [KIND], None, [KIND, other]]
    (record,) = ground.store.run(ground.store.workers("reports"))
    assert record.presence.kinds == [KIND, other]
