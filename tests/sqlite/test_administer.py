"""What is SQLite's own in administration: its write lock, other revisions, the audit rows, older stores."""

import asyncio
import datetime
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runwick.contracts.administration import Admission, ApplicationStatus, Capability, StoreStatus
from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import AdmissionClosed, MigrationError, StoreNotInstalled, StoreProfileMismatch
from runwick.contracts.identity import id_bytes
from runwick.contracts.stores import Act
from runwick.stores.sqlite import opening
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.clock import StoreClock
from runwick.stores.sqlite.gate import Gate
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import REVISION
from runwick.stores.sqlite.store import SqliteStore
from runwick.stores.steps import Step
from tests.ambient import FakeClock, FakeIds
from tests.conformance.ground import APPLICATION, LEASE_MS, Bench, held, sqlite_bench
from tests.sqlite import revision_1
from tests.sqlite.places import a_driver, add, migrated
from tests.sqlite.processes import DEADLINE_S, Child, Peer, open_files


def administration(path: Path, *, lock_wait_ms: int = 20_000) -> SqliteAdministration:
    wait = datetime.timedelta(milliseconds=lock_wait_ms)
    return SqliteAdministration(path, FakeClock(), FakeIds(100), lock_wait=wait)


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def inside_a_transaction(path: Path) -> Callable[[Peer], None]:
    """A process whose act was admitted, and that stays in its transaction until it hears something."""

    def work(peer: Peer) -> None:
        def steps() -> Generator[Step, Any, None]:
            yield Step("intern_application", ("office",))
            peer.say("inside")
            peer.hear()

        a_driver(path).run(Act("dispatch", steps))
        peer.say("committed")

    return work


def changes(path: Path, *, lock_wait_ms: int) -> list[Callable[[], object]]:
    operator = administration(path, lock_wait_ms=lock_wait_ms)
    return [
        lambda: operator.set_admission(Admission.DRAIN, None),
        lambda: operator.activate(Capability.SCHEDULER, "shop", "operator"),
        operator.reidentify,
    ]


def test_a_change_waits_for_the_transactions_that_were_admitted_before(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    driver = a_driver(path)
    driver.run(add("shop"))
    driver.close()
    with Child(inside_a_transaction(path)) as child:
        child.hear()
        for change in changes(path, lock_wait_ms=100):
            with pytest.raises(MigrationError, match="kept the write lock") as refused:
                change()
            assert refused.value.code == "migration_lock_timeout"
        assert administration(path).status().applications[0].admission is Admission.OPEN
        child.say("go on")
        assert child.hear() == "committed"
        changed = administration(path).set_admission(Admission.DRAIN, None)
    assert [status.name for status in changed] == ["office", "shop"]


def test_it_leaves_nothing_open(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    before = threading.active_count(), open_files()
    operator = administration(path)
    operator.status()
    operator.reidentify()
    operator.close()
    assert (threading.active_count(), open_files()) == before
    assert operator.description == f"sqlite {path}"


def test_a_place_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreNotInstalled):
        administration(tmp_path / "jobs.db").status()
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_an_older_revision_shows_what_every_revision_has(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    installed = revision_1.install(path)
    assert administration(path).status() == StoreStatus(
        store_id=id_bytes(installed.store_id), revision=1, revision_expected=REVISION, applications=()
    )


def test_a_store_of_a_newer_revision_shows_it_too(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    rows(path, f"INSERT INTO runwick_migration VALUES ({REVISION + 1}, 'later', '-', 0)")
    status = administration(path).status()
    assert (status.revision, status.revision_expected, status.applications) == (REVISION + 1, REVISION, ())


def test_an_activation_writes_one_audit_row_in_commit_order(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    revision_1.install(path)
    migrate(path, FakeClock(), FakeIds())
    operator = administration(path)
    assert operator.activate(Capability.SCHEDULER, revision_1.APPLICATION, "anna")
    assert not operator.activate(Capability.SCHEDULER, revision_1.APPLICATION, "anna")
    assert operator.activate(Capability.RATE_ADMISSION, revision_1.APPLICATION, "ben")
    now_ms = FakeClock().now_ms()
    assert rows(path, "SELECT position, application, actor, action, before, after, at_ms FROM runwick_audit") == [
        (6, 1, "anna", "activate_capability", "[]", '["scheduler"]', now_ms),
        (7, 1, "ben", "activate_capability", '["scheduler"]', '["rate_admission","scheduler"]', now_ms),
    ]


def test_in_a_store_from_before_capabilities_new_applications_have_none(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    revision_1.install(path)
    migrate(path, FakeClock(), FakeIds())
    driver = a_driver(path)
    driver.run(add("office"))
    driver.close()
    found = administration(path).status().applications
    assert [(status.name, list(status.capabilities)) for status in found] == [("office", []), ("shop", [])]
    administration(path).activate(Capability.SCHEDULER, "office", "operator")
    found = administration(path).status().applications
    assert [(status.name, list(status.capabilities)) for status in found] == [("office", ["scheduler"]), ("shop", [])]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    yield bench
    bench.store.close()


def test_acts_that_share_a_transaction_are_admitted_one_by_one(bench: Bench) -> None:
    """A drained application's dispatch takes neither its own settlement nor another application's work with it."""
    attempt = bench.claimed()
    bench.dispatch(application="office")
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    store = bench.store

    async def together() -> tuple[Any, Any, Any]:
        return await asyncio.gather(
            store.run_async(store.renew(bench.report(), held(attempt), LEASE_MS, 1_000)),
            store.run_async(store.dispatch([bench.command()])),
            store.run_async(store.dispatch([bench.command(application="office")])),
            return_exceptions=True,
        )

    renewed, refused, dispatched = asyncio.run(together())
    assert renewed.lost == frozenset()
    assert isinstance(refused, AdmissionClosed)
    assert isinstance(dispatched[0], Receipt)
    (office, shop) = bench.administration.status().applications
    assert (office.admission, shop.admission) == (Admission.OPEN, Admission.DRAIN)


class PausingClock(StoreClock):
    """Stops whoever comes first, after it has read the gate and before it is through."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def reach(self, seen_ms: int) -> None:
        if not self.stopped.is_set():
            self.stopped.set()
            assert self.go_on.wait(DEADLINE_S)


def test_what_a_slow_reader_has_found_is_not_what_a_writer_is_told(bench: Bench) -> None:
    """The reader looked before the operator's change, and is through only when a writer has met the change."""
    bench.renew()
    assert isinstance(bench.store, SqliteStore)
    path, clock = bench.store.path, PausingClock()
    gate = Gate(path, clock)
    reading, writing = (opening.connect(path, 1.0) for _ in range(2))
    reader = threading.Thread(target=gate.enter, args=(reading,), kwargs={"writes": False})
    reader.start()
    assert clock.stopped.wait(DEADLINE_S)
    bench.administration.set_admission(Admission.DRAIN, APPLICATION)
    gate.enter(writing, writes=True)
    clock.go_on.set()
    reader.join()
    with pytest.raises(AdmissionClosed):
        gate.admit("dispatch", APPLICATION)
    for connection in (reading, writing):
        connection.close()


def status_of(bench: Bench) -> ApplicationStatus:
    (status,) = bench.administration.status().applications
    return status


def test_what_a_drained_store_shows_while_its_work_ends(bench: Bench) -> None:
    """The figures that an operator waits for before he stops the processes."""
    attempt = bench.claimed()
    bench.renew(attempt)
    bench.administration.set_admission(Admission.DRAIN, None)
    assert msgspec.structs.astuple(status_of(bench))[3:] == (1, 1, 1)
    bench.succeed(attempt)
    assert msgspec.structs.astuple(status_of(bench))[3:] == (0, 0, 1)
    bench.run(bench.store.depart(bench.presence()))
    assert msgspec.structs.astuple(status_of(bench))[3:] == (0, 0, 0)


def test_a_file_that_lost_its_settings_is_refused_to_the_operator_too(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    rows(path, "PRAGMA journal_mode = DELETE")
    with pytest.raises(StoreProfileMismatch):
        administration(path).status()
