"""Dispatching from the workers of a pre-forking web server, which a real gunicorn is."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.dispatch.jobs import application, stored

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
POSTS = 40
AT_ONCE = 8

SETTINGS = ["--workers=2", "--graceful-timeout=20", "--no-control-socket"]
SHAPES = {
    "sync": ["--worker-class=sync"],
    "gthread": ["--worker-class=gthread", "--threads=4"],
}


@contextmanager
def gunicorn(store_url: str, folder: Path, *options: str) -> Iterator[int]:
    """Serve the application on loopback; answers the port. TERM stops it, and then every process of it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, descriptor = listening.getsockname()[1], listening.fileno()
        command = [sys.executable, "-m", "gunicorn", "tests.dispatch.served:app", *SETTINGS, *options]
        server = subprocess.Popen(
            [*command, f"--bind=fd://{descriptor}", f"--worker-tmp-dir={folder}"],
            cwd=ROOT,
            env={**os.environ, "RUNWICK_STORE": store_url},
            pass_fds=[descriptor],
            stderr=subprocess.PIPE,
            text=True,
        )
    processes = []
    try:
        yield port
        processes = psutil.Process(server.pid).children(recursive=True)
        server.send_signal(signal.SIGTERM)
        _, told = server.communicate(timeout=DEADLINE_S)
        assert server.returncode == 0, told
        assert "Traceback" not in told, told
    finally:
        server.kill()
        server.wait()
        _, left = psutil.wait_procs(processes, timeout=DEADLINE_S)
        assert left == []


def post(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        connection.request("POST", path)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return json.loads(text)
    finally:
        connection.close()


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["", "preload"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_answered_post_is_a_job(store_url: str, tmp_path: Path, shape: str, preload: list[str]) -> None:
    with (
        gunicorn(store_url, tmp_path, *SHAPES[shape], *preload) as port,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        answers = list(pool.map(lambda number: post(port, f"/{number}"), range(POSTS)))
    reader = application(store_url)
    jobs = [answer["job"] for answer in answers]
    assert [reader.get(job).job_id for job in jobs] == jobs
    assert len(set(jobs)) == POSTS
    imports = stored(reader) - POSTS  # without preloading, the second worker may have been stopped before its import
    assert imports == 1 if preload else imports in (1, 2)
    reader.close()
