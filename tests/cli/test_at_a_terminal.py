"""What a terminal changes: colours, a hidden prompt, progress, and the live view."""

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from runwick.cli.tables import lay_out_table, terminal_text
from tests.cli.conftest import Place
from tests.cli.ground import RUNWICK, SECRET, Pack

WITHIN_S = 40


class Seen(NamedTuple):
    text: str
    status: int


def at_terminal(*arguments: str, until: Callable[[str], bool], types: bytes, cwd: Path) -> Seen:
    """What a command shows at a terminal; when it shows what is waited for, this is typed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "40"}
    process = subprocess.Popen(
        [str(RUNWICK), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        cwd=cwd,
        start_new_session=True,
    )
    os.close(theirs)
    text, is_typed, until_s = "", False, time.monotonic() + WITHIN_S
    try:
        while time.monotonic() < until_s:
            ready, _, _ = select.select([ours], [], [], 0.1)
            if ready:
                try:
                    text += os.read(ours, 65_536).decode(errors="replace")
                except OSError:
                    break  # it has ended
            if not is_typed and until(text):
                is_typed = True
                if types == b"\x03":
                    process.send_signal(2)  # the terminal is not its controlling one
                else:
                    os.write(ours, types)
        return Seen(text, process.wait(timeout=10))
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_secret_is_asked_for_and_not_shown(
    server_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SECRET_OF_THE_TEST")
    seen = at_terminal(
        "login", until=lambda text: "password of ops" in text, types=SECRET.encode() + b"\n", cwd=tmp_path
    )
    assert (seen.status, "signed in" in seen.text) == (0, True)
    assert SECRET not in seen.text


def test_top_is_live_until_ctrl_c(server_place: Place, tmp_path: Path) -> None:
    seen = at_terminal(
        "top", "--every", "500ms", until=lambda text: text.count("executors busy") > 2, types=b"\x03", cwd=tmp_path
    )
    assert seen.status == 130
    assert "\x1b[?1049h" in seen.text
    assert "\x1b[?1049l" in seen.text, "the screen is given back"
    assert "Traceback" not in seen.text


def test_a_listing_has_colours(server_place: Place, tmp_path: Path) -> None:
    server_place.rw.dispatch(Pack(1))
    seen = at_terminal("queues", "list", until=lambda text: False, types=b"", cwd=tmp_path)
    assert (seen.status, "\x1b[1m" in seen.text) == (0, True)


def test_many_commands_show_how_far_they_are(server_place: Place, tmp_path: Path) -> None:
    ids = [server_place.rw.dispatch(Pack(1)).job_id for _ in range(101)]
    lines = [f'{{"jobId": "{each}", "expectedGeneration": 1, "expectedRevision": 1}}\n' for each in ids]
    (tmp_path / "stuck.jsonl").write_text("".join(lines))
    command = ("jobs", "cancel-many", "--file", "stuck.jsonl")
    seen = at_terminal(*command, until=lambda text: False, types=b"", cwd=tmp_path)
    assert (seen.status, "cancelling" in seen.text, "101 cancelled" in seen.text) == (0, True, True)


def test_nothing_in_a_table_moves_the_cursor() -> None:
    table = lay_out_table(["name"], [["a\x1b[2J\u202eb"], ["plain"]])
    assert "\x1b[2J" not in table
    assert "\u202e" not in table
    assert terminal_text("a\x1b[2J\r\u202eb\nc\td\x85") == "a\\x1b[2J\\r\\u202eb\nc\td\\x85"
