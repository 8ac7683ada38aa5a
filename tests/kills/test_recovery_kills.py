"""Recovery in a process of its own stands still, or is killed, at the worst moment: whoever is second changes nothing.

On PostgreSQL recovery reads, decides and then writes, and anybody gets in between. On SQLite it does all that under the
write lock: nobody gets in, unless it dies.
"""

import contextlib
import functools
import itertools
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from runwick.config.options import SqliteOptions
from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction
from runwick.contracts.history import EventKind
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.states import JobState
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeDice
from tests.conformance.ground import APPLICATION, LARGE, LEASE_MS, LONE, SUCCESS, Bench
from tests.kills.fire import wait_for
from tests.kills.stands import KILLED, Stand, each_kill, elsewhere
from tests.sqlite.processes import Child, Peer

DICE: Final = FakeDice()


def recovers(bench: Bench, before_each: Callable[[], object] = lambda: None) -> int:
    """A recovery pass through a store of this process's own; answers how many attempts it closed."""

    def decide(attempt: Attempt) -> Settlement:
        before_each()
        return recover(attempt, DICE)

    store = bench.another()
    return store.run(store.recover(APPLICATION, decide, 100))


def finishes(bench: Bench, attempt: Attempt) -> str:
    store = bench.another()
    (answer,) = store.run(store.settle([settle(attempt, SUCCESS, DICE)]))
    return str(answer)


@contextlib.contextmanager
def stopped_recovery(bench: Bench) -> Iterator[Child]:
    """A process that has read what to recover and, before it writes, is stopped; `go_on` lets it write."""

    def work(peer: Peer) -> None:
        def stand_still() -> None:
            peer.say("read")
            peer.hear()

        peer.say(recovers(bench, stand_still))

    with Child(work) as recovery:
        assert recovery.hear() == "read"
        stop(recovery)
        yield recovery


def stop(child: Child) -> None:
    os.kill(child.pid, signal.SIGSTOP)
    stopped = functools.partial(os.waitid, os.P_PID, child.pid, os.WSTOPPED | os.WNOHANG)
    wait_for(lambda: stopped() is not None, "a process to stand still")


def go_on(recovery: Child) -> int:
    os.kill(recovery.pid, signal.SIGCONT)
    recovery.say("write")
    closed: int = recovery.hear()
    return closed


def is_in_line(child: Child, bench: Bench) -> bool:
    """Whether it has asked for its turn to write, as the kernel's table of locks says."""
    assert isinstance(bench.store, SqliteStore)
    inode = Path(f"{bench.store.path}-turnstile").stat().st_ino
    locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(lock[3] == "WRITE" and lock[4] == str(child.pid) and lock[5].endswith(f":{inode}") for lock in locks)


def lapsed(bench: Bench, **changes: object) -> Attempt:
    attempt = bench.claimed(**changes)
    bench.clock.advance_ms(LEASE_MS)
    return attempt


between = pytest.mark.parametrize("stand", ["postgres"], indirect=True)
locked = pytest.mark.parametrize("stand", ["sqlite"], indirect=True)


@between
def test_f049_a_worker_that_finishes_while_recovery_stands_still_has_finished(stand: Stand) -> None:
    bench = stand.bench()
    attempt = lapsed(bench, policy=LONE)
    with stopped_recovery(bench) as recovery:
        assert elsewhere(lambda: finishes(bench, attempt)) == Answer.DONE
        before = bench.job(attempt.job_id), bench.events()
        assert go_on(recovery) == 0
    assert (bench.job(attempt.job_id), bench.events()) == before
    job = bench.job(attempt.job_id)
    assert (job.state, [record.outcome for record in job.attempts]) == (JobState.SUCCEEDED, ["succeeded"])


@between
@pytest.mark.parametrize("gives_back", [True, False], ids=["given back", "recovered by another"])
def test_f049_who_claims_again_while_recovery_stands_still_keeps_the_job(stand: Stand, gives_back: bool) -> None:
    """Even if its lease runs out too: that is nothing that the one which stood still has read."""
    bench = stand.bench()
    attempt = lapsed(bench)

    def gives_it_back() -> list[str]:
        store = bench.another()
        return [str(answer) for answer in store.run(store.release([attempt]))]

    with stopped_recovery(bench) as recovery:
        if gives_back:
            assert elsewhere(gives_it_back) == [Answer.DONE]
        else:
            assert elsewhere(lambda: recovers(bench)) == 1
            bench.clock.advance_ms(60_000)
        bench.worker = bench.ids.ordered()
        (again,) = bench.claim().attempts
        assert (again.job, again.number) == (attempt.job, 1 if gives_back else 2)
        bench.clock.advance_ms(LEASE_MS)
        before = bench.job(attempt.job_id), bench.events()
        assert go_on(recovery) == 0
    assert (bench.job(attempt.job_id), bench.events()) == before
    assert elsewhere(lambda: finishes(bench, attempt)) == Answer.NOT_YOURS
    assert elsewhere(lambda: finishes(bench, again)) == Answer.DONE
    outcomes = [record.outcome for record in bench.job(attempt.job_id).attempts]
    assert outcomes == (["succeeded"] if gives_back else ["abandoned", "succeeded"])


@locked
@pytest.mark.parametrize("dies", [True, False], ids=["dies", "goes on"])
def test_f049_nobody_gets_in_while_recovery_stands_still_unless_it_dies(stand: Stand, dies: bool) -> None:
    bench = stand.bench()
    attempt = lapsed(bench, policy=LONE)

    def finish(peer: Peer) -> None:
        peer.say("asks")
        peer.say(finishes(bench, attempt))

    with stopped_recovery(bench) as recovery, Child(finish) as worker:
        assert worker.hear() == "asks"
        wait_for(lambda: is_in_line(worker, bench), "the worker to wait for its turn to write")
        assert worker.silent()
        if dies:
            os.kill(recovery.pid, signal.SIGKILL)
            assert recovery.end() == KILLED
        else:
            assert go_on(recovery) == 1
        assert worker.hear() == (Answer.DONE if dies else Answer.NOT_YOURS)
    job = bench.job(attempt.job_id)
    outcome, state = ("succeeded", JobState.SUCCEEDED) if dies else ("abandoned", JobState.FAILED)
    assert (job.state, [record.outcome for record in job.attempts]) == (state, [outcome])
    assert elsewhere(lambda: recovers(bench)) == 0


@locked
def test_f049_a_recovery_that_stands_still_before_it_reads_finds_what_was_finished(stand: Stand) -> None:
    bench = stand.bench()
    attempt = lapsed(bench, policy=LONE)
    assert isinstance(bench.store, SqliteStore)
    path = bench.store.path

    def finish() -> str:
        """Whoever stands still in line is passed when the patience is over."""
        options = SqliteOptions(writer_busy_timeout=timedelta(milliseconds=100))
        store = SqliteStore(path, options=options, clock=bench.clock, ids=bench.ids)
        (answer,) = store.run(store.settle([settle(attempt, SUCCESS, DICE)]))
        return str(answer)

    def recover_when_told(peer: Peer) -> None:
        peer.hear()
        peer.say(recovers(bench))

    with Child(recover_when_told) as recovery:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            recovery.say("recover")
            wait_for(lambda: is_in_line(recovery, bench), "recovery to wait for the write lock")
            stop(recovery)
        assert elsewhere(finish) == Answer.DONE
        os.kill(recovery.pid, signal.SIGCONT)
        assert recovery.hear() == 0
    job = bench.job(attempt.job_id)
    assert (job.state, [record.outcome for record in job.attempts]) == (JobState.SUCCEEDED, ["succeeded"])


class Rescue:
    """Two attempts of a worker that is gone, one that has begun and one that has not; and what happens to them."""

    def __init__(self, stand: Stand) -> None:
        self.bench = stand.bench()
        self.bench.dispatch()
        self.bench.dispatch(payload=LARGE)
        self.attempts = self.bench.claim().attempts

    def happen(self, *steps: str) -> "Rescue":
        for step in steps:
            match step:
                case "lapse":
                    self.bench.clock.advance_ms(LEASE_MS)
                case "cancel":
                    elsewhere(self._cancel)
                case "recover":
                    elsewhere(self.recover)
        return self

    def recover(self) -> int:
        return recovers(self.bench)

    def check(self) -> None:
        """They end as cancelled, whoever comes by, and begin no more."""
        bench = self.bench
        self.happen("recover")
        for _ in range(3):
            bench.clock.advance_ms(LEASE_MS)
            assert bench.claim().attempts == []
            assert elsewhere(self.recover) == 0
        running, reserved = self.attempts
        assert bench.begin(reserved).attempt is None
        assert elsewhere(lambda: finishes(bench, running)) == Answer.NOT_YOURS
        jobs = [bench.job(attempt.job_id) for attempt in self.attempts]
        assert [(job.state, job.generation) for job in jobs] == [(JobState.CANCELLED, 1)] * 2
        assert [len(job.attempts) for job in jobs] == [1, 0]
        ends = [event.job_id for event in bench.events() if event.what is EventKind.JOB_ENDED]
        assert sorted(ends) == sorted(attempt.job_id for attempt in self.attempts)

    def _cancel(self) -> list[str | None]:
        store = self.bench.another()
        order = self.bench.order(ControlAction.CANCEL, *(attempt.job_id for attempt in self.attempts))
        codes = [answer.code for answer in store.run(store.control(order)).answers]
        assert codes == [None, None]
        return codes


@pytest.mark.parametrize("order", [*itertools.permutations(["lapse", "cancel", "recover"])], ids=" ".join)
def test_f050_cancelled_and_rescued_in_any_order_it_ends_cancelled_and_never_begins_again(
    stand: Stand, order: tuple[str, ...]
) -> None:
    """Whoever recovers lives, or is killed at any of its crossings."""
    Rescue(stand).happen(*order).check()
    place = order.index("recover")
    deaths = 0
    for _, _, rescue in each_kill(stand, lambda: Rescue(stand).happen(*order[:place]), Rescue.recover):
        rescue.happen(*order[place + 1 :]).check()
        deaths += 1
    assert deaths >= len(stand.crossings)
