"""The whole of it with one system: ourselves, on a file."""

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from scripts.peers.system import PROJECT


def peers(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "scripts.peers", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=110)


def test_a_run_in_part_writes_a_page_and_leaves_nothing_behind(tmp_path: Path) -> None:
    chosen = ["--system", "runwick-sqlite", "--measure", "noop", "--measure", "kills"]
    ended = peers(*chosen, "--quick", "--to", str(tmp_path / "page"), "--dir", str(tmp_path / "files"))
    assert (ended.returncode, ended.stdout) == (0, f"written: {tmp_path}/page/README.md\n"), ended.stderr
    told = json.loads((tmp_path / "page" / "results.json").read_text())
    (noop,) = told["measures"]["noop"]["systems"]["runwick-sqlite"]["rounds"]
    (kills,) = told["measures"]["kills"]["systems"]["runwick-sqlite"]["rounds"]
    assert noop["jobs_per_s"] > 0
    assert (noop["left"], noop["processes"]) == (0, 2)
    assert kills["child_again_s"] > 0
    assert kills["worker_again_s"] > 0
    assert (kills["child_others_late"], kills["worker_others_late"]) == (0, 0)
    assert "This run only tried whether everything runs" in (tmp_path / "page" / "README.md").read_text()
    assert list((tmp_path / "files").iterdir()) == []
    assert [
        one.pid for one in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(one.info["cmdline"] or [])
    ] == []


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["--system", "nobody"], "'nobody' is not one of"),
        (["--measure", "speed"], "'speed' is not one of"),
        (["--rounds", "0"], "0 is not in the range x>=1"),
        (["--minutes", "0"], "0.0 is not in the range x>0"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: list[str], refusal: str) -> None:
    ended = peers(*arguments)
    assert ended.returncode == 2
    assert refusal in ended.stderr
