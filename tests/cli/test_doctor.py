"""``runwick doctor``: what is looked at, and that what was not is never called passed."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from tests.cli.conftest import Place
from tests.cli.ground import SECRET, answering, asked, run
from tests.redis.asking import execute

SERVER = ("server_reachable", "credentials", "api_version", "clock")
STORE = ("store_reachable", "store_revision", "store_durability")


def statuses(*arguments: str, status: int = 0) -> dict[str, str]:
    told = asked("doctor", *arguments, status=status)
    assert (told["error"] or {"code": "check_failed"})["code"] == "check_failed"
    return {each["name"]: each["status"] for each in told["result"]["checks"]}


def test_a_server_alone(server_place: Place) -> None:
    found = statuses()
    assert found == {**dict.fromkeys(SERVER, "passed"), **dict.fromkeys(STORE, "unverified")}
    assert "credentials       passed      signed in as ops" in run("doctor").stdout


def test_a_server_and_a_store(server_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_OF_THE_TEST", f"sqlite:///{tmp_path}/shop.db")
    assert set(statuses("--connection-env", "STORE_OF_THE_TEST").values()) == {"passed"}


def test_a_store_alone(sqlite_place: Place) -> None:
    found = statuses(*sqlite_place.options)
    assert found == {**dict.fromkeys(SERVER, "unverified"), **dict.fromkeys(STORE, "passed")}


def test_nothing_to_look_at_is_wrong_usage() -> None:
    assert asked("doctor", status=2)["error"]["code"] == "usage_error"


def test_what_depends_on_a_failed_check_is_unverified(
    server_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_OF_THE_TEST", f"sqlite:///{tmp_path}/nosuch.db")
    store = statuses("--connection-env", "STORE_OF_THE_TEST", status=1)
    assert [store[name] for name in STORE] == ["failed", "unverified", "unverified"]
    monkeypatch.setenv("SECRET_OF_THE_TEST", "wrong")
    assert [statuses(status=1)[name] for name in SERVER] == ["passed", "failed", "unverified", "unverified"]
    monkeypatch.delenv("SECRET_OF_THE_TEST")
    assert [statuses(status=1)[name] for name in SERVER] == ["unverified", "failed", "unverified", "unverified"]
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    away = statuses("--url", "http://127.0.0.1:9", status=1)
    assert [away[name] for name in SERVER] == ["failed", "unverified", "unverified", "unverified"]


def test_another_release_and_another_time_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def other(scope: Scope, receive: Receive, send: Send) -> None:
        said: Any = {"info": {"version": "99.0"}}
        date = {"Date": "Sun, 29 Nov 2026 12:00:00 GMT"}
        await JSONResponse(said, headers=date)(scope, receive, send)

    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    with answering(other, date_header=False) as address:
        found = statuses("--url", address, status=1)
    assert [found[name] for name in SERVER] == ["passed", "passed", "failed", "failed"]


def test_a_store_that_can_lose_jobs_fails(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_OF_THE_TEST", database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = off'.encode())
    found = asked("doctor", "--connection-env", "STORE_OF_THE_TEST", status=1)
    told = {each["name"]: each for each in found["result"]["checks"]}
    assert (told["store_revision"]["status"], told["store_durability"]["status"]) == ("passed", "failed")
    password = database.partition("@")[0].rpartition(":")[2]
    assert password not in str(found)


def test_a_redis_server_that_can_lose_jobs_fails(empty_redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_OF_THE_TEST", empty_redis)
    assert [statuses("--connection-env", "STORE_OF_THE_TEST")[name] for name in STORE] == ["passed"] * 3
    execute(empty_redis, "CONFIG", "SET", "appendfsync", "everysec")
    try:
        found = asked("doctor", "--connection-env", "STORE_OF_THE_TEST", status=1)
    finally:
        execute(empty_redis, "CONFIG", "SET", "appendfsync", "always")
    told = {each["name"]: each for each in found["result"]["checks"]}
    assert [told[name]["status"] for name in STORE] == ["passed", "passed", "failed"]
    assert "appendfsync=everysec" in told["store_durability"]["detail"]
    password = empty_redis.partition("@")[0].rpartition(":")[2]
    assert password not in str(found)
