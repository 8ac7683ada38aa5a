"""The demo, cut short, from its start to the command that it leaves its reader with."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = 60


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_demo_examines_and_its_last_line_shows_one_job(store: str, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def printed(command: str) -> str:
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    shown = printed(f".venv/bin/python -m examples.stdlib.demo --store {store} --modules {MODULES}")
    assert re.search(rf"{MODULES} jobs in [\d.]+ s: .* of .* in handlers", shown)
    assert "failed" not in shown
    *_, command = shown.strip().splitlines()
    job = printed(command)
    assert "stdlib.examine" in job
    assert "succeeded" in job
