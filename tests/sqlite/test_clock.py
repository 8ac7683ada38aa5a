"""The store's time never goes back: not in a process, and not from one process to the next."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.config.options import SqliteOptions
from runwick.contracts.activity import Beat
from runwick.contracts.attempts import Attempt, Begun
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.clock import PACE, StoreClock
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, Bench, held, sqlite_bench

HOUR_MS = 3_600_000
SCAN_MS = 5_000


@pytest.fixture
def host() -> FakeClock:
    return FakeClock()


@pytest.fixture
def clock(host: FakeClock) -> StoreClock:
    return StoreClock(host)


def test_it_goes_with_the_hosts_clock_forward_steps_too(host: FakeClock, clock: StoreClock) -> None:
    for passes_ms, steps_ms in ((1, 0), (0, HOUR_MS), (999, 0)):
        host.advance_ms(passes_ms)
        host.step_ms(steps_ms)
        assert clock.now_ms() == host.now_ms()
    assert clock.steady_s() == host.steady_s()


def test_set_back_it_goes_on_a_little_slower_until_they_meet(host: FakeClock, clock: StoreClock) -> None:
    before_ms = clock.now_ms()
    host.step_ms(-HOUR_MS)
    assert clock.now_ms() == before_ms
    host.advance_ms(60_000)
    assert clock.now_ms() == before_ms + int(60_000 * PACE)
    host.advance_ms(int(HOUR_MS / (1 - PACE)))
    assert clock.now_ms() == host.now_ms()


def test_a_time_that_others_have_seen_is_the_least(host: FakeClock, clock: StoreClock) -> None:
    clock.reach(host.now_ms() - 1)
    assert clock.now_ms() == host.now_ms()
    host.advance_ms(1_000)
    seen_ms = host.now_ms() + HOUR_MS
    clock.reach(seen_ms)
    assert clock.now_ms() == seen_ms
    clock.reach(seen_ms - 1)
    host.advance_ms(1_000)
    assert clock.now_ms() == seen_ms + int(1_000 * PACE)


@given(
    st.lists(
        st.tuples(st.sampled_from(["pass", "step", "reach"]), st.integers(-10_000, 10_000)), min_size=1, max_size=40
    )
)
def test_whatever_happens_to_the_host_it_never_goes_back(events: list[tuple[str, int]]) -> None:
    host = FakeClock()
    clock = StoreClock(host)
    last_ms = clock.now_ms()
    for kind, milliseconds in events:
        if kind == "pass":
            host.advance_ms(abs(milliseconds))
        elif kind == "step":
            host.step_ms(milliseconds)
        else:
            clock.reach(last_ms + milliseconds)
        assert clock.now_ms() >= max(last_ms, host.now_ms())
        last_ms = clock.now_ms()


def test_a_fork_while_a_thread_reads_it_leaves_a_clock_that_works(host: FakeClock, clock: StoreClock) -> None:
    before_ms = clock.now_ms()
    host.step_ms(-HOUR_MS)
    with clock._guard:
        child = os.fork()
        if child == 0:
            os._exit(0 if clock.now_ms() == before_ms else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    yield bench
    bench.store.close()


def process_beside(bench: Bench, *, ahead_ms: int) -> Bench:
    """Another process on the same file, started when the host's clock shows another time; its store is to be closed."""
    clock = FakeClock(bench.clock.now_ms() + ahead_ms)
    store = SqliteStore(_path(bench), options=SqliteOptions(), clock=clock, ids=bench.ids)
    return Bench("sqlite", store, clock, bench.administration, bench.another)


def beat(bench: Bench, *attempts: Attempt) -> Beat:
    return bench.run(bench.store.renew(bench.report(), held(*attempts), LEASE_MS, SCAN_MS))


def test_a_lease_that_has_run_out_stays_so_when_the_clock_is_set_back(bench: Bench) -> None:
    running, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    bench.clock.advance_ms(LEASE_MS)
    assert beat(bench, running).lost == {running.job}
    bench.clock.step_ms(-HOUR_MS)
    assert beat(bench, running).lost == {running.job}
    assert bench.begin(reserved) == Begun(None)
    assert len(bench.recover()) == 2


def test_a_process_that_starts_after_the_step_back_does_not_give_it_back_either(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    beat(bench)
    after = process_beside(bench, ahead_ms=-HOUR_MS)
    try:
        assert beat(after, attempt).lost == {attempt.job}
        assert after.store.now_ms() >= bench.clock.now_ms()
        assert len(after.recover()) == 1
    finally:
        after.store.close()


def test_a_dead_workers_jobs_need_not_wait_for_the_hour_to_pass_again(bench: Bench) -> None:
    """Without the time in the file, a lease written before the step would hold for an hour and a minute after it."""
    attempt = bench.claimed()
    beat(bench, attempt)
    after = process_beside(bench, ahead_ms=-HOUR_MS)
    try:
        assert after.recover() == []
        after.clock.advance_ms(int(LEASE_MS / PACE) + 1)
        assert len(after.recover()) == 1
    finally:
        after.store.close()


def test_a_good_bye_leaves_its_time_behind(bench: Bench) -> None:
    beat(bench)
    bench.clock.advance_ms(SCAN_MS)
    bench.run(bench.store.depart(bench.presence()))
    after = process_beside(bench, ahead_ms=-HOUR_MS)
    try:
        after.store.check()
        assert after.store.now_ms() >= bench.clock.now_ms()
    finally:
        after.store.close()


def test_a_jump_that_one_process_saw_is_the_others_time_from_the_next_heartbeat_on(bench: Bench) -> None:
    """Otherwise whoever saw it would take every lease of the others for expired as soon as it is written."""
    seer = process_beside(bench, ahead_ms=8 * HOUR_MS)
    try:
        beat(seer)
        seer.clock.step_ms(-8 * HOUR_MS)
        beat(bench)
        attempt = bench.claimed(deadline_ms=bench.store.now_ms())
        assert seer.recover() == []
        assert beat(bench, attempt).lost == frozenset()
    finally:
        seer.store.close()


def test_an_operator_is_told_how_far_they_are_apart(bench: Bench) -> None:
    beat(bench)
    bench.store.check()
    assert not any("set back" in note for note in bench.store.notes)
    bench.clock.step_ms(-HOUR_MS)
    bench.store.check()
    assert any("is 3,600 s ahead of this host's clock" in note for note in bench.store.notes)


def test_an_operator_counts_by_the_same_time(bench: Bench) -> None:
    bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    beat(bench)
    bench.clock.step_ms(-HOUR_MS)
    (status,) = SqliteAdministration(_path(bench), FakeClock(bench.clock.now_ms()), bench.ids).status().applications
    assert (status.name, status.leases, status.leases_valid, status.workers) == (APPLICATION, 1, 0, 1)


def _path(bench: Bench) -> Path:
    assert isinstance(bench.store, SqliteStore)
    return bench.store.path
