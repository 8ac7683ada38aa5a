"""One campaign's ground: a store, clients that keep book, supervisors to be killed, and the history of it all."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from runwick.contracts.identity import id_bytes
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.chaos.application import LEASE_MS, NAME
from tests.chaos.book import Book, read_book, read_marks
from tests.chaos.clients import Client, Follower, now_ms, producer, scope
from tests.chaos.history import Fault, History, Residue
from tests.chaos.limit_log import log_postgres, log_sqlite, logging_redis
from tests.chaos.reading import Rows, postgres_rows, read_history, redis_rows, sqlite_rows
from tests.kills.fire import PATIENCE_S, ROOT, wait_for
from tests.redis.recount import recounted

EXECUTORS: Final = 3
"""Of both pools together."""
SHARED_MEMORY: Final = Path("/dev/shm")
_LOST: Final = re.compile(rb"\[1003\] job \S+ attempt (\S+) lost its lease")

_MENDED: Final = re.compile(rb"\[1021\] (\d+) scopes")


class Field:
    """A context manager; what is left of its processes and files at the end is gone.

    Args:
        store: ``sqlite``, ``postgres`` or ``redis``.
        seed: of the clients.
        clients: how many.
    """

    def __init__(self, store: str, seed: int, clients: int = 2) -> None:
        self.faults: list[Fault] = []
        self.residues: list[Residue] = []
        self._store = store
        self._seed = seed
        self._count = clients
        self._mended = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="runwick-chaos-", dir=place))
        self.folder = Path(folder)
        self.marks_log = self.folder / "marks.log"
        self.marks_log.touch()
        self.output = self.folder / "supervisors.log"
        self.output.touch()
        (self.folder / "run").mkdir(0o700)
        self.strikes = self.folder / "strikes"
        self.strikes.mkdir()
        self.server = self._open_server()
        self.path = self.folder / "jobs.db"
        match self.server:
            case PostgresServer() as server:
                self.url = server.create_database("chaos")
            case RedisServer() as server:
                self.url = server.url()
            case None:
                self.url = f"sqlite:///{self.path}"
        self.environment = {
            **os.environ,
            "RUNWICK_STORE": self.url,
            "RUNWICK_RUN_DIR": str(self.folder / "run"),
            "CHAOS_MARKS": str(self.marks_log),
            "CHAOS_STRIKES": str(self.strikes),
            "CHAOS_BOOK": str(self.folder / "book.log"),
            "CHAOS_FIELD": folder,
            # Whoever sets a title writes over the environment, by which processes are found, unless told not to.
            "SPT_NOENV": "1",
        }
        self.rw = producer(self.url)
        self._stack.callback(self.rw.close)
        self.rw.migrate()
        if self._store == "sqlite":
            log_sqlite(self.path)
        elif self._store == "postgres":
            log_postgres(self.url)
        self._stack.callback(self._kill_all)
        self.book = Book(self.folder / "book.log")
        self._stack.callback(self.book.close)
        self.clients = [Client(self.rw, self._seed * 1_000 + number, self.book) for number in range(self._count)]
        self.probe = Client(self.rw, self._seed * 1_000 + self._count, self.book)
        """Asks for what a campaign wants to be asked for; it does nothing by itself."""
        self.follower = Follower(self.rw)
        for thread in (*self.clients, self.follower):
            thread.start()
        self._stack.callback(self.quiet)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @contextlib.contextmanager
    def supervisor(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A supervisor in a session of its own; dead at the end, whatever happened."""
        process = self.start(*arguments)
        try:
            yield process
        finally:
            end(process)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.chaos.supervise", "tests.chaos.application:rw"]
        command += ["--log-format", "json", *arguments]
        with self.output.open("ab") as output:
            return subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=output, stderr=output, start_new_session=True
            )

    def start_server(self) -> None:
        """Start the server again after a crash."""
        assert self.server is not None
        self.server.start()
        if isinstance(self.server, RedisServer) and self.server.mended > self._mended:
            self._mended = self.server.mended
            self.fault("a write that the crash had cut in two, cut off by an operator")

    def fault(self, what: str) -> None:
        self.faults.append(Fault(what, now_ms()))

    def loaded(self, what: str, marks: int = 4) -> None:
        """Wait until runs have left so many more marks, of 150 bytes or more."""
        before = self.marks_log.stat().st_size

        def come() -> bool:
            failed = [client.failed for client in self.clients if client.failed]
            assert not failed, failed[0]
            return self.marks_log.stat().st_size > before + 150 * marks

        wait_for(come, what)

    def processes(self) -> list[psutil.Process]:
        """Every living process that belongs to this field, found by its environment."""
        mark = f"CHAOS_FIELD={self.folder}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                if mark in Path(f"/proc/{process.pid}/environ").read_bytes() and process.status() != "zombie":
                    found.append(process)
        return found

    def last_mark_ms(self) -> int:
        """When a run left its last mark."""
        return max(mark.at_ms for mark in read_marks(self.marks_log))

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """While clients rest and nothing is left to do."""
        for client in self.clients:
            client.rest()
        wait_for(lambda: self._left() == 0, "everything to be done")
        yield
        for client in self.clients:
            client.resume()

    def quiet(self) -> None:
        """Let the clients stop."""
        for client in self.clients:
            if client.is_alive():
                client.stop()
        if self.follower.is_alive():
            self.follower.stop()

    def drained(self) -> None:
        """Stop the clients, settle what they do not know, and let a last supervisor empty the store."""
        for client in self.clients:
            client.stop()
        for client in (*self.clients, self.probe):
            client.settle()
        until_s = time.monotonic() + PATIENCE_S
        while self._left():
            assert time.monotonic() < until_s, f"the store did not become empty: {self._left()} jobs are left"
            with self.supervisor("--until-empty") as last:
                last.wait(PATIENCE_S)
        self.follower.stop()
        wait_for(lambda: self.processes() == [], "every process to be gone")

    def history(self) -> History:
        """All of it, once it has come to rest."""
        lanes, kinds = scope(self.rw)
        output = self.output.read_bytes()
        lost = _LOST.findall(output)
        mended = sum(int(count) for count in _MENDED.findall(output))
        return read_history(
            self.rw.store,
            NAME,
            self._rows(),
            lanes=lanes,
            kinds=kinds,
            lines=read_book(self.folder / "book.log"),
            marks=read_marks(self.marks_log),
            followed=self.follower.events,
            declared_lost=frozenset(id_bytes(attempt.decode()) for attempt in lost),
            read_at_ms=now_ms(),
            lease_ms=LEASE_MS,
            faults=self.faults,
            residues=[*self.residues, *self._miscounted(), Residue("scopes that had to be set right", 0, mended)],
        )

    def _open_server(self) -> PostgresServer | RedisServer | None:
        match self._store:
            case "postgres":
                return self._stack.enter_context(PostgresServer())
            case "redis":
                self._stack.enter_context(logging_redis())
                return self._stack.enter_context(RedisServer())
            case _:
                return None

    def _rows(self) -> Rows:
        match self.server:
            case PostgresServer():
                return postgres_rows(self.url)
            case RedisServer() as server:
                return redis_rows(server, self.rw.store, NAME)
            case None:
                return sqlite_rows(self.path)

    def _miscounted(self) -> list[Residue]:
        """What is wrong in the indexes that Redis has no constraints for, each as something that is left over."""
        differences = recounted(self.server, NAME) if isinstance(self.server, RedisServer) else []
        return [Residue(f"indexes: {difference}", 0, 1) for difference in differences]

    def _left(self) -> int:
        outlook = self.rw.store.run(self.rw.store.outlook(NAME, *scope(self.rw)))
        return outlook.due + outlook.later + outlook.leased

    def _kill_all(self) -> None:
        while processes := self.processes():
            for process in processes:
                send(process, signal.SIGKILL)
            psutil.wait_procs(processes, 1)


def send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill it if it lives, and see it gone."""
    if process.poll() is None:
        process.kill()
    process.wait(PATIENCE_S)
