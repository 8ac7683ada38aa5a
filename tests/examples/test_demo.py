"""The demo, cut short, from its start to the commands that it leaves its reader with."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
MODULES = 60


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_the_demo_examines_and_its_last_lines_show_one_job_and_the_dashboard(store: str, tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def printed(command: str) -> str:
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    shown = printed(f".venv/bin/python -m examples.stdlib.demo --store {store} --modules {MODULES}")
    assert re.search(rf"{MODULES} jobs in [\d.]+ s: .* of .* in handlers", shown)
    assert "failed" not in shown
    *_, for_job, words, for_dashboard = shown.strip().splitlines()
    job = printed(for_job)
    assert "stdlib.examine" in job
    assert "succeeded" in job
    assert words == "All of them in a browser, signed in by the link that this prints:"
    assert "stdlib.examine" in seen_in_a_browser(f"{for_dashboard} --port 0", tmp_path, environment)


def seen_in_a_browser(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What the dashboard that this serves shows of jobs; it is stopped then, and ends well."""
    program = shlex.split(command)
    with subprocess.Popen(
        program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, process_group=0
    ) as web:
        try:
            assert web.stdout is not None
            link = next(line.strip() for line in web.stdout if "/sign-in?" in line)
            with httpx.Client(follow_redirects=True, timeout=30, trust_env=False) as browser:
                assert browser.get(link).status_code == 200
                page = browser.get(httpx.URL(link).join("/jobs"))
                assert page.status_code == 200
            web.send_signal(signal.SIGTERM)
            assert web.wait(timeout=30) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(web.pid, signal.SIGKILL)
    return page.text
