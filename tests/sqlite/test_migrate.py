"""Migrations: forward, once, by whoever comes first, and never half."""

import os
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from runwick.config.options import SqliteOptions
from runwick.contracts.administration import Admission, Capability
from runwick.contracts.errors import MigrationError, StoreError, StoreNotInstalled, StoreRevisionMismatch
from runwick.contracts.identity import id_bytes
from runwick.contracts.outcomes import Answer
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from runwick.runtime import crossings
from runwick.stores.migrations import MigrationResult, migrations
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import FOLDER, REVISION
from runwick.stores.sqlite.store import SqliteStore
from tests.ambient import FakeClock, FakeIds
from tests.conformance.ground import KINDS, MEDIUM, Bench, capped, window
from tests.sqlite import revision_1, revision_2
from tests.sqlite.places import a_driver, add, names
from tests.sqlite.processes import Child, Peer

FIRST = """\
-- A store; the semicolon in this comment; ends nothing.
CREATE TABLE runwick_store (one INTEGER PRIMARY KEY, store_id BLOB NOT NULL, created_at_ms INTEGER NOT NULL) STRICT;

CREATE TABLE runwick_job (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TRIGGER runwick_job_kept BEFORE DELETE ON runwick_job BEGIN
  SELECT raise(ABORT, 'jobs are kept; always');
END;
CREATE INDEX runwick_job_name ON runwick_job (name);
"""
SINCE_REVISION_1 = ("0002_administration", "0003_limits", "0004_lists")
SECOND = "ALTER TABLE runwick_job ADD COLUMN tenant TEXT;\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of migrations, of which there is one."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_jobs.sql").write_text(FIRST)
    return folder


def run(path: Path, folder: Path = FOLDER, *, lock_wait_s: float = 30.0) -> MigrationResult:
    migrations.cache_clear()
    return migrate(path, FakeClock(), FakeIds(), folder=folder, lock_wait_s=lock_wait_s)


def execute(path: Path, *statements: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return [row for statement in statements for row in connection.execute(statement).fetchall()]
    finally:
        connection.close()


def schema(path: Path) -> list[tuple[object, ...]]:
    return execute(path, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")


def test_it_creates_the_file_with_the_released_schema(path: Path) -> None:
    result = run(path)
    assert result.revision == REVISION
    assert result.applied == tuple(migration.label for migration in migrations(FOLDER))
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]
    assert execute(path, "SELECT store_id FROM runwick_store") == [(id_bytes(result.store_id),)]
    driver = a_driver(path)
    assert driver.run(add("ready")) == 1
    driver.close()


def test_a_second_time_it_does_nothing(path: Path) -> None:
    first = run(path)
    before = schema(path), execute(path, "SELECT * FROM runwick_migration")
    again = run(path)
    assert again == MigrationResult(first.store_id, first.revision, ())
    assert (schema(path), execute(path, "SELECT * FROM runwick_migration")) == before


def test_migrators_at_once_apply_each_migration_once(path: Path, folder: Path) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)

    def migrate_too(peer: Peer) -> None:
        peer.say("ready")
        peer.hear()
        result = run(path, folder)
        peer.say([result.store_id, list(result.applied)])

    with Child(migrate_too) as one, Child(migrate_too) as two, Child(migrate_too) as three:
        migrators = (one, two, three)
        for migrator in migrators:
            migrator.hear()
        for migrator in migrators:
            migrator.say("go")
        said = [migrator.hear() for migrator in migrators]
    assert len({store_id for store_id, _ in said}) == 1
    assert sorted(label for _, applied in said for label in applied) == ["0001_jobs", "0002_tenant"]


def test_a_newer_release_brings_only_what_is_new(path: Path, folder: Path) -> None:
    first = run(path, folder)
    execute(path, "INSERT INTO runwick_job (name) VALUES ('kept')")
    (folder / "0002_tenant.sql").write_text(SECOND)
    second = run(path, folder)
    assert second == MigrationResult(first.store_id, 2, ("0002_tenant",))
    assert execute(path, "SELECT name, tenant FROM runwick_job") == [("kept", None)]


def refusal(path: Path, folder: Path, code: str) -> str:
    """How a migrator refuses, after which the schema is as before."""
    before = schema(path) if path.exists() else None
    with pytest.raises(MigrationError) as refused:
        run(path, folder)
    assert refused.value.code == code
    assert str(path) in refused.value.message
    assert before is None or schema(path) == before
    return refused.value.message


def test_a_store_that_is_newer(path: Path, folder: Path) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)
    run(path, folder)
    (folder / "0002_tenant.sql").unlink()
    said = refusal(path, folder, "migration_unknown")
    assert "revision 2, this release knows 1: the store is newer" in said


@pytest.mark.parametrize("change", ["text", "name"])
def test_a_released_migration_that_was_changed(path: Path, folder: Path, change: str) -> None:
    run(path, folder)
    if change == "text":
        (folder / "0001_jobs.sql").write_text(FIRST + "-- and more\n")
    else:
        (folder / "0001_jobs.sql").rename(folder / "0001_work.sql")
    assert "use the build that migrated it" in refusal(path, folder, "migration_checksum_mismatch")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP INDEX runwick_job_name", "index runwick_job_name"),
        ("DROP TABLE runwick_job", "index runwick_job_name, table runwick_job, trigger runwick_job_kept"),
        ("ALTER TABLE runwick_job ADD COLUMN extra TEXT", "table runwick_job"),
        ("CREATE TRIGGER slow AFTER INSERT ON runwick_job BEGIN SELECT 1; END", "trigger slow"),
    ],
)
def test_a_schema_that_somebody_changed(path: Path, folder: Path, damage: str, said: str) -> None:
    run(path, folder)
    execute(path, damage)
    assert f"in: {said}" in refusal(path, folder, "schema_validation_failed")
    (folder / "0002_tenant.sql").write_text(SECOND)
    refusal(path, folder, "schema_validation_failed")
    assert execute(path, "SELECT max(number) FROM runwick_migration") == [(1,)]


def test_tables_of_somebody_else_are_left_alone(path: Path, folder: Path) -> None:
    execute(path, "CREATE TABLE orders (id INTEGER PRIMARY KEY)", "INSERT INTO orders VALUES (7)")
    run(path, folder)
    execute(path, "CREATE INDEX orders_id ON orders (id)")
    assert run(path, folder).applied == ()
    assert execute(path, "SELECT id FROM orders") == [(7,)]


def test_a_table_of_somebody_else_with_our_name(path: Path, folder: Path) -> None:
    execute(path, "CREATE TABLE runwick_job (id INTEGER PRIMARY KEY)")
    assert "job already exists" in refusal(path, folder, "schema_validation_failed")


def test_a_migration_that_fails_leaves_the_last_good_revision(path: Path, folder: Path) -> None:
    run(path, folder)
    (folder / "0002_tenant.sql").write_text(SECOND)
    (folder / "0003_wrong.sql").write_text(
        "CREATE TABLE half (id INTEGER PRIMARY KEY);\nCREATE INDEX half_x ON missing (x);\n"
    )
    with pytest.raises(MigrationError, match="no such table") as refused:
        run(path, folder)
    assert refused.value.code == "schema_validation_failed"
    assert execute(path, "SELECT max(number) FROM runwick_migration") == [(2,)]
    assert execute(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == [(0,)]


def test_a_lock_that_stays_taken(path: Path, folder: Path) -> None:
    run(path, folder)

    def hold(peer: Peer) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        peer.say("locked")
        peer.hear()

    with Child(hold) as child:
        child.hear()
        with pytest.raises(MigrationError, match=r"kept .* locked for more than 10 ms") as refused:
            run(path, folder, lock_wait_s=0.01)
        child.say("let go")
    assert refused.value.code == "migration_lock_timeout"


def test_a_file_that_is_no_database(path: Path, folder: Path) -> None:
    path.write_text("a text that was here before; " * 100)
    with pytest.raises(StoreError) as refused:
        run(path, folder)
    assert refused.value.code == "invalid_store"
    assert "is not a SQLite database" in refused.value.message
    assert path.read_text() == "a text that was here before; " * 100


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the directory .*nowhere does not exist") as refused:
        run(tmp_path / "nowhere" / "jobs.db")
    assert refused.value.code == "invalid_store"
    assert list(tmp_path.iterdir()) == []


def killed_at(path: Path, folder: Path, crossing: str) -> None:
    """Run a migrator in a process of its own that is killed when it first comes to `crossing`."""

    def migrate_in_vain(peer: Peer) -> None:
        crossings.on(crossing, lambda: os.kill(os.getpid(), signal.SIGKILL))
        run(path, folder)

    child = Child(migrate_in_vain)
    assert child.end() == -signal.SIGKILL
    child.close()


def revision(path: Path) -> object:
    ((number,),) = execute(path, "SELECT max(number) FROM runwick_migration")
    return number


def test_a_migrator_that_was_killed_before_there_was_a_store_left_none(path: Path) -> None:
    killed_at(path, FOLDER, "sqlite.migration_applied")
    driver = a_driver(path)
    with pytest.raises(StoreNotInstalled):
        driver.check()
    driver.close()
    assert run(path).applied == tuple(migration.label for migration in migrations(FOLDER))
    assert execute(path, "SELECT capabilities FROM runwick_store") == [('["rate_admission","scheduler"]',)]


def test_a_migrator_that_was_killed_inside_a_step_left_the_revision_before_it(path: Path) -> None:
    revision_1.install(path)
    before = schema(path)
    killed_at(path, FOLDER, "sqlite.migration_applied")
    assert (revision(path), schema(path)) == (1, before)
    assert run(path).applied == SINCE_REVISION_1


def test_a_migrator_that_was_killed_between_two_steps_is_gone_on_with(path: Path, folder: Path) -> None:
    run(path, folder)
    execute(path, "INSERT INTO runwick_job (name) VALUES ('kept')")
    (folder / "0002_tenant.sql").write_text(SECOND)
    (folder / "0003_index.sql").write_text("CREATE INDEX runwick_job_tenant ON runwick_job (tenant);\n")
    killed_at(path, folder, "sqlite.migration_committed")
    assert revision(path) == 2
    assert run(path, folder).applied == ("0003_index",)
    assert execute(path, "SELECT name, tenant FROM runwick_job") == [("kept", None)]


def test_migrators_at_once_bring_an_old_store_up_once(path: Path) -> None:
    installed = revision_1.install(path)

    def migrate_too(peer: Peer) -> None:
        peer.say("ready")
        peer.hear()
        result = run(path)
        peer.say([result.store_id, list(result.applied)])

    with Child(migrate_too) as one, Child(migrate_too) as two:
        for migrator in (one, two):
            migrator.hear()
        for migrator in (one, two):
            migrator.say("go")
        said = [migrator.hear() for migrator in (one, two)]
    assert {store_id for store_id, _ in said} == {installed.store_id}
    assert sorted(label for _, applied in said for label in applied) == list(SINCE_REVISION_1)


def test_what_an_older_release_left_goes_on_under_this_one(path: Path) -> None:
    installed = revision_1.install(path)
    clock = FakeClock()
    result = migrate(path, clock, FakeIds())
    assert result == MigrationResult(installed.store_id, REVISION, SINCE_REVISION_1)
    store = SqliteStore(path, options=SqliteOptions(), clock=clock, ids=FakeIds(1_000))
    bench = Bench("sqlite", store, clock, SqliteAdministration(path, clock, FakeIds()), lambda: store)
    states = [bench.job(job_id).state for job_id in (revision_1.WAITING, revision_1.RUNNING, revision_1.FINISHED)]
    assert states == [JobState.PENDING, JobState.RUNNING, JobState.SUCCEEDED]
    assert bench.job(revision_1.FINISHED).result == b"7"
    (status,) = bench.administration.status().applications
    assert (status.name, status.admission, status.leases, status.workers) == ("shop", Admission.OPEN, 1, 1)
    assert [attempt.job_id for attempt in bench.claim().attempts] == [revision_1.WAITING]
    clock.advance_ms(revision_1.LEASE_MS - 1)
    assert bench.retry(revision_1.running(), delay_ms=0) is Answer.DONE
    (again,) = bench.claim().attempts
    assert (again.job_id, again.number, again.execution) == (revision_1.RUNNING, 2, 2)
    assert bench.succeed(again) is Answer.DONE
    bench.dispatch()
    assert execute(path, "SELECT max(position) FROM runwick_job") == [(9,)]
    store.close()


def test_limits_hold_for_what_waited_before_there_were_any(path: Path) -> None:
    installed = revision_2.install(path)
    clock = FakeClock()
    assert migrate(path, clock, FakeIds()) == MigrationResult(
        installed.store_id, REVISION, ("0003_limits", "0004_lists")
    )
    store = SqliteStore(path, options=SqliteOptions(), clock=clock, ids=FakeIds(1_000))
    bench = Bench("sqlite", store, clock, SqliteAdministration(path, clock, FakeIds()), lambda: store)
    assert [(record.action, record.target) for record in bench.audit()] == [("look", None)]
    (worker,) = bench.run(store.workers("shop"))
    assert worker.presence.kinds is None
    bench.run(store.register("shop", [MEDIUM], KINDS, [capped("reports", 1)]))
    claim = bench.claim()
    # The one that runs has been there before the scope, and holds nothing of it.
    assert ([attempt.job_id for attempt in claim.attempts], claim.parked) == ([revision_1.WAITING], 1)
    assert bench.retry(revision_1.running(), delay_ms=60_000) is Answer.DONE
    assert bench.claim().attempts == []
    assert bench.succeed(*claim.attempts) is Answer.DONE
    (again,) = bench.claim().attempts
    assert (again.job_id, again.number, again.holds) == (revision_2.RETRYING, 2, 1)
    with pytest.raises(StoreError) as refused:  # a store that was there before is capable of nothing yet
        bench.dispatch(rates=(window("provider", 1),))
    assert refused.value.code == "rate_admission_not_active"
    bench.administration.activate(Capability.RATE_ADMISSION, "shop", "ops-bot")
    bench.dispatch(rates=(window("provider", 1),))
    store.close()


def test_a_process_of_the_release_before_is_refused_at_its_next_call(path: Path, tmp_path: Path) -> None:
    run(path)
    newer = tmp_path / "newer"
    shutil.copytree(FOLDER, newer)
    (newer / f"{REVISION + 1:04}_more.sql").write_text("CREATE TABLE runwick_more (id INTEGER PRIMARY KEY);\n")

    def go_on(peer: Peer) -> None:
        driver = a_driver(path)
        driver.run(add("before"))
        peer.say("working")
        peer.hear()
        acts: list[Act[Any]] = [add("after"), names()]
        for act in acts:
            with pytest.raises(StoreRevisionMismatch, match="the store is newer") as refused:
                driver.run(act)
            peer.say(refused.value.code)

    with Child(go_on) as old:
        assert old.hear() == "working"
        assert run(path, newer).revision == REVISION + 1
        old.say("go on")
        assert [old.hear(), old.hear()] == ["store_revision_mismatch"] * 2
    assert execute(path, "SELECT name FROM runwick_application") == [("before",)]


@pytest.mark.parametrize("name", ["0003_gap.sql", "2_short.sql", "0002-dash.sql"])
def test_a_file_that_is_no_migration_is_a_mistake_of_the_release(folder: Path, name: str) -> None:
    (folder / name).write_text("SELECT 1;\n")
    migrations.cache_clear()
    with pytest.raises(AssertionError, match="is not migration 0002_name"):
        migrations(folder)


def test_a_driver_reads_what_a_migration_wrote(path: Path) -> None:
    run(path)
    driver = a_driver(path)
    assert driver.run(names()) == set()
    driver.close()
