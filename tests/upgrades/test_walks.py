"""The operator's two walks, command by command, with real processes: an upgrade, and the restore of a backup."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from runwick import AdmissionClosed, Runwick, StoreError, StoreHistoryBroken, StoreRevisionMismatch
from scripts.servers.postgres import PostgresServer
from tests.kills import jobs
from tests.kills.application import FAST
from tests.kills.fire import ROOT, Field, wait_for
from tests.kills.jobs import Drill
from tests.upgrades.releases import VARIABLE, Release, next_release

JOBS = 40


class Place(NamedTuple):
    """One store, how it is backed up, and how a backup becomes a store beside it."""

    provider: str
    url: str
    back_up: Callable[[], None]
    restore: Callable[[], str]
    """Answers the URL of the restored copy."""
    age_heartbeats: Callable[[str], None]
    """What two minutes of waiting do to the heartbeats that a backup carries."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    return postgres_place(request.getfixturevalue("postgres"), tmp_path, tmp_path.name)


def sqlite_place(folder: Path) -> Place:
    original, backup, restored = (folder / name for name in ("fire.db", "before-upgrade.db", "restored.db"))

    def back_up() -> None:
        with contextlib.closing(sqlite3.connect(original)) as source, contextlib.closing(sqlite3.connect(backup)) as to:
            source.backup(to)

    def restore() -> str:
        restored.write_bytes(backup.read_bytes())
        return f"sqlite:///{restored}"

    def age_heartbeats(_: str) -> None:
        with contextlib.closing(sqlite3.connect(restored)) as connection:
            connection.execute("UPDATE runwick_worker SET seen_at_ms = seen_at_ms - 120000")
            connection.commit()

    return Place("sqlite", f"sqlite:///{original}", back_up, restore, age_heartbeats)


def postgres_place(server: PostgresServer, folder: Path, name: str) -> Place:
    url = server.create_database(f"walk_{name}")
    backup = folder / "before-upgrade.dump"

    def back_up() -> None:
        _program(server, "pg_dump", "-Fc", "-f", str(backup), url)

    def restore() -> str:
        restored = server.create_database(f"restored_{name}")
        _program(server, "pg_restore", "-d", restored, "--no-owner", str(backup))
        return restored

    def age_heartbeats(restored: str) -> None:
        statement = "UPDATE runwick.worker SET seen_at_ms = seen_at_ms - 120000"
        server.execute(statement, database=urlsplit(restored).path[1:])

    return Place("postgres", url, back_up, restore, age_heartbeats)


def _program(server: PostgresServer, name: str, *arguments: str) -> None:
    subprocess.run([server.program(name), *arguments], check=True, timeout=60)


class Walk:
    """The field with both releases and the producer of the old one."""

    def __init__(self, place: Place, folder: Path, producer: Runwick) -> None:
        self.place = place
        self.field = Field(folder, place.url)
        environment = {**self.field.environment, VARIABLE: place.url}
        environment.pop("RUNWICK_STORE")
        self.old = Release(ROOT, environment)
        self.new = next_release(folder / "next", environment)
        self.producer = producer

    def store(self, release: Release, command: str, *arguments: str) -> str:
        """``runwick store …`` on the store of the walk."""
        return release.run("store", command, *self.connection, *arguments)

    @property
    def connection(self) -> tuple[str, ...]:
        return "--provider", self.place.provider, "--connection-env", VARIABLE

    def application(self, release: Release) -> dict[str, Any]:
        status = json.loads(self.store(release, "status", "--output", "json"))
        (application,) = status["applications"]
        return {**application, "revision": status["revision"], "expected": status["revisionExpected"]}

    def on(self, url: str) -> None:
        """Go on with another store."""
        for release in (self.old, self.new):
            release.environment[VARIABLE] = url


@pytest.fixture
def walk(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    monkeypatch.setenv("RUNWICK_STORE", place.url)
    producer = a_producer()
    producer.migrate()
    walk = Walk(place, tmp_path, producer)
    yield walk
    producer.close()
    for process in walk.field.processes():
        process.kill()


def a_producer() -> Runwick:
    producer = Runwick("fire", worker=FAST)
    producer.add_jobs(jobs)
    return producer


def test_an_upgrade(walk: Walk) -> None:
    old, new = walk.old, walk.new
    receipts = walk.producer.dispatch_many([Drill(number) for number in range(JOBS)]).receipts
    with walk.field.supervisor() as supervisor:
        wait_for(lambda: len(walk.field.marks()) > 8, "the old release at work")
        walk.place.back_up()
        before = walk.application(old)
        assert before["admission"] == "open"
        assert before["revision"] == before["expected"]
        walk.store(old, "admission", "--mode", "drain")
        with pytest.raises(AdmissionClosed, match="drained"):
            walk.producer.dispatch(Drill(JOBS))
        wait_for(lambda: walk.application(old)["leases"] == 0, "no owned leases")
        supervisor.terminate()
        assert supervisor.wait(60) == 0
    with walk.field.supervisor() as refused:
        assert refused.wait(60) == 1, "a process that starts while its application is drained is refused"
    assert "admission_closed" in walk.field.output.read_text()
    migrated = new.run("migrate", *walk.connection)
    assert f"revision  {before['revision'] + 1}\n" in migrated
    assert "_note" in migrated
    assert "nothing, it was up to date" in new.run("migrate", *walk.connection)
    with pytest.raises(StoreRevisionMismatch, match="the store is newer"):
        walk.producer.dispatch(Drill(JOBS))
    assert "migration_unknown" in old.refusal("migrate", *walk.connection)
    walk.store(new, "admission", "--mode", "open")
    assert walk.application(new)["admission"] == "open"
    run_to_the_end(walk, new)
    with pytest.raises(StoreRevisionMismatch):
        walk.producer.get(receipts[0])
    go_back(walk, receipts)


def run_to_the_end(walk: Walk, release: Release) -> None:
    """A supervisor of that release does what is left."""
    ran = subprocess.run(
        [sys.executable, "-m", "runwick_supervisor.command", "tests.kills.application:rw", "--until-empty"],
        cwd=release.root,
        env={**release.environment, "RUNWICK_STORE": release.environment[VARIABLE]},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def go_back(walk: Walk, receipts: list[Any]) -> None:
    """The backup, and the old release on it: what was confirmed before the backup is there."""
    url = walk.place.restore()
    walk.on(url)
    walk.store(walk.old, "admission", "--mode", "drain")
    walk.store(walk.old, "admission", "--mode", "open")
    run_to_the_end(walk, walk.old)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNWICK_STORE", url)
        restored = a_producer()
    states = {restored.wait(receipt, timeout=timedelta(seconds=30)).state for receipt in receipts}
    restored.close()
    assert states == {"succeeded"}


def test_a_restored_copy(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    receipts = walk.producer.dispatch_many([Drill(number) for number in range(JOBS)]).receipts
    with walk.field.supervisor() as supervisor:
        wait_for(lambda: len(walk.field.marks()) > 8, "work")
        walk.store(walk.old, "admission", "--mode", "drain")
        wait_for(lambda: walk.application(walk.old)["leases"] == 0, "no owned leases")
        walk.place.back_up()
        supervisor.kill()
    walk.store(walk.old, "admission", "--mode", "maintenance")
    with pytest.raises(AdmissionClosed, match="maintenance"):
        walk.producer.dispatch(Drill(JOBS))

    url = walk.place.restore()
    walk.on(url)
    monkeypatch.setenv("RUNWICK_STORE", url)
    producer = a_producer()
    producer.get(receipts[0])  # a process that knows the copy under its old identity
    prepared = producer.prepare(Drill(JOBS))
    before = json.loads(walk.store(walk.old, "status", "--output", "json"))["storeId"]
    assert walk.application(walk.old)["admission"] == "drain"
    assert "store_in_use" in walk.old.refusal("store", "reidentify", *walk.connection, "--confirm")
    walk.store(walk.old, "admission", "--mode", "maintenance")
    assert "--confirm" in walk.old.refusal("store", "reidentify", *walk.connection)
    assert "store_in_use" in walk.old.refusal("store", "reidentify", *walk.connection, "--confirm")
    walk.place.age_heartbeats(url)
    walk.store(walk.old, "reidentify", "--confirm")
    after = json.loads(walk.store(walk.old, "status", "--output", "json"))["storeId"]
    assert after != before
    with pytest.raises(StoreHistoryBroken, match=after) as refused:
        producer.dispatch_prepared(prepared)
    assert refused.value.code == "store_identity_mismatch"
    producer.close()
    walk.store(walk.old, "admission", "--mode", "open")
    run_to_the_end(walk, walk.old)
    fresh = a_producer()
    states = {fresh.wait(receipt, timeout=timedelta(seconds=30)).state for receipt in receipts}
    with pytest.raises(StoreError, match=after):
        fresh.dispatch_prepared(prepared)
    fresh.close()
    assert states == {"succeeded"}
