"""Processes that are killed and a disk that fills up, for real."""

import itertools
import os
import resource
import signal
from pathlib import Path
from typing import Final

import pytest

from runwick.config.options import SqliteOptions
from runwick.contracts.controls import ControlAction
from runwick.contracts.dispatching import Command
from runwick.contracts.errors import OutcomeUnknown, StoreError
from runwick.contracts.states import JobState
from runwick.stores.sqlite.store import SqliteStore
from tests.conformance.ground import APPLICATION, HIGH, sqlite_bench
from tests.conformance.scene import READS
from tests.faults.failing_sqlite import KILLED, Fault, Saboteur
from tests.faults.sqlite_site import Opened, Site, on_open_store, state_of, undisturbed
from tests.faults.stage import Stage
from tests.faults.test_sqlite_faults import STATEMENTS, tried
from tests.sqlite.processes import Child, Peer

KILLS: Final = [Fault(KILLED, "killed", executed=executed) for executed in (False, True)]


def killed(saboteur: Saboteur, opened: Opened, path: Path, kill: Fault, number: int) -> bool:
    """Run the operation in a process that is killed at its n-th statement; False when it has fewer."""

    def work(peer: Peer) -> None:
        run, close = opened(path)
        saboteur.arm(kill, number)
        run()
        saboteur.disarm()
        close()

    child = Child(work)
    code = child.end()
    child.close()
    assert code in (0, KILLED)
    return code == KILLED


@pytest.mark.parametrize("name", sorted(set(STATEMENTS) - READS))
def test_a_process_that_is_killed_at_any_statement_leaves_nothing_half_done(
    saboteur: Saboteur, site: Site, stage: Stage, name: str
) -> None:
    opened = on_open_store(site, tried(stage)[name])
    normal = undisturbed(site, opened)
    kills = 0
    for kill in KILLS:
        for number in itertools.count(1):
            path = site.copy()
            if not killed(saboteur, opened, path, kill, number):
                break
            kills += 1
            found = state_of(path)
            assert found in (normal.before, normal.after)
            run, close = opened(path)
            assert run() == (normal.first if found == normal.before else normal.second)
            assert state_of(path) == normal.after
            close()
    assert kills == STATEMENTS[name] * len(KILLS)


def test_a_control_that_was_answered_outlives_its_process(tmp_path: Path) -> None:
    """Whatever is up: no worker is, and who asked is killed as soon as it has the answer."""
    bench = sqlite_bench(tmp_path)
    (waiting,), ended = bench.dispatch(), bench.dispatch(lane=HIGH)[0]
    bench.succeed(bench.claim(lanes=[HIGH]).attempts[0])
    orders = [bench.order(ControlAction.CANCEL, waiting), bench.order(ControlAction.RERUN, ended)]
    bench.store.close()

    def ask(peer: Peer) -> None:
        store = bench.another()
        peer.say([[answer.code for answer in store.run(store.control(order)).answers] for order in orders])
        os.kill(os.getpid(), signal.SIGKILL)

    with Child(ask) as child:
        assert child.hear() == [[None], [None]]
        assert child.end() == -signal.SIGKILL
    after = bench.another()
    try:
        assert [after.run(after.control(order)).replayed for order in orders] == [True, True]
        states = [after.run(after.job(APPLICATION, job_id)) for job_id in (waiting, ended)]
        assert [job and job.state for job in states] == [JobState.CANCELLED, JobState.PENDING]
    finally:
        after.close()


def dispatched_within(store: SqliteStore, command: Command, log: Path, more_bytes: int) -> str:
    """What is said of a dispatch when no file may grow beyond the log's length and this."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + more_bytes, hard))
    try:
        store.run(store.dispatch([command]))
    except StoreError:
        return "not applied"
    except OutcomeUnknown:
        return "unknown"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
    return "applied"


def test_a_disk_that_fills_up_never_makes_the_store_lie(tmp_path: Path) -> None:
    bench = sqlite_bench(tmp_path)
    bench.dispatch()
    bench.store.close()
    path = tmp_path / "jobs.db"

    def fill_it_up(peer: Peer) -> None:
        store = SqliteStore(path, options=SqliteOptions(), clock=bench.clock, ids=bench.ids)
        store.run(store.dispatch([bench.command()]))
        for step in range(24):
            command = bench.command(payload=b'"' + b"x" * 10_000 + b'"')
            said = dispatched_within(store, command, Path(f"{path}-wal"), step * 1_500)
            found = store.run(store.resolve(APPLICATION, command.operation_id))
            (receipt,) = store.run(store.dispatch([command]))  # there is room again
            peer.say([said, found is not None, store.run(store.resolve(APPLICATION, command.operation_id)) == receipt])
        store.close()

    with Child(fill_it_up) as child:
        heard = [child.hear() for _ in range(24)]
    assert {(said, was_there) for said, was_there, _ in heard} <= {
        ("not applied", False),
        ("unknown", False),
        ("unknown", True),
        ("applied", True),
    }
    assert {said for said, _, _ in heard} >= {"applied"}
    assert {said for said, _, _ in heard} & {"not applied", "unknown"}
    assert all(is_there_at_last for _, _, is_there_at_last in heard)
    after = bench.another()
    try:
        assert len(after.run(after.claim(bench.plan())).attempts) == 26
    finally:
        after.close()
