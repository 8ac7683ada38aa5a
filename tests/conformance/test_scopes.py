"""Scopes: how many run at once, who waits outside the lanes for a place, and who is called in for one."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from runwick.contracts.administration import Admission
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.controls import SteerAction, SteerReply
from runwick.contracts.limits import PASSED_MAX, SCOPES_MAX, LimitKind
from runwick.contracts.outcomes import Answer
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Outlook
from runwick.policy.limit_ids import scope_id
from tests.conformance.ground import (
    APPLICATION,
    BUILD,
    FAILURE,
    HIGH,
    KINDS,
    LARGE,
    LEASE_MS,
    LOW,
    MEDIUM,
    SEND,
    Bench,
    capped,
    capped_type,
    ids_of,
    resource,
)

PRINTER, SCANNER = resource("printer"), resource("scanner")
LANES = (HIGH, MEDIUM, LOW)


def settle(bench: Bench, attempt: Attempt) -> None:
    assert bench.succeed(attempt) is Answer.DONE


def retry(bench: Bench, attempt: Attempt) -> None:
    assert bench.retry(attempt, delay_ms=3_600_000) is Answer.DONE


def fail(bench: Bench, attempt: Attempt) -> None:
    assert bench.settle(attempt, FAILURE, JobState.FAILED, code="handler_failed") is Answer.DONE


def cancel_and_release(bench: Bench, attempt: Attempt) -> None:
    bench.cancel(attempt.job_id)
    assert bench.release(attempt) == [Answer.CANCELLED]


def recover(bench: Bench, attempt: Attempt) -> None:
    bench.clock.advance_ms(LEASE_MS)
    assert ids_of(bench.recover(delay_ms=3_600_000)) == [attempt.job_id]


def recover_from_dead(bench: Bench, attempt: Attempt) -> None:
    assert ids_of(bench.recover(JobState.FAILED, code="lease_lost", worker=bench.worker)) == [attempt.job_id]


ENDS: list[Callable[[Bench, Attempt], None]] = [settle, retry, fail, cancel_and_release, recover, recover_from_dead]


def test_no_more_run_than_its_capacity_and_the_others_wait_outside_the_lanes(bench: Bench) -> None:
    jobs = bench.dispatch(5, scopes=(resource("printer", 2),))
    (plain,) = bench.dispatch()
    claim = bench.claim()
    assert ids_of(claim.attempts) == [*jobs[:2], plain]
    assert (claim.parked, claim.deferred, claim.again) == (3, 0, False)
    assert [attempt.holds for attempt in claim.attempts] == [1, 1, 0]
    assert [attempt.runs_ahead for attempt in claim.attempts] == [False, False, True]
    record = bench.scope("printer")
    assert (record.capacity, record.in_use, record.waiting, record.revision) == (2, 2, True, 1)
    nothing = bench.claim()
    assert (nothing.attempts, nothing.next_due_in_ms, nothing.parked) == ([], None, 0)
    bench.succeed(claim.attempts[1])
    assert bench.claim().attempts[0].job_id == jobs[2]
    assert bench.scope("printer").in_use == 2


def test_waiting_in_a_line_changes_nothing_that_people_see(bench: Bench) -> None:
    bench.claimed(scopes=(PRINTER,))
    (job_id,) = bench.dispatch(scopes=(PRINTER,))
    before, events = bench.job(job_id), bench.events()
    assert bench.claim().parked == 1
    assert bench.job(job_id) == before
    assert bench.events() == events
    outlook = bench.run(bench.store.outlook(APPLICATION, LANES, KINDS))
    assert outlook == Outlook(
        due=1, later=0, leased=1, undecodable=0, postponed=0, oldest_due_ms=0, blocked=1, paused=0
    )
    assert bench.cancel(job_id)[0].state is JobState.CANCELLED
    assert not bench.scope("printer").waiting


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ends_an_attempt_frees_its_places_once_and_calls_the_next_ones(
    bench: Bench, end: Callable[[Bench, Attempt], None]
) -> None:
    """F046, F095."""
    holder = bench.claimed(scopes=(PRINTER, SCANNER))
    next_print, next_scan = bench.dispatch(scopes=(PRINTER,)) + bench.dispatch(scopes=(SCANNER,))
    assert bench.claim().parked == 2
    end(bench, holder)
    assert [bench.scope(key).in_use for key in ("printer", "scanner")] == [0, 0]
    assert not bench.scope("printer").waiting
    assert ids_of(bench.claim().attempts) == [next_print, next_scan]
    bench.succeed(holder)
    assert bench.release(holder) == [Answer.NOT_YOURS]
    assert [bench.scope(key).in_use for key in ("printer", "scanner")] == [1, 1]


def test_a_released_job_stands_where_it_stood_and_its_place_is_anybodys(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    bench.dispatch(scopes=(PRINTER,))
    bench.claim()
    bench.release(holder)
    assert ids_of(bench.claim().attempts) == [holder.job_id]


def test_a_begin_that_closes_its_job_frees_its_places(bench: Bench) -> None:
    for ends in ("cancel_requested", "expired"):
        holder = bench.claimed(payload=LARGE, scopes=(PRINTER,), expires_in_ms=1_000)
        (waits,) = bench.dispatch(scopes=(PRINTER,))
        bench.claim()
        if ends == "expired":
            bench.clock.advance_ms(1_000)
        else:
            bench.cancel(holder.job_id)
        assert bench.begin(holder).ended == ends
        (attempt,) = bench.claim().attempts
        assert attempt.job_id == waits
        bench.succeed(attempt)
    assert bench.scope("printer").in_use == 0


def test_the_last_crash_of_a_job_frees_its_only_place(bench: Bench) -> None:
    """F046."""
    holder = bench.claimed(scopes=(PRINTER,), policy=JobPolicy(max_executions=1))
    (waits,) = bench.dispatch(scopes=(PRINTER,))
    bench.claim()
    bench.settle(holder, FAILURE, JobState.FAILED, code="executions_exhausted")
    assert ids_of(bench.claim().attempts) == [waits]


def test_all_or_none(bench: Bench) -> None:
    """A job that waits for one scope holds none of its others."""
    keys = [f"r{number}" for number in range(SCOPES_MAX)]
    full = min(keys, key=lambda key: scope_id(APPLICATION, LimitKind.RESOURCE, key))
    holder = bench.claimed(scopes=(resource(full),))
    (job_id,) = bench.dispatch(scopes=tuple(map(resource, keys)))
    assert bench.claim().parked == 1
    assert {record.key: record.in_use for record in bench.scopes()} == {key: int(key == full) for key in keys}
    bench.succeed(holder)
    (attempt,) = bench.claim().attempts
    assert (attempt.job_id, attempt.holds) == (job_id, SCOPES_MAX)
    assert {record.in_use for record in bench.scopes()} == {1}


def test_one_that_moves_on_to_another_line_passes_its_call_on(bench: Bench) -> None:
    first, second = sorted(("a", "b"), key=lambda key: scope_id(APPLICATION, LimitKind.RESOURCE, key))
    holders = [bench.claimed(scopes=(resource(key),)) for key in (first, second)]
    (both,) = bench.dispatch(scopes=(resource(first), resource(second)))
    (single,) = bench.dispatch(scopes=(resource(first),))
    assert bench.claim().parked == 2
    bench.succeed(holders[0])
    claim = bench.claim()
    assert (claim.attempts, claim.parked, list(claim.called_in_ms)) == ([], 1, [0])
    (attempt,) = bench.claim().attempts
    assert attempt.job_id == single
    bench.succeed(holders[1])
    assert bench.claim().parked == 1
    bench.succeed(attempt)
    assert ids_of(bench.claim().attempts) == [both]


@pytest.mark.parametrize("leaves", ["cancelled", "expired", "expired at its claim"])
def test_a_called_job_that_ends_instead_passes_its_call_on(bench: Bench, leaves: str) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    (called,) = bench.dispatch(scopes=(PRINTER,), expires_in_ms=1_000)
    heir, _ = bench.dispatch(2, scopes=(PRINTER,))
    assert bench.claim().parked == 3
    bench.succeed(holder)
    if leaves == "cancelled":
        bench.cancel(called)
    else:
        bench.clock.advance_ms(1_000)
        if leaves == "expired":
            bench.run(bench.store.expire(APPLICATION, 10))
        else:
            claim = bench.claim()
            assert (claim.attempts, list(claim.called_in_ms)) == ([], [0])
    assert bench.run(bench.store.expire(APPLICATION, 10)) == 0
    claim = bench.claim()
    assert (ids_of(claim.attempts), claim.parked) == ([heir], 0)


def test_a_line_serves_its_priorities_in_turn_and_each_in_order(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    lines = {lane: bench.dispatch(12, lane=lane, scopes=(PRINTER,)) for lane in LANES}
    while bench.claim().parked:
        pass
    served = []
    for _ in range(20):
        bench.succeed(holder)
        (holder,) = bench.claim().attempts
        served.append(holder.lane)
        assert lines[holder.lane].pop(0) == holder.job_id
    assert [lane.priority.value[0] for lane in served] == list("hmhlhmhhmh" * 2)


def test_ranks_that_are_empty_leave_their_turn_to_the_highest_that_is_not(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    for lane, count in ((MEDIUM, 1), (LOW, 2)):
        bench.dispatch(count, lane=lane, scopes=(PRINTER,))
    bench.claim()
    served = []
    for _ in range(3):
        bench.succeed(holder)
        (holder,) = bench.claim().attempts
        served.append(holder.lane)
    assert served == [MEDIUM, LOW, LOW]


def test_a_queue_and_a_type_are_limits_of_all_their_jobs_also_of_those_that_waited_before(bench: Bench) -> None:
    builds = bench.dispatch(2, lane=HIGH, kind=BUILD)
    sends = bench.dispatch(2, lane=HIGH, kind=SEND)
    needs = [capped("reports", 3), capped_type("mails.send", 1)]
    bench.run(bench.store.register(APPLICATION, [HIGH], KINDS, needs))
    claim = bench.claim()
    assert ids_of(claim.attempts) == [*builds, sends[0]]
    assert [attempt.holds for attempt in claim.attempts] == [1, 1, 2]
    assert not any(attempt.runs_ahead for attempt in claim.attempts)
    assert claim.parked == 1
    assert bench.scope("reports", LimitKind.QUEUE).in_use == 3
    assert bench.scope("mails.send", LimitKind.JOB_TYPE).in_use == 1
    bench.succeed(claim.attempts[0])
    bench.succeed(claim.attempts[2])
    assert ids_of(bench.claim().attempts) == [sends[1]]


def test_a_scope_that_comes_to_be_does_not_count_what_runs_already(bench: Bench) -> None:
    before = bench.claimed()
    bench.run(bench.store.register(APPLICATION, [MEDIUM], KINDS, [capped("reports", 1)]))
    after = bench.claimed()
    assert (before.holds, after.holds) == (0, 1)
    bench.succeed(before)
    assert bench.scope("reports", LimitKind.QUEUE).in_use == 1


def test_a_producer_creates_the_scopes_of_its_queue_and_type_as_well(bench: Bench) -> None:
    bench.dispatch(3, scopes=(capped("reports", 2), capped_type("reports.build", 1), PRINTER))
    assert (len(bench.claim().attempts), len(bench.claim().attempts)) == (1, 0)
    assert bench.scope("reports", LimitKind.QUEUE).capacity == 2
    assert bench.scope("reports.build", LimitKind.JOB_TYPE).in_use == 1


def test_a_resource_is_shared_by_all_types_of_an_application_and_by_no_other(bench: Bench) -> None:
    bench.dispatch(kind=BUILD, scopes=(PRINTER,))
    bench.dispatch(kind=SEND, scopes=(PRINTER,))
    bench.dispatch(application="office", scopes=(PRINTER,))
    assert (len(bench.claim().attempts), len(bench.claim(application="office").attempts)) == (1, 1)


def test_a_scope_that_is_there_keeps_its_capacity_whatever_is_declared(bench: Bench) -> None:
    needs = [capped("reports", 2), capped_type("mails.send", 4), resource("printer", 1)]
    bench.run(bench.store.register(APPLICATION, [HIGH], KINDS, needs))
    others = [capped("reports", 9), capped_type("mails.send", 4), resource("printer", 3)]
    bench.run(bench.store.register(APPLICATION, [HIGH], KINDS, others))
    assert bench.scope("reports", LimitKind.QUEUE).capacity == 2
    bench.dispatch(3, scopes=(resource("printer", 7),))
    assert len(bench.claim().attempts) == 1
    assert bench.scope("printer").capacity == 1


def test_a_capacity_is_changed_live_by_an_operator(bench: Bench) -> None:
    jobs = bench.dispatch(6, scopes=(PRINTER,))
    (holder,) = bench.claim().attempts
    command = bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", capacity=3, reason="a new tray")
    assert bench.steer(command) == SteerReply(None, 2, "1", "3")
    assert bench.steer(command) == SteerReply(None, 2, "1", "3", replayed=True)
    second, third = bench.claim().attempts
    assert ids_of([second, third]) == jobs[1:3]
    record = bench.scope("printer")
    assert (record.capacity, record.in_use, record.revision) == (3, 3, 2)
    (audit,) = bench.audit()
    assert (audit.action, audit.target, audit.before, audit.after) == ("set_capacity", "resource printer", "1", "3")
    assert (audit.reason, audit.job_id, audit.command_id) == ("a new tray", None, command.command_id)
    assert bench.limit("printer", 1).code is None
    assert bench.scope("printer").in_use == 3
    for attempt in (holder, second):
        bench.succeed(attempt)
        assert bench.claim().attempts == []
    bench.succeed(third)
    assert ids_of(bench.claim().attempts) == [jobs[3]]


def test_a_capacity_that_does_not_stand_as_seen_is_not_changed(bench: Bench) -> None:
    assert bench.limit("printer", 2, expected_revision=1) == SteerReply("not_found")
    bench.dispatch(scopes=(PRINTER,))
    assert bench.limit("printer", 2, expected_revision=2) == SteerReply("stale_revision", 1, "1")
    assert bench.limit("printer", 1) == SteerReply("invalid_state", 1, "1")
    assert bench.limit("printer", 2, LimitKind.QUEUE, expected_revision=1) == SteerReply("not_found")
    assert bench.audit() == []
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    assert bench.limit("printer", 2).code is None


def test_raising_calls_as_many_as_there_is_room_for(bench: Bench) -> None:
    jobs = bench.dispatch(5, scopes=(resource("printer", 3),))
    taken = bench.claim().attempts
    bench.limit("printer", 1)
    bench.limit("printer", 4)
    assert ids_of(bench.claim().attempts) == [jobs[3]]
    assert (len(taken), bench.scope("printer").in_use) == (3, 4)


def test_a_claim_sent_again_gets_what_it_got(bench: Bench) -> None:
    bench.dispatch(2, scopes=(PRINTER, SCANNER), payload=LARGE)
    plan = bench.plan()
    first, again = (bench.run(bench.store.claim(plan)) for _ in range(2))
    assert again.attempts == first.attempts
    assert (first.parked, again.parked) == (1, 0)
    assert (again.attempts[0].holds, bench.scope("printer").in_use) == (2, 1)


def test_the_same_resource_twice_is_held_once(bench: Bench) -> None:
    attempt = bench.claimed(scopes=(PRINTER, PRINTER))
    assert (attempt.holds, bench.scope("printer").in_use) == (1, 1)
    bench.succeed(attempt)
    assert bench.scope("printer").in_use == 0


def test_a_limited_job_needs_an_executor_that_waits(bench: Bench) -> None:
    (plain,) = bench.dispatch()
    bench.dispatch(scopes=(PRINTER,))
    bench.dispatch()
    claim = bench.claim(free=1, ahead=5)
    assert (ids_of(claim.attempts), claim.stopped_at_lone) == ([plain], True)
    assert bench.scope("printer").in_use == 0


def test_what_meets_a_full_scope_ends_no_claim(bench: Bench) -> None:
    bench.claimed(scopes=(PRINTER,))
    bench.dispatch(scopes=(PRINTER,))
    (plain,) = bench.dispatch()
    claim = bench.claim(free=0, ahead=5)
    assert (ids_of(claim.attempts), claim.parked, claim.stopped_at_lone) == ([plain], 1, False)


def test_one_call_moves_so_many_aside_and_says_to_ask_again(bench: Bench) -> None:
    bench.claimed(scopes=(PRINTER,))
    for _ in range(4):
        bench.dispatch(100, lane=MEDIUM, scopes=(PRINTER,))
    (behind,) = bench.dispatch(lane=MEDIUM)
    parked = []
    for _ in range(10):
        claim = bench.claim(lanes=[MEDIUM], free=8)
        parked.append(claim.parked)
        if not claim.again:
            break
        assert claim.attempts == []
    assert ids_of(claim.attempts) == [behind]
    assert (sum(parked), max(parked) <= PASSED_MAX) == (400, True)
    assert bench.run(bench.store.outlook(APPLICATION, LANES, KINDS)).blocked == 400


def test_a_batch_of_ends_frees_each_place_and_calls_as_many(bench: Bench) -> None:
    bench.dispatch(9, scopes=(resource("printer", 3),))
    taken = bench.claim().attempts
    answers = bench.release(*taken, *taken)
    assert answers == [Answer.DONE] * 3 + [Answer.NOT_YOURS] * 3
    assert bench.scope("printer").in_use == 0
    assert len(bench.claim().attempts) == 3
    assert bench.scope("printer").in_use == 3


def test_scopes_are_read_by_id_page_by_page_and_by_kind(bench: Bench) -> None:
    bench.dispatch(scopes=(capped("reports", 9), *(resource(f"r{number}") for number in range(5))))
    bench.dispatch(application="office", scopes=(resource("r0"),))
    pages: list[Any] = []
    after = None
    for _ in range(3):
        page = bench.run(bench.store.scopes(APPLICATION, LimitKind.RESOURCE, after, 2))
        pages.append(page)
        after = page[-1].id
    assert [len(page) for page in pages] == [2, 2, 1]
    ids = [record.id for record in itertools.chain(*pages)]
    assert ids == sorted(scope_id(APPLICATION, LimitKind.RESOURCE, f"r{number}") for number in range(5))
    assert [record.key for record in bench.scopes(LimitKind.QUEUE)] == ["reports"]
    assert bench.scopes(LimitKind.JOB_TYPE) == []


def test_a_job_of_another_queue_waits_in_the_same_line(bench: Bench) -> None:
    mails = Lane("mails", Priority.MEDIUM)
    holder = bench.claimed(scopes=(PRINTER,))
    (first,) = bench.dispatch(lane=mails, scopes=(PRINTER,))
    (second,) = bench.dispatch(lane=MEDIUM, scopes=(PRINTER,))
    assert bench.claim(lanes=[MEDIUM, mails]).parked == 2
    for expected in (first, second):
        bench.succeed(holder)
        (holder,) = bench.claim(lanes=[MEDIUM, mails]).attempts
        assert holder.job_id == expected


def test_a_conflict_and_a_reuse_create_no_scope(bench: Bench) -> None:
    bench.dispatch(active_key="a")
    bench.dispatch(active_key="a", scopes=(PRINTER,))
    assert bench.scopes() == []
