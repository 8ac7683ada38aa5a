"""One `runwick-supervise` under a benchmark's eyes: started, followed by its JSON lines, stopped for certain."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import click

EXECUTORS = 2
PROJECT = Path(__file__).parents[2]


class Supervised:
    """A running supervisor of `scripts.benchmarks.application`, or of another one; a context manager."""

    def __init__(
        self,
        url: str,
        *,
        until_empty: bool = True,
        application: str = "scripts.benchmarks.application",
        options: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        command = [sys.executable, "-m", "runwick_supervisor.command", application]
        command += ["--app-dir", str(PROJECT), "--executors", str(EXECUTORS), *options]
        # One that is watched tells its progress often; the others as rarely as it does for everybody.
        command += ["--log-format", "json", *(["--until-empty"] if until_empty else ["--progress-interval", "500ms"])]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, **environment, "RUNWICK_STORE": url},
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._rest = b""
        self.seen: list[dict[str, Any]] = []
        """Every event so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        while self._process.poll() is None:
            self._process.terminate()  # the first one drains, a second one kills
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                continue
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL, and see it gone."""
        self._process.kill()
        self._process.wait()

    def wait_for(self, event: str, *, since: int = 0, seconds: float = 600) -> dict[str, Any]:
        """The first event of this name among `seen` from index `since`, as soon as it is there.

        Raises:
            click.ClickException: it did not come in time, or the supervisor ended before.
        """
        deadline = time.monotonic() + seconds
        looked_at = since
        while True:
            for found in self.seen[looked_at:]:
                if found["event"] == event:
                    return found
            looked_at = len(self.seen)
            if not self._read(deadline - time.monotonic()):
                last = self.seen[-1] if self.seen else "nothing"
                raise click.ClickException(f"no event {event!r} from the supervisor; it said last: {last}")

    def take_in(self) -> None:
        """Let `seen` hold everything that was said by now."""
        while self._read(0):
            pass

    def _read(self, seconds: float) -> bool:
        """Take over what the supervisor said; False when nothing came in time or it has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if not selector.select(max(0.0, seconds)):
                return False
        said = os.read(self._out, 65_536)
        *lines, self._rest = (self._rest + said).split(b"\n")
        self.seen += [json.loads(line) for line in lines]
        return bool(said)


def completed(url: str, jobs: int) -> dict[str, Any]:
    """Let a supervisor empty the store; answers its summary.

    Raises:
        click.ClickException: other than exactly `jobs` jobs succeeded.
    """
    with Supervised(url) as supervised:
        summary = supervised.wait_for("summary")
    if summary["succeeded"] != jobs or summary["done"] != jobs:
        raise click.ClickException(f"{jobs} jobs were dispatched, but the supervisor says {summary}")
    return summary


def share_in_handlers(summary: dict[str, Any]) -> float:
    """The handlers' CPU time as a share of what the executors' cores could give from ready to the last settlement."""
    return float(summary["handler_cpu_s"] / (EXECUTORS * summary["elapsed_s"]))
