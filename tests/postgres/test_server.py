"""The tests' own server: real, restartable, and gone without a trace when its owner is."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import psycopg
import pytest

from scripts.servers import keeper
from scripts.servers import postgres as servers
from scripts.servers.postgres import PostgresServer
from tests.postgres.asking import eventually

ROOT = Path(servers.__file__).parents[2]
OWNER = """
import os, sys, time
from scripts.servers.postgres import PostgresServer
with PostgresServer() as server:
    if sys.argv[1] == "kill the server first":
        server.kill()
    if sys.argv[1] == "fork" and os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    print(server.folder, server.port, *server.pids(), flush=True)
    sys.stdin.read()
"""


def segment(folder: Path) -> str:
    """The number of the shared memory that would outlive a killed server."""
    return (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]


def segments() -> set[str]:
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}


def test_it_answers_on_loopback_alone(postgres: PostgresServer) -> None:
    assert postgres.execute("SHOW listen_addresses") == [("127.0.0.1",)]
    assert postgres.execute("SELECT 1; SELECT 2") == [(2,)]
    assert postgres.execute("SHOW fsync") == [("on",)]


def test_nobody_gets_in_without_a_password(postgres: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.url(password="guessed"))


def test_a_database_is_a_copy_of_its_template(postgres: PostgresServer) -> None:
    url = postgres.create_database("original")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    postgres.create_database("copied", template="original")
    assert postgres.execute("SELECT number FROM kept", "copied") == [(7,)]
    with psycopg.connect(postgres.url("copied")):
        postgres.drop_database("copied")
    postgres.drop_database("original")
    assert postgres.execute("SELECT 1 FROM pg_database WHERE datname IN ('copied', 'original')") == []


@pytest.mark.parametrize("ending", ["fast", "immediate", "kill"])
def test_it_starts_again_on_the_same_port_with_what_was_committed(ending: str) -> None:
    with PostgresServer() as server:
        server.execute("CREATE TABLE kept AS SELECT 7 AS number")
        url, before = server.url(), server.pids()
        if ending == "kill":
            server.kill()
        else:
            server.stop("immediate" if ending == "immediate" else "fast")
        assert server.pids() == []
        server.start()
        assert server.pid == server.pids()[0]
        assert not set(before) & set(server.pids())
        assert server.url() == url
        assert server.execute("SELECT number FROM kept") == [(7,)]


def test_it_leaves_nothing_behind() -> None:
    with PostgresServer() as server:
        pids, folder, memory = server.pids(), server.folder, segment(server.folder)
        assert memory in segments()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not folder.exists()
    assert memory not in segments()


@pytest.mark.parametrize("how", ["plainly", "fork", "kill the server first"])
def test_it_goes_when_its_owner_is_killed(how: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, how], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder, port, *pids = owner.stdout.readline().split()
        memory = segment(Path(folder))
        owner.kill()
        eventually(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids), "its processes end")
        eventually(lambda: not Path(folder).exists(), "its files go")
    assert memory not in segments()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_it_goes_although_it_was_stopped() -> None:
    with PostgresServer() as server:
        pids = server.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_process_that_ends_meanwhile_does_not_keep_the_others() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        ended, alive = psutil.Popen(["true"]), psutil.Process(other.pid)
        ended.wait()
        keeper._send(signal.SIGKILL, [ended, alive])
    assert other.returncode == -signal.SIGKILL


def test_it_outlives_the_thread_that_started_it() -> None:
    with PostgresServer() as server:
        server.stop()
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        assert server.execute("SELECT 1") == [(1,)]


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="unrecognized configuration parameter"), PostgresServer(settings={"x": "y"}):
        pass


def test_binaries_that_the_servers_user_could_not_read_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "is_open_to_all", lambda path: False)
    copied = servers._binaries(True, tmp_path)
    assert tmp_path in copied.parents
    assert "18" in subprocess.check_output([copied / "initdb", "--version"], text=True)
