"""The README's first job and its test, run as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_first_job_and_its_test_work_as_printed(tmp_path: Path) -> None:
    (job,) = [block for block in blocks("python") if "# thumbs/jobs.py" in block]
    (test,) = [block for block in blocks("python") if "def test_" in block]
    (tmp_path / "thumbs").mkdir()
    (tmp_path / "thumbs" / "jobs.py").write_text(job)
    (tmp_path / "test_thumbs.py").write_text(test)
    (commands,) = [block for block in blocks("console") if "runwick migrate --app thumbs.jobs" in block]
    migrate, dispatch, supervise, get = [line[2:].split("  #")[0] for line in commands.splitlines() if line[0] == "$"]

    def run(command: str) -> str:
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert "revision" in run(migrate)
    receipt = run(dispatch)
    assert receipt.startswith("Receipt(job_id=")
    assert "1 succeeded" in run(f"{supervise.strip()} --until-empty")
    job_id = re.search(r"job_id=([0-9a-f-]{36})", receipt)
    assert job_id is not None
    assert "succeeded" in run(re.sub(r"0199c0de-…", job_id[1], get))
    assert "1 passed" in run(f"{sys.executable} -m pytest -q -p no:cacheprovider test_thumbs.py")
