"""Rate windows: how many begin within a window of time, to the millisecond, and when whoever is refused comes again."""

import itertools
import random
from collections import Counter
from typing import Final

import pytest

from runwick.contracts.administration import Capability
from runwick.contracts.attempts import Attempt
from runwick.contracts.errors import StoreError
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import DEFER_JITTER_MS, DEFER_MIN_MS, LimitKind
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.states import JobState
from runwick.policy.limit_ids import rate_id
from tests.conformance.ground import (
    APPLICATION,
    BUILD,
    HIGH,
    KINDS,
    LARGE,
    LONE,
    LOW,
    MEDIUM,
    SEND,
    SUCCESS,
    Bench,
    ids_of,
    resource,
    type_window,
    window,
)

_STEP_MS: Final = 25
"""How often a worker looks, in the store's own time."""


def jitter_ms(job_id: bytes) -> int:
    return job_id[-1] % (DEFER_JITTER_MS + 1)


def test_no_more_begin_within_a_window_and_the_next_when_the_first_has_left(bench: Bench) -> None:
    jobs = bench.dispatch(5, rates=(window("provider", 2),))
    claim = bench.claim()
    assert ids_of(claim.attempts) == jobs[:2]
    assert (claim.deferred, claim.parked, list(claim.called_in_ms)) == (2, 1, [1_000, 1_000])
    due_ms = bench.clock.now_ms() + 1_000
    assert [bench.job(job_id).due_at_ms for job_id in jobs[2:4]] == [due_ms, due_ms]
    record = bench.rate("provider")
    assert (record.max_executions, record.window_ms) == (2, 1_000)
    assert (record.granted, record.in_window, record.waiting) == (2, 2, True)
    bench.clock.advance_ms(999)
    waits = bench.claim()
    assert (waits.attempts, waits.next_due_in_ms) == ([], 1)
    bench.clock.advance_ms(1)
    assert bench.rate("provider").in_window == 0
    claim = bench.claim()
    assert ids_of(claim.attempts) == jobs[2:4]
    assert list(claim.called_in_ms) == [1_000]
    assert not bench.rate("provider").waiting
    bench.clock.advance_ms(1_000)
    assert ids_of(bench.claim().attempts) == jobs[4:]


def test_a_window_rolls(bench: Bench) -> None:
    """Grants leave it one by one as they came, not all at the end of a period."""
    bench.dispatch(6, rates=(window("provider", 3),))
    begun: list[int] = []
    start_ms = bench.clock.now_ms()
    for free in (1, 1, 1, 9, 9, 9):
        taken = bench.claim(free=free).attempts
        begun += [bench.clock.now_ms() - start_ms] * len(taken)
        bench.clock.advance_ms(100 if free == 1 else 400)
    while len(begun) < 6:
        taken = bench.claim().attempts
        begun += [bench.clock.now_ms() - start_ms] * len(taken)
        bench.clock.advance_ms(10)
    assert begun[:3] == [0, 100, 200]
    assert all(later - earlier >= 1_000 for earlier, later in zip(begun, begun[3:], strict=False))
    assert begun[3] <= 1_100


def test_refusing_costs_nothing_and_is_seen_in_the_due_time_alone(bench: Bench) -> None:
    bench.dispatch(rates=(window("provider", 1),))
    (job_id,) = bench.dispatch(rates=(window("provider", 1),), expires_in_ms=60_000)
    before, events = bench.job(job_id), bench.events()
    bench.claim()
    after = bench.job(job_id)
    assert after.due_at_ms == bench.clock.now_ms() + 1_000
    assert (after.state, after.revision, after.executions) == (JobState.PENDING, before.revision, 0)
    assert (after.expires_at_ms, after.attempts, bench.events()) == (before.expires_at_ms, [], events)


def test_a_refused_job_comes_back_after_a_quarter_of_a_second_and_its_jitter_at_the_earliest(bench: Bench) -> None:
    bench.dispatch(2, rates=(window("provider", 2),))
    bench.claim()
    bench.clock.advance_ms(900)
    refused = bench.dispatch(2, rates=(window("provider", 2),))
    assert bench.claim().deferred == 2
    for job_id in refused:
        assert bench.job(job_id).due_at_ms == bench.clock.now_ms() + DEFER_MIN_MS + jitter_ms(job_id)


def test_what_a_full_window_put_off_counts_as_put_off_until_it_has_begun(bench: Bench) -> None:
    bench.dispatch(4, rates=(window("provider", 2),))
    for attempt in bench.claim().attempts:
        bench.succeed(attempt)
    outlook = bench.run(bench.store.outlook(APPLICATION, [HIGH, MEDIUM, LOW], KINDS))
    assert (outlook.due, outlook.later, outlook.postponed, outlook.blocked) == (0, 2, 2, 0)
    bench.clock.advance_ms(1_000)
    assert len(bench.claim().attempts) == 2
    outlook = bench.run(bench.store.outlook(APPLICATION, [HIGH, MEDIUM, LOW], KINDS))
    assert (outlook.due, outlook.later, outlook.postponed, outlook.blocked) == (0, 0, 0, 0)


def test_each_in_a_backlog_is_moved_once_into_the_line_and_once_out(bench: Bench) -> None:
    jobs = bench.dispatch(40, rates=(window("provider", 4),))
    parked = deferred = 0
    order: list[bytes] = []
    for _ in range(10):
        claim = bench.claim()
        order += ids_of(claim.attempts)
        parked, deferred = parked + claim.parked, deferred + claim.deferred
        assert bench.claim().attempts == []
        bench.clock.advance_ms(1_000)
    assert (order, parked, deferred) == (jobs, 32, 4)


def test_a_line_of_a_window_serves_its_priorities_in_turn(bench: Bench) -> None:
    bench.dispatch(3, rates=(window("provider", 1),))
    bench.dispatch(3, lane=LOW, rates=(window("provider", 1),))
    served = []
    for _ in range(6):
        served += [attempt.lane for attempt in bench.claim().attempts]
        bench.clock.advance_ms(1_000)
    assert served == [MEDIUM, MEDIUM, MEDIUM, LOW, LOW, LOW]


def test_a_charge_is_never_refunded_and_each_try_needs_its_own(bench: Bench) -> None:
    attempt = bench.claimed(rates=(window("provider", 2),))
    assert bench.release(attempt) == [Answer.DONE]
    (attempt,) = bench.claim().attempts
    bench.retry(attempt, delay_ms=0)
    claim = bench.claim()
    assert (claim.attempts, claim.deferred, bench.rate("provider").granted) == ([], 1, 2)
    bench.clock.advance_ms(1_000)
    assert len(bench.claim().attempts) == 1


def test_a_large_payload_comes_with_the_claim_for_that_is_where_it_is_charged(bench: Bench) -> None:
    attempt = bench.claimed(payload=LARGE, rates=(window("provider", 1),))
    assert (attempt.begun, attempt.payload, attempt.execution) == (True, LARGE, 1)
    assert bench.job(attempt.job_id).state is JobState.RUNNING
    assert not attempt.runs_ahead
    begun = bench.begin(attempt).attempt
    assert begun is not None
    assert (begun.execution, begun.payload) == (1, LARGE)
    assert bench.rate("provider").granted == 1


def test_large_payloads_end_a_claim_by_their_bytes_before_they_are_charged(bench: Bench) -> None:
    bench.dispatch(3, payload=LARGE, rates=(window("provider", 9),))
    assert len(bench.claim(payload_bytes=2 * len(LARGE)).attempts) == 2
    assert bench.rate("provider").granted == 2


def test_all_windows_or_none(bench: Bench) -> None:
    """Whom one refuses is charged to no other."""
    minute, second = window("provider", 3, 60_000), window("provider", 1)
    bench.dispatch(5, rates=(minute, second))
    for granted in (1, 2, 3, 3, 3):
        bench.claim()
        assert {(rate.window_ms, rate.granted) for rate in bench.rates()} == {(1_000, granted), (60_000, granted)}
        bench.clock.advance_ms(1_000)
    bench.clock.advance_ms(55_000)
    assert len(bench.claim().attempts) == 1


def test_whom_a_scope_keeps_out_is_charged_nothing_and_uses_up_no_promise(bench: Bench) -> None:
    holder = bench.claimed(scopes=(resource("printer"),))
    (blocked,) = bench.dispatch(scopes=(resource("printer"),), rates=(window("provider", 1),))
    claim = bench.claim()
    assert (claim.parked, claim.deferred, bench.rate("provider").granted) == (1, 0, 0)
    bench.succeed(holder)
    assert ids_of(bench.claim().attempts) == [blocked]


def test_whom_a_window_keeps_out_holds_nothing(bench: Bench) -> None:
    bench.succeed(bench.claimed(rates=(window("provider", 1),)))
    bench.dispatch(scopes=(resource("printer"),), rates=(window("provider", 1),))
    assert bench.claim().deferred == 1
    assert bench.scope("printer").in_use == 0
    (plain,) = bench.dispatch(scopes=(resource("printer"),))
    assert ids_of(bench.claim().attempts) == [plain]


def test_a_promised_job_that_meets_a_full_scope_passes_its_room_on(bench: Bench) -> None:
    bench.succeed(bench.claimed(rates=(window("provider", 1),)))
    (both,) = bench.dispatch(scopes=(resource("printer"),), rates=(window("provider", 1),))
    (waits,) = bench.dispatch(rates=(window("provider", 1),))
    claim = bench.claim()
    assert (claim.deferred, claim.parked) == (1, 1)
    holder = bench.claimed(scopes=(resource("printer"),))
    bench.clock.advance_ms(1_000)
    claim = bench.claim()
    assert (claim.attempts, claim.parked, list(claim.called_in_ms)) == ([], 1, [0])
    assert ids_of(bench.claim().attempts) == [waits]
    bench.clock.advance_ms(1_000)
    bench.succeed(holder)
    assert ids_of(bench.claim().attempts) == [both]


@pytest.mark.parametrize("leaves", ["cancelled", "expired"])
def test_a_promise_whose_job_ends_is_passed_on_with_its_time(bench: Bench, leaves: str) -> None:
    bench.succeed(bench.claimed(rates=(window("provider", 1, 5_000),)))
    (promised,) = bench.dispatch(rates=(window("provider", 1, 5_000),), expires_in_ms=2_000)
    (heir,) = bench.dispatch(rates=(window("provider", 1, 5_000),))
    bench.claim()
    due_ms = bench.job(promised).due_at_ms
    assert due_ms == bench.clock.now_ms() + 5_000
    if leaves == "cancelled":
        bench.cancel(promised)
    else:
        bench.clock.advance_ms(2_000)
        assert bench.run(bench.store.expire(APPLICATION, 10)) == 1
    assert bench.job(heir).due_at_ms == due_ms
    assert not bench.rate("provider").waiting


def test_a_promise_that_nobody_inherits_is_given_to_the_next_one_refused(bench: Bench) -> None:
    bench.succeed(bench.claimed(rates=(window("provider", 1, 5_000),)))
    (promised,) = bench.dispatch(rates=(window("provider", 1, 5_000),))
    bench.claim()
    due_ms = bench.job(promised).due_at_ms
    bench.cancel(promised)
    (next_one,) = bench.dispatch(rates=(window("provider", 1, 5_000),))
    assert bench.claim().deferred == 1
    assert bench.job(next_one).due_at_ms == due_ms


def test_a_type_has_one_window_whose_limit_is_the_stores(bench: Bench) -> None:
    first = type_window("reports.build", 2)
    bench.dispatch(2, rates=(first,))
    bench.dispatch(rates=(type_window("reports.build", 50, 60_000),))
    bench.dispatch(kind=SEND, rates=(type_window("mails.send", 1),))
    assert len(bench.claim().attempts) == 3
    (record,) = (rate for rate in bench.rates(LimitKind.JOB_TYPE) if rate.key == BUILD.name)
    assert (record.max_executions, record.window_ms) == (2, 1_000)
    assert record.id == rate_id(APPLICATION, LimitKind.JOB_TYPE, BUILD.name, None)
    assert bench.rates() == []


def test_a_resource_may_have_windows_of_several_lengths_shared_by_all_types(bench: Bench) -> None:
    short, long = window("provider", 5), window("provider", 2, 60_000)
    bench.dispatch(rates=(short, long))
    bench.dispatch(kind=SEND, rates=(long,))
    bench.dispatch(rates=(short, long))
    assert len(bench.claim().attempts) == 2
    assert [rate.id for rate in bench.rates()] == sorted(
        rate_id(APPLICATION, LimitKind.RESOURCE, "provider", length) for length in (1_000, 60_000)
    )
    assert bench.run(bench.store.rates(APPLICATION, LimitKind.RESOURCE, bench.rates()[0].id, 9)) == bench.rates()[1:]


def test_the_same_window_twice_is_charged_once(bench: Bench) -> None:
    bench.dispatch(rates=(window("provider", 5), window("provider", 5)))
    bench.claim()
    assert bench.rate("provider").granted == 1


def test_a_job_with_windows_never_runs_ahead(bench: Bench) -> None:
    bench.dispatch(rates=(window("provider", 5),))
    claim = bench.claim(free=0, ahead=3)
    assert (claim.attempts, claim.stopped_at_lone) == ([], True)
    assert bench.rate("provider").granted == 0


def test_who_is_cancelled_while_it_runs_has_been_charged(bench: Bench) -> None:
    attempt = bench.claimed(rates=(window("provider", 1),), policy=LONE)
    bench.cancel(attempt.job_id)
    assert bench.release(attempt) == [Answer.CANCELLED]
    bench.dispatch(rates=(window("provider", 1),))
    assert bench.claim().deferred == 1


def test_a_clock_that_goes_back_lets_nobody_begin_too_early_and_stops_nobody_for_long(bench: Bench) -> None:
    bench.dispatch(2, rates=(window("provider", 2),))
    begun_ms = [0] * len(bench.claim().attempts)
    bench.clock.advance_ms(400)
    deadline_ms = bench.clock.now_ms() + 1_000
    bench.clock.step_ms(-3_600_000)
    bench.clock.advance_ms(0)
    bench.dispatch(4, rates=(window("provider", 2),), deadline_ms=deadline_ms)
    for real_ms in range(400, 4_500, 20):
        begun_ms += [real_ms] * len(bench.claim().attempts)
        bench.clock.advance_ms(20)
    assert len(begun_ms) == 6
    assert all(later - earlier >= 1_000 for earlier, later in zip(begun_ms, begun_ms[2:], strict=False))


def test_a_window_of_a_hundred_thousand_and_of_a_day(bench: Bench) -> None:
    bench.dispatch(3, rates=(window("bulk", 100_000, 86_400_000), window("daily", 2, 86_400_000)))
    claim = bench.claim()
    assert (len(claim.attempts), list(claim.called_in_ms)) == (2, [86_400_000])
    assert bench.rate("bulk").granted == 2
    bench.clock.advance_ms(86_400_000)
    assert len(bench.claim().attempts) == 1


def test_two_processes_share_a_window(bench: Bench) -> None:
    other = bench.another()
    try:
        bench.dispatch(6, rates=(window("provider", 3),))
        taken = bench.claim(free=2).attempts + other.run(other.claim(bench.plan())).attempts
        assert len(taken) == 3
    finally:
        other.close()


def test_an_application_without_the_capability_takes_no_jobs_with_windows(bench: Bench) -> None:
    bench.dispatch(lane=LOW)
    bench.take_capabilities()
    limited = bench.command(rates=(window("provider", 1),))
    with pytest.raises(StoreError, match="rate windows") as refused:
        bench.send(bench.command(), limited)
    assert refused.value.code == "rate_admission_not_active"
    assert len(bench.claim().attempts) == 1
    assert bench.rates() == []
    bench.dispatch(scopes=(resource("printer"),))
    assert bench.administration.activate(Capability.RATE_ADMISSION, APPLICATION, "operator")
    assert [receipt.job for receipt in bench.send(limited)] == [job_of_operation(limited.operation_id)]
    assert len(bench.claim().attempts) == 2
    assert [record.action for record in bench.audit()] == ["activate_capability"]


def test_the_next_due_time_is_that_of_a_promise(bench: Bench) -> None:
    bench.dispatch(2, rates=(window("provider", 1),))
    bench.claim()
    assert bench.claim().next_due_in_ms == 1_000


def test_promises_are_exact_however_claims_fall(bench: Bench) -> None:
    """24 per second over a backlog, claimed now and then: each window full, none too full."""
    for _ in range(2):
        bench.dispatch(100, rates=(window("provider", 24),))
    begun: list[int] = []
    for now_ms, step_ms in zip(range(5_000), itertools.cycle((7, 13, 3)), strict=False):
        begun += [bench.clock.now_ms()] * len(bench.claim(free=8).attempts)
        bench.clock.advance_ms(step_ms)
        if len(begun) == 200 or now_ms > 1_400:
            break
    assert len(begun) == 200
    assert all(later - earlier >= 1_000 for earlier, later in zip(begun, begun[24:], strict=False))
    assert begun[-1] - begun[0] <= 8_000 * 1.05


@pytest.mark.parametrize("concurrency", [2, 5, 8])
def test_f098_three_workers_never_idle_while_a_window_has_room(bench: Bench, concurrency: int) -> None:
    """24 a second over a long backlog, on three processes that end and claim as it comes."""
    others = [bench.another() for _ in range(2)]
    stores = [bench.store, *others]
    workers = [bench.ids.ordered() for _ in stores]
    for _ in range(10):
        bench.dispatch(100, rates=(window("provider", 24),))
    dice = random.Random(concurrency)
    running: list[list[tuple[int, Attempt]]] = [[] for _ in stores]
    begun: list[int] = []
    try:
        for _ in range(3_500 // _STEP_MS):
            now_ms = bench.clock.now_ms()
            for store, worker, runs in zip(stores, workers, running, strict=True):
                ended = [attempt for end_ms, attempt in runs if end_ms <= now_ms]
                store.run(store.settle([Settlement(each, SUCCESS, JobState.SUCCEEDED) for each in ended]))
                runs[:] = [run for run in runs if run[0] > now_ms]
                if free := concurrency - len(runs):
                    taken = store.run(store.claim(bench.plan(free=free, worker=worker))).attempts
                    runs += [(now_ms + dice.randrange(20, 150), attempt) for attempt in taken]
                    begun += [now_ms] * len(taken)
            bench.clock.advance_ms(_STEP_MS)
    finally:
        for store in others:
            store.close()
    first_ms = begun[0]
    assert all(late - early >= 1_000 for early, late in zip(begun, begun[24:], strict=False))
    of_second = Counter((at_ms - first_ms) // 1_000 for at_ms in begun)
    assert all(of_second[second] >= 22 for second in (1, 2)), of_second
