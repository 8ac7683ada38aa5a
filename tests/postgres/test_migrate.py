"""Migrations: forward, once, by whoever comes first, never half, and never under a running act."""

import os
import shutil
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runwick import PostgresOptions, Runwick
from runwick.contracts.controls import ControlAction
from runwick.contracts.errors import MigrationError, StoreError, StoreProfileMismatch, StoreUnavailable
from runwick.contracts.history import EventKind
from runwick.runtime import crossings
from runwick.stores.migrations import MigrationResult, migrations
from runwick.stores.postgres import operating, schema
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.migrate import migrate
from runwick.stores.postgres.revision import FOLDER, REVISION
from scripts.servers.postgres import PostgresServer
from scripts.servers.variables import variables
from tests.ambient import FakeClock, FakeIds
from tests.postgres.asking import PATIENCE_S, asks_for_lock, end_operators, eventually, execute
from tests.postgres.crowds import FAR_MS, server_time_bench
from tests.sqlite.processes import Child, Peer

FIRST = """\
-- A store; the semicolon in this comment; ends nothing.
CREATE TABLE store (
  one boolean PRIMARY KEY DEFAULT true, id uuid NOT NULL, created_at_ms bigint NOT NULL,
  capabilities_from_start text[] NOT NULL
);
CREATE TABLE migration (
  number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at_ms bigint NOT NULL
);
CREATE TABLE application (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE SEQUENCE position AS bigint;
CREATE TABLE job (
  id bigint PRIMARY KEY DEFAULT nextval('position'), application integer REFERENCES application (id),
  name text NOT NULL CHECK (name <> '')
);
CREATE INDEX job_name ON job (name) WHERE name <> 'x';
CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT
  AS $$ BEGIN RAISE 'jobs are kept; always'; END $$;
CREATE TRIGGER job_kept BEFORE DELETE ON job FOR EACH ROW EXECUTE FUNCTION kept();
"""
SECOND = "ALTER TABLE job ADD COLUMN tenant text;\n"


@pytest.fixture
def url(empty_database: str) -> str:
    return empty_database


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of migrations, of which there is one."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_jobs.sql").write_text(FIRST)
    return folder


def run(url: str, folder: Path = FOLDER, **changes: Any) -> MigrationResult:
    migrations.cache_clear()
    return migrate(address_of(url), FakeClock(), FakeIds(), folder=folder, **changes)


def held(url: str) -> schema.Objects:
    """What lies in the schema; nothing while there is none."""
    with operating.session(address_of(url), MigrationError("lost", "lost")) as connection:
        exists = connection.execute("SELECT to_regnamespace('runwick') IS NOT NULL").fetchone() == (True,)
        return schema.objects(connection) if exists else {}


def next_release(folder: Path) -> Path:
    """The migrations of a release that brings one more."""
    copied = shutil.copytree(FOLDER, folder / "next")
    (copied / f"{REVISION + 1:04}_extra.sql").write_text("ALTER TABLE job ADD COLUMN extra text;\n")
    return copied


def test_it_creates_the_released_schema(url: str) -> None:
    result = run(url)
    assert result.revision == REVISION
    assert result.applied == tuple(migration.label for migration in migrations(FOLDER))
    ((store_id, capabilities),) = execute(url, "SELECT id, capabilities_from_start FROM runwick.store")
    assert result.store_id == str(store_id)
    assert sorted(capabilities) == ["rate_admission", "scheduler"]


def test_a_second_time_it_does_nothing(url: str) -> None:
    first = run(url)
    before = held(url), execute(url, "SELECT * FROM runwick.migration")
    assert run(url) == MigrationResult(first.store_id, first.revision, ())
    assert (held(url), execute(url, "SELECT * FROM runwick.migration")) == before
    assert execute(url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'runwick_%'") == []


def test_migrators_at_once_apply_each_migration_once(url: str, folder: Path) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)

    def migrate_too(peer: Peer) -> None:
        peer.say("ready")
        peer.hear()
        result = run(url, folder)
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


def test_a_newer_release_brings_only_what_is_new(url: str, folder: Path) -> None:
    first = run(url, folder)
    execute(url, "INSERT INTO runwick.job (name) VALUES ('kept')")
    (folder / "0002_tenant.sql").write_text(SECOND)
    assert run(url, folder) == MigrationResult(first.store_id, 2, ("0002_tenant",))
    assert execute(url, "SELECT name, tenant FROM runwick.job") == [("kept", None)]


def refusal(url: str, folder: Path, code: str, **changes: Any) -> str:
    """How a migrator refuses, after which the schema is as before."""
    before = held(url)
    with pytest.raises(MigrationError) as refused:
        run(url, folder, **changes)
    assert refused.value.code == code
    assert address_of(url).shown in refused.value.message
    assert held(url) == before
    return refused.value.message


def test_a_store_that_is_newer(url: str, folder: Path) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)
    run(url, folder)
    (folder / "0002_tenant.sql").unlink()
    assert "revision 2, this release knows 1: the store is newer" in refusal(url, folder, "migration_unknown")


@pytest.mark.parametrize("change", ["text", "name"])
def test_a_released_migration_that_was_changed(url: str, folder: Path, change: str) -> None:
    run(url, folder)
    if change == "text":
        (folder / "0001_jobs.sql").write_text(FIRST + "-- and more\n")
    else:
        (folder / "0001_jobs.sql").rename(folder / "0001_work.sql")
    assert "use the build that migrated it" in refusal(url, folder, "migration_checksum_mismatch")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP INDEX runwick.job_name", "index job_name"),
        ("DROP TABLE runwick.job", "table job"),
        ("ALTER TABLE runwick.job ADD COLUMN extra text", "column job.extra"),
        ("ALTER TABLE runwick.job ALTER name DROP NOT NULL", "column job.name"),
        ("ALTER TABLE runwick.job DROP CONSTRAINT job_name_check", "constraint job.job_name_check"),
        ("ALTER TABLE runwick.job ALTER id TYPE numeric", "column job.id"),
        ("ALTER TABLE runwick.job ALTER id DROP DEFAULT", "column job.id"),
        ("ALTER TABLE runwick.job SET UNLOGGED", "table job"),
        ("ALTER TABLE runwick.job ENABLE ROW LEVEL SECURITY", "table job"),
        ("ALTER TABLE runwick.job DISABLE TRIGGER job_kept", "trigger job.job_kept"),
        ("ALTER SEQUENCE runwick.position INCREMENT 2", "sequence position"),
        ("CREATE POLICY hidden ON runwick.job", "policy job.hidden"),
        ("CREATE INDEX slow ON runwick.job (application)", "index slow"),
        ("CREATE RULE lost AS ON INSERT TO runwick.job DO INSTEAD NOTHING", "rule job.lost"),
        ("CREATE TABLE child () INHERITS (runwick.job)", "child table public.child"),
        ("CREATE TABLE orders (job bigint REFERENCES runwick.job)", "constraint public.orders.orders_job_fkey"),
        ("CREATE TRIGGER slow AFTER INSERT ON runwick.job EXECUTE FUNCTION runwick.kept()", "trigger job.slow"),
        ("CREATE FUNCTION runwick.kept(x int) RETURNS int RETURN 1", "function kept(x integer)"),
        ("ALTER FUNCTION runwick.kept() SET search_path = public", "function kept()"),
        (
            "CREATE OR REPLACE FUNCTION runwick.kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "function kept()",
        ),
    ],
)
def test_a_schema_that_somebody_changed(url: str, folder: Path, damage: str, said: str) -> None:
    run(url, folder)
    execute(url, damage)
    assert f"differs from revision 1 of this release in: {said}; repair" in refusal(
        url, folder, "schema_validation_failed"
    )
    (folder / "0002_tenant.sql").write_text(SECOND)
    refusal(url, folder, "schema_validation_failed")
    assert execute(url, "SELECT max(number) FROM runwick.migration") == [(1,)]


def test_what_does_not_hang_on_ours_is_left_alone(url: str, folder: Path) -> None:
    execute(url, "CREATE SCHEMA runwick; CREATE TABLE runwick.orders (id bigint PRIMARY KEY)")
    run(url, folder)
    execute(url, "CREATE VIEW names AS SELECT name FROM runwick.job; CREATE INDEX ON runwick.orders ((id + 1))")
    execute(url, "ALTER TABLE runwick.job SET (fillfactor = 70, autovacuum_enabled = off)")
    assert run(url, folder).applied == ()


def test_a_table_of_somebody_else_with_our_name(url: str, folder: Path) -> None:
    execute(url, "CREATE SCHEMA runwick; CREATE TABLE runwick.job (id bigint)")
    assert 'relation "job" already exists' in refusal(url, folder, "schema_validation_failed")


def test_temporary_tables_cannot_take_the_place_of_ours(url: str) -> None:
    run(url)
    with psycopg.connect(url) as connection:
        for table in ("store", "application", "migration"):
            connection.execute(f"CREATE TEMP TABLE {table} (LIKE runwick.{table})".encode())
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT runwick.gate(%s, 0, 1, 'dispatch', false, '{}')", (uuid.uuid4(),))
        assert (refused.value.sqlstate, refused.value.diag.message_detail) == ("RW003", str(REVISION))


def test_a_migration_that_fails_leaves_the_last_good_revision(url: str, folder: Path) -> None:
    run(url, folder)
    execute(url, "INSERT INTO runwick.job (name) VALUES ('one'), ('one')")
    (folder / "0002_tenant.sql").write_text(SECOND)
    (folder / "0003_alone.sql").write_text("CREATE TABLE half (id bigint);\nCREATE UNIQUE INDEX alone ON job (name);\n")
    with pytest.raises(MigrationError, match=r"cannot take 0003_alone \(could not create unique index") as refused:
        run(url, folder)
    assert refused.value.code == "schema_validation_failed"
    assert execute(url, "SELECT max(number), to_regclass('runwick.half') FROM runwick.migration") == [(2, None)]
    execute(url, "UPDATE runwick.job SET name = name || id")
    assert run(url, folder).applied == ("0003_alone",)


def test_a_migration_that_the_server_cannot_take_writes_nothing(url: str, folder: Path) -> None:
    (folder / "0002_wrong.sql").write_text("CREATE INDEX ON missing (x);\n")
    assert "cannot take" in refusal(url, folder, "schema_validation_failed")
    assert held(url) == {}


def test_another_migrator_that_does_not_end(url: str, folder: Path) -> None:
    run(url, folder)
    with operating.session(address_of(url), MigrationError("lost", "lost")) as other:
        operating.ask(other, "migration_lock")
        said = refusal(url, folder, "migration_lock_unavailable", lock_wait_s=0.01)
    assert "another migrator has been at work" in said


@pytest.fixture
def act(url: str, folder: Path) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that was let in and has not ended, in a store to which there is something to bring."""
    run(url, folder)
    (folder / "0002_tenant.sql").write_text(SECOND)
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM runwick.store JOIN runwick.application ON true")
        yield connection


def test_an_act_that_does_not_end(url: str, folder: Path, act: psycopg.Connection[Any]) -> None:
    with pytest.raises(MigrationError, match="open for more than 50 ms") as refused:
        run(url, folder, statement_lock_s=0.05)
    assert refused.value.code == "migration_lock_timeout"
    assert execute(url, "SELECT max(number) FROM runwick.migration") == [(1,)]


def test_a_reader_that_does_not_end(url: str, folder: Path, act: psycopg.Connection[Any]) -> None:
    act.commit()
    act.execute("SELECT FROM runwick.job")
    with pytest.raises(MigrationError) as refused:
        run(url, folder, statement_lock_s=0.05)
    assert refused.value.code == "migration_lock_timeout"


def test_it_waits_for_acts_and_lets_others_run_meanwhile(url: str, folder: Path, act: psycopg.Connection[Any]) -> None:
    results: list[MigrationResult] = []
    migrator = threading.Thread(target=lambda: results.append(run(url, folder)))
    migrator.start()
    eventually(lambda: asks_for_lock(url, "AccessExclusiveLock"), "the migrator asks for its lock")
    execute(url, "SELECT 1 FROM runwick.store JOIN runwick.application ON true")
    act.commit()
    migrator.join(PATIENCE_S)
    assert results[0].applied == ("0002_tenant",)


def test_an_act_of_the_old_release_is_refused_as_soon_as_there_is_a_new_one(url: str, tmp_path: Path) -> None:
    store_id = run(url).store_id
    folder = next_release(tmp_path)
    begun = threading.Event()
    outcome: list[str | None] = []

    def dispatch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            begun.set()
            try:
                connection.execute("SELECT runwick.gate(%s, %s, NULL, 'dispatch', false, '{}')", (store_id, REVISION))
                outcome.append("done")
            except psycopg.Error as error:
                outcome.append(error.sqlstate)

    old = threading.Thread(target=dispatch)

    def meanwhile() -> None:
        old.start()
        begun.wait(PATIENCE_S)
        eventually(lambda: asks_for_lock(url, "AccessShareLock"), "the act waits")

    remove = crossings.on("postgres.migration_applied", meanwhile)
    try:
        run(url, folder)
    finally:
        remove()
    old.join(PATIENCE_S)
    assert outcome == ["RW003"]


def test_a_row_that_nobody_can_read_does_not_stop_a_migration(url: str, tmp_path: Path) -> None:
    run(url)
    execute(
        url,
        "INSERT INTO runwick.job (id, created_at_ms, operation_id, application, lane, kind, policy, payload_bytes, "
        "payload) VALUES (gen_random_uuid(), 0, gen_random_uuid(), 7, 7, 7, 7, 4, '\\x00ff7b22')",
    )
    assert run(url, next_release(tmp_path)).revision == REVISION + 1
    assert execute(url, "SELECT payload FROM runwick.job") == [(b'\x00\xff{"',)]


@pytest.mark.parametrize(
    ("crossing", "left"), [("postgres.migration_applied", 0), ("postgres.migrated", 1)], ids=["inside", "between"]
)
def test_a_migrator_that_is_killed_can_be_run_again(url: str, folder: Path, crossing: str, left: int) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)

    def be_killed(peer: Peer) -> None:
        crossings.on(crossing, lambda: os.kill(os.getpid(), signal.SIGKILL))
        run(url, folder)

    with Child(be_killed) as child, pytest.raises(AssertionError, match="ended with -9"):
        child.__exit__(None, None, None)
    assert len({name for kind, name in held(url) if (kind, name) == ("table", "job")}) == left
    assert run(url, folder).applied == ("0001_jobs", "0002_tenant")[left:]


@pytest.mark.parametrize("crossing", ["postgres.migration_applied", "postgres.migrated"])
def test_a_connection_that_is_lost(url: str, folder: Path, crossing: str) -> None:
    (folder / "0002_tenant.sql").write_text(SECOND)
    remove = crossings.on(crossing, lambda: end_operators(url))
    try:
        with pytest.raises(MigrationError, match="goes on where it stopped") as refused:
            run(url, folder)
    finally:
        remove()
    assert refused.value.code == "migration_connection_lost"
    assert run(url, folder).revision == 2


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        run("postgresql://me:secret@127.0.0.1:1/app")
    assert refused.value.code == "store_unavailable"
    assert "127.0.0.1:1/app gives no connection" in refused.value.message
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("synchronous_commit = off", "synchronous_commit = off, so that confirmed jobs could be lost"),
        ("standard_conforming_strings = off", "standard_conforming_strings = off, expected on"),
        ("default_transaction_read_only = on", "read-only"),
    ],
)
def test_a_database_whose_settings_break_a_promise(url: str, setting: str, said: str) -> None:
    execute(url, f'ALTER DATABASE "{url.rpartition("/")[2]}" SET {setting}')
    with pytest.raises(StoreProfileMismatch, match=said) as refused:
        run(url)
    assert refused.value.code == "store_profile_mismatch"
    assert held(url) == {}


def test_a_database_in_another_encoding(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(StoreError, match="has the encoding LATIN1, expected UTF8") as refused:
        run(postgres.url("latin"))
    assert refused.value.code == "encoding_unsupported"
    assert held(postgres.url("latin")) == {}
    postgres.drop_database("latin")


def test_a_server_that_does_not_flush_and_one_that_only_follows() -> None:
    with PostgresServer(settings={"fsync": "off"}) as server:
        with pytest.raises(StoreProfileMismatch, match="has fsync = off"):
            run(server.url())
        assert held(server.url()) == {}
        assert run(server.url(), allow_unsafe_durability=True).revision == REVISION
        stated = Runwick("shop", store=server.url(), postgres=PostgresOptions(allow_unsafe_durability=True))
        again = stated.migrate()
        assert again is not None
        assert again.revision == REVISION
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.start()
        with pytest.raises(StoreProfileMismatch, match="is a replica"):
            run(server.url())


def test_a_role_that_may_not_create_the_schema(postgres: PostgresServer, url: str) -> None:
    postgres.execute("CREATE ROLE visitor LOGIN PASSWORD 'visitor'")
    try:
        visiting = postgres.url(url.rpartition("/")[2], "visitor", "visitor")
        with pytest.raises(StoreUnavailable, match=r"this role may not .*permission denied for database"):
            run(visiting)
        assert held(url) == {}
        execute(url, f'GRANT CREATE ON DATABASE "{url.rpartition("/")[2]}" TO visitor')
        assert run(visiting).revision == REVISION
        assert execute(url, "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'runwick'") == [
            ("visitor",)
        ]
        execute(url, "DROP OWNED BY visitor")
    finally:
        postgres.execute("DROP ROLE visitor")


def test_a_store_that_was_dumped_and_restored(postgres: PostgresServer, url: str, tmp_path: Path) -> None:
    store_id = run(url).store_id
    dump, restored = str(tmp_path / "dump"), postgres.create_database("restored")
    for program, options, place in (
        ("pg_dump", ["-Fc", "-f"], url),
        ("pg_restore", ["--no-owner", "-d", "restored"], restored),
    ):
        subprocess.run([postgres.program(program), *options, dump], check=True, env={**os.environ, **variables(place)})
    assert run(restored) == MigrationResult(store_id, REVISION, ())
    assert held(restored) == held(url)
    postgres.drop_database("restored")


def test_what_another_server_wrote_is_told_before_what_this_one_writes(url: str) -> None:
    """A dump brings along transactions that its server had counted further than this one has."""
    run(url)
    bench = server_time_bench(url)
    job_ids = bench.dispatch(deadline_ms=FAR_MS) + bench.dispatch(deadline_ms=FAR_MS)
    (attempt, _) = bench.claim().attempts
    bench.succeed(attempt)
    bench.control(bench.order(ControlAction.RERUN, attempt.job_id))
    written = [(event.what, event.job_id) for event in bench.events()]
    assert len(written) == 5
    for table in ("job", "attempt", "closing", "audit"):
        execute(url, f"UPDATE runwick.{table} SET xid = ((1 << 40) + xid::text::bigint)::text::xid8")
    assert bench.events() == []
    run(url)
    job_ids += bench.dispatch(deadline_ms=FAR_MS)
    told = bench.events(limit=2)
    assert [(event.what, event.job_id) for event in told] == [*written, (EventKind.DISPATCHED, job_ids[2])]
    assert {event.cursor.split(".")[1] for event in told[:5]} == {"0"}
    assert bench.events(after=told[4].cursor) == told[5:]
    run(url)
    assert bench.events() == told, "what this server has written stays as it is"
    bench.store.close()
