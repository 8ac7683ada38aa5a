"""Processes of one application in their roles, on one store; and what the ledger must say in the end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import Runwick
from tests.shapes.shop import contracts

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0


class Process:
    """One of them."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._popen = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def until(self, line: str) -> list[str]:
        """What it prints up to this line."""
        assert self._popen.stdout is not None
        seen = []
        for printed in self._popen.stdout:
            seen.append(printed.strip())
            if line in printed:
                return seen[:-1]
        raise AssertionError(f"it ended: {seen}, {self.rest()}")

    def rest(self) -> str:
        """What it prints until it ends, which must be a success."""
        out, err = self._popen.communicate(timeout=PATIENCE_S)
        assert self._popen.returncode == 0, err
        return out

    def terminate(self) -> None:
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.communicate()


class Site:
    """A store, and everything that runs on it."""

    def __init__(self, store: str, folder: Path) -> None:
        self._ledger = folder / "ledger"
        self._environment = {"RUNWICK_STORE": store, "LEDGER": str(self._ledger)}
        self._started: list[Process] = []
        self.rw = Runwick("shop", store=store)
        self.rw.add_jobs(contracts)

    def web(self, count: int) -> list[str]:
        """A process that only dispatches, to its end; answers the jobs' ids."""
        return self.start_web(count).rest().split()

    def start_web(self, count: int) -> Process:
        return self._start(sys.executable, "-m", "tests.shapes.shop.web", str(count))

    def start_both(self, count: int) -> Process:
        return self._start(sys.executable, "-m", "tests.shapes.shop.both", str(count))

    def start_worker(self, *arguments: str) -> Process:
        worker = self._start(str(BIN / "runwick"), "worker", "tests.shapes.shop.work", *arguments)
        worker.until("ready in")
        return worker

    def start_supervisor(self, *arguments: str) -> Process:
        supervisor = self._start(str(BIN / "runwick-supervise"), "tests.shapes.shop.work", *arguments)
        supervisor.until("ready in")
        return supervisor

    def ledger(self) -> list[tuple[str, str, int]]:
        """Job, queue and process of every run so far."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        return [(job, queue, int(pid)) for job, queue, pid in (line.split() for line in lines)]

    def assert_each_ran_once(self, jobs: list[str]) -> None:
        """Wait until all of these have succeeded; each in one attempt, and nothing else ran."""
        until_s = time.monotonic() + PATIENCE_S
        assert len(set(jobs)) == len(jobs) > 0
        views = []
        for job in jobs:
            while not (view := self.rw.get(job)).state.terminal:
                assert time.monotonic() < until_s, f"{view} has not ended"
                time.sleep(0.005)
            views.append(view)
        assert {view.state.value for view in views} == {"succeeded"}
        assert {len(view.attempts) for view in views} == {1}
        assert Counter(job for job, _, _ in self.ledger()) == dict.fromkeys(jobs, 1)

    def end(self) -> None:
        for process in self._started:
            process.kill()
        self.rw.close()

    def _start(self, *command: str) -> Process:
        process = Process(list(command), self._environment)
        self._started.append(process)
        return process


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def site(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.delenv("RUNWICK_STORE", raising=False)
    served = {"postgres": "database", "redis": "empty_redis"}.get(request.param)
    store = request.getfixturevalue(served) if served else f"sqlite:///{tmp_path}/shop.db"
    site = Site(store, tmp_path)
    site.rw.migrate()
    with contextlib.closing(site.rw):
        yield site
        site.end()
