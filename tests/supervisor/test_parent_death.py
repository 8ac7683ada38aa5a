"""When the supervisor is killed, nothing of its family outlives it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.crew import ROOT, is_gone, until


@pytest.mark.parametrize("extra", [[], ["zygote"]], ids=["its first zygote", "a later zygote"])
def test_zygote_executors_and_what_handlers_started_die_with_the_supervisor(tmp_path: Path, extra: list[str]) -> None:
    command = [sys.executable, "-m", "tests.supervisor.supervised", str(tmp_path), *extra]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as parent:
        try:
            asyncio.run(until((tmp_path / "pids").exists, "the family"))
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            assert len(pids) == 5
            assert not any(is_gone(pid) for pid in pids)
        finally:
            parent.send_signal(signal.SIGKILL)
    asyncio.run(until(lambda: all(is_gone(pid) for pid in pids), f"{pids} to be gone"))
