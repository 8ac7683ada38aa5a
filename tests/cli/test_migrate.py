"""``runwick migrate``: three ways to name the store, none of them an argument."""

import re
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from runwick.cli.main import main
from tests.cli.applications import SOUND
from tests.cli.conftest import WriteApplication
from tests.redis.asking import execute

FIRST = re.compile(
    r"store     sqlite (?P<path>/.*/thumbs\.db) \(wal, synchronous=full\)\n"
    r"store id  (?P<id>[0-9a-f-]{36})\n"
    r"revision  (?P<revision>[0-9]+)\n"
    r"applied   (?P<applied>0001_.*)\n"
)


def test_the_first_time_creates_the_store_and_the_second_does_nothing(
    write_application: WriteApplication, tmp_path: Path
) -> None:
    app = write_application(SOUND)
    first = CliRunner().invoke(main, ["migrate", "--app", app])
    assert (first.exit_code, first.stderr) == (0, "")
    said = FIRST.fullmatch(first.stdout)
    assert said is not None
    assert Path(said["path"]) == tmp_path / "thumbs.db"
    second = CliRunner().invoke(main, ["migrate", "--app", app])
    assert (second.exit_code, second.stderr) == (0, "")
    assert second.stdout == first.stdout.replace(said["applied"], "nothing, it was up to date")


def test_the_url_of_an_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATION_STORE", f"sqlite:///{tmp_path}/thumbs.db")
    ran = CliRunner().invoke(main, ["migrate", "--connection-env", "MIGRATION_STORE"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert FIRST.fullmatch(ran.stdout)
    assert (tmp_path / "thumbs.db").exists()


def test_the_url_on_standard_input_is_relative_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["migrate", "--connection-stdin"], input="sqlite:///thumbs.db\n")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert (tmp_path / "thumbs.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--app", "a", "--connection-stdin"],
        ["--app", "a", "--connection-env", "B"],
        ["--connection-env", "B", "--connection-stdin"],
        ["--app", "a", "--connection-env", "B", "--connection-stdin"],
    ],
    ids=" ".join,
)
def test_exactly_one_way_must_be_given(arguments: list[str]) -> None:
    ran = CliRunner().invoke(main, ["migrate", *arguments])
    assert ran.exit_code == 2
    assert "Give exactly one of --app, --connection-env and --connection-stdin." in ran.stderr


def test_a_url_is_never_an_argument() -> None:
    ran = CliRunner().invoke(main, ["migrate", "sqlite:///thumbs.db"])
    assert (ran.exit_code, "unexpected extra argument" in ran.stderr) == (2, True)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("", "missing_store"),
        (" \n", "missing_store"),
        ("sqlite:///a.db\nsqlite:///b.db\n", "invalid_store"),
        ("oracle://scott:tiger@db/app", "invalid_store"),
        ("scott:tiger", "invalid_store"),
    ],
)
def test_a_url_that_names_no_store_is_refused_and_not_repeated(
    url: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["migrate", "--connection-stdin"], input=url)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"Runwick cannot start: 1 problem.\n  {code}  store: ")
    assert "tiger" not in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIGRATION_STORE", raising=False)
    ran = CliRunner().invoke(main, ["migrate", "--connection-env", "MIGRATION_STORE"])
    assert ran.exit_code == 2
    assert "the environment variable MIGRATION_STORE holds no URL" in ran.stderr


def test_a_misspelt_variable_stops_a_migration_of_the_wrong_store(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNWICK_STROE", "sqlite:///meant.db")
    ran = CliRunner().invoke(main, ["migrate", "--app", write_application(SOUND)])
    assert ran.exit_code == 2
    assert "Did you mean RUNWICK_STORE?" in ran.stderr
    assert list(tmp_path.glob("*.db")) == []


def test_a_migration_that_fails_says_its_code(write_application: WriteApplication, tmp_path: Path) -> None:
    (tmp_path / "thumbs.db").write_bytes(b"this is no database, only a text" * 100)
    ran = CliRunner().invoke(main, ["migrate", "--app", write_application(SOUND)])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert re.match(r"[a-z_]+: ", ran.stderr)
    assert str(tmp_path / "thumbs.db") in ran.stderr


def test_a_server_that_can_lose_jobs_needs_the_operators_word(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = off'.encode())
    migrating = ["migrate", "--connection-stdin"]
    refused = CliRunner().invoke(main, migrating, input=empty_database)
    assert refused.exit_code == 1
    assert "synchronous_commit = off" in refused.stderr
    monkeypatch.setenv("RUNWICK_ALLOW_UNSAFE_DURABILITY", "true")
    ran = CliRunner().invoke(main, migrating, input=empty_database)
    assert (ran.exit_code, ran.stderr) == (0, "")
    password = empty_database.partition("@")[0].rpartition(":")[2]
    assert password not in refused.output + ran.output


def test_a_redis_server_that_can_lose_jobs_is_refused(bare_redis: str) -> None:
    migrating = ["migrate", "--connection-stdin", "--provider", "redis"]
    execute(bare_redis, "CONFIG", "SET", "appendfsync", "everysec")
    try:
        refused = CliRunner().invoke(main, migrating, input=bare_redis)
    finally:
        execute(bare_redis, "CONFIG", "SET", "appendfsync", "always")
    assert refused.exit_code == 1
    assert "appendfsync=everysec" in refused.stderr
    assert execute(bare_redis, "DBSIZE") == 0
    ran = CliRunner().invoke(main, migrating, input=bare_redis)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"store     redis {bare_redis.rpartition('@')[2]} ")
    password = bare_redis.partition("@")[0].rpartition(":")[2]
    assert password not in refused.output + ran.output


def test_an_environment_that_cannot_be_read_migrates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_ALLOW_UNSAFE_DURABILITY", "maybe")
    refused = CliRunner().invoke(main, ["migrate", "--connection-stdin"], input=f"sqlite:///{tmp_path}/thumbs.db")
    assert refused.exit_code == 2
    assert "expected true or false" in refused.stderr
    assert list(tmp_path.iterdir()) == []
