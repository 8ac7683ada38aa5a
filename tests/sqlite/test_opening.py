"""Every refusal of a file: its code, its sentence, and that nothing was written or created."""

import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from runwick.contracts.errors import (
    StoreError,
    StoreNotInstalled,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.stores.sqlite import opening
from tests.sqlite.places import a_driver, add, migrated
from tests.sqlite.processes import Child, Peer


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def refusal_of(path: Path, kind: type[StoreError]) -> StoreError:
    """How a check and a write refuse this file, both alike, and leaving everything as it was."""
    before = contents(path.parent)
    driver = a_driver(path)
    with pytest.raises(kind) as refused:
        driver.check()
    with pytest.raises(kind, match=refused.value.code):
        driver.run(add("never"))
    driver.close()
    assert contents(path.parent) == before
    assert str(path) in refused.value.message
    return refused.value


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    refused = refusal_of(tmp_path / "jobs.db", StoreNotInstalled)
    assert refused.code == "store_not_installed"
    assert "there is no file" in refused.message
    assert "runwick migrate" in refused.message


def an_empty_file(path: Path) -> None:
    path.touch()


def a_text(path: Path) -> None:
    path.write_text("not a database, but long enough to have a header of its own; " * 40)


def another_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (an_empty_file, "no Runwick schema"),
        (another_database, "no Runwick schema"),
        (a_text, "not a SQLite database"),
        (Path.mkdir, "it is not a file"),
    ],
)
def test_a_file_that_is_no_store(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "jobs.db")
    refused = refusal_of(tmp_path / "jobs.db", StoreNotInstalled)
    assert refused.code == "store_not_installed"
    assert said in refused.message


def test_a_file_that_is_not_in_wal_mode(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    execute(path, "PRAGMA journal_mode = DELETE")
    refused = refusal_of(path, StoreProfileMismatch)
    assert refused.code == "store_profile_mismatch"
    assert "journal mode delete, expected wal" in refused.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE runwick_migration SET number = number + 1 WHERE number = 4", "the store is newer"),
        ("DELETE FROM runwick_migration WHERE number = 4", "the store is older"),
    ],
)
def test_a_store_of_another_revision(tmp_path: Path, change: str, said: str) -> None:
    path = migrated(tmp_path)
    execute(path, change)
    refused = refusal_of(path, StoreRevisionMismatch)
    assert refused.code == "store_revision_mismatch"
    assert said in refused.message


def test_a_file_that_this_user_may_not_write() -> None:
    with tempfile.TemporaryDirectory() as folder:  # not `tmp_path`, whose parents are closed to other users
        Path(folder).chmod(0o755)
        path = migrated(Path(folder))
        path.chmod(0o444)

        def as_somebody(peer: Peer) -> None:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            peer.say(str(refusal_of(path, StoreUnavailable)))

        with Child(as_somebody) as child:
            said = child.hear()
    assert said.startswith("store_unavailable")
    assert "may not write" in said


def test_a_library_that_is_too_old(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"uses SQLite 3\.37\.2, Runwick needs 3.38 or newer") as refused:
        opening.examine_place(tmp_path / "jobs.db", engine=(3, 37, 2))
    assert refused.value.code == "engine_version_unsupported"


def mounted(folder: Path, kind: str) -> Path:
    """A mount table in which `folder` is of this type."""
    mounts = folder / "mountinfo"
    mounts.write_text(f"22 1 254:0 / / rw - ext4 /dev/vda rw\n31 22 0:41 / {folder} rw - {kind} remote:/ rw\n")
    return mounts


def test_a_network_file_system(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"network file system \(fuse.sshfs\)") as refused:
        opening.examine_place(tmp_path / "jobs.db", mounts=mounted(tmp_path, "fuse.sshfs"))
    assert refused.value.code == "filesystem_unsupported"


def test_a_link_is_followed_to_the_network_file_system_behind_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "jobs.db").symlink_to(shared / "jobs.db")
    with pytest.raises(StoreError, match=r"network file system \(nfs\)"):
        opening.examine_place(tmp_path / "jobs.db", mounts=mounted(shared, "nfs"))


def test_an_unknown_file_system_is_accepted_with_a_note(tmp_path: Path) -> None:
    (note,) = opening.examine_place(tmp_path, engine=(3, 51, 3), mounts=mounted(tmp_path, "newfs"))
    assert "(newfs) that is not verified to be local" in note


def test_a_library_with_the_log_reset_fault_is_accepted_with_a_note(tmp_path: Path) -> None:
    (note,) = opening.examine_place(tmp_path, engine=(3, 40, 1), mounts=mounted(tmp_path, "ext4"))
    assert note.startswith("SQLite 3.40.1 has a fault in checkpoints")


@pytest.mark.parametrize(
    ("engine", "faulty"),
    [
        ((3, 38, 0), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_which_versions_have_the_log_reset_fault(engine: opening.Version, faulty: bool) -> None:
    assert opening.resets_log_unsafely(engine) is faulty


@pytest.mark.parametrize("reads_only", [False, True])
def test_every_connection_has_the_settings(tmp_path: Path, reads_only: bool) -> None:
    connection = opening.connect(migrated(tmp_path), 1.0, reads_only=reads_only)
    settings = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "query_only", "busy_timeout")
    found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in settings}
    connection.close()
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "wal_autocheckpoint": 0,
        "query_only": int(reads_only),
        "busy_timeout": 1000,
    }


def test_a_setting_that_does_not_stick_is_refused(tmp_path: Path) -> None:
    path = migrated(tmp_path)
    connection = opening.plain_connection(path, "rw", 1.0)
    connection.execute("BEGIN")  # inside a transaction SQLite silently keeps foreign_keys as it was
    with pytest.raises(StoreProfileMismatch, match="foreign_keys = 0 although 1 was set"):
        opening.set_up(connection, path)
    connection.close()


def execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()
