"""What an executor leaves about its attempt: its last log lines, and its stack on demand or after a fault."""

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import ExecutorOptions
from runwick_supervisor.blackbox import LogTail
from tests.supervisor.applications.deeds import Chat, End, Endure
from tests.supervisor.crew import until
from tests.supervisor.single import single
from tests.supervisor.test_handoff import Ends


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    made.put(b"one")
    made.take()
    yield made
    made.close()


@pytest.fixture
def log(ends: Ends) -> Iterator[logging.Logger]:
    """A logger whose records are written into the ring of `ends`."""
    before = logging.getLogRecordFactory()
    LogTail(ends.executor.control).install()
    yield logging.getLogger("subject")
    logging.setLogRecordFactory(before)


class Raises:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Logs:
    """Logs while its text is made."""

    def __init__(self, log: logging.Logger) -> None:
        self.log = log

    def __str__(self) -> str:
        self.log.warning("within")
        return "itself"


def test_each_record_is_one_line_with_its_level_its_logger_and_what_was_raised(ends: Ends, log: logging.Logger) -> None:
    log.warning("%d of %d", 1, 2)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it failed")
    log.debug("nobody wants to hear this")
    first, second = ends.parent.log_lines().splitlines()
    assert first.endswith("WARNING subject: 1 of 2")
    assert second.endswith("ERROR subject: it failed (ValueError: broken)")


@pytest.mark.parametrize(
    ("message", "arguments", "line"),
    [
        ("%d", ("no number",), "%d (its arguments do not fit)"),
        ("%s", (Raises(),), "%s (its arguments do not fit)"),
        ("a\0b\ud800c", (), "a\ufffdb\ufffdc"),
    ],
)
def test_records_that_cannot_be_written_as_they_are(
    ends: Ends,
    log: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    arguments: tuple[object, ...],
    line: str,
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    log.warning(message, *arguments)
    assert ends.parent.log_lines().splitlines()[0].endswith(f"WARNING subject: {line}")


def test_a_line_is_cut_and_a_record_that_logs_itself_ends(ends: Ends, log: logging.Logger) -> None:
    log.warning("x" * 1_000_000)
    assert len(ends.parent.log_lines()) <= 1_025
    log.warning("%s", Logs(log))
    assert "WARNING subject: itself\n" in ends.parent.log_lines()


def test_a_killed_attempt_leaves_its_last_lines_and_the_next_none_of_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            await its.run(Chat(3, ""))
            assert its.end.log_lines() == "", "it has ended"
            its.put(Chat(2, str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            await its.kill()
            lines = its.end.log_lines().splitlines()
            assert [line.partition("WARNING ")[2] for line in lines] == ["deeds: line 0", "deeds: line 1"]

    asyncio.run(scene())


@pytest.mark.parametrize("how", ["python", "asleep", "in C"])
def test_the_stack_is_written_whatever_the_interpreter_does(tmp_path: Path, how: str) -> None:
    async def scene() -> None:
        async with single() as its:
            its.put(Endure(how, str(tmp_path / "started"), str(tmp_path / "seen")))
            await until((tmp_path / "started").exists, "the run")
            for _ in range(2):
                assert "most recent call first" in await its.stack("in endure")
            assert not (tmp_path / "seen").exists(), "it goes on"

    asyncio.run(scene())


WRITES_ON = """
import os, sys
while True:
    try:
        os.write(int(sys.argv[1]), b"x")
    except PermissionError:
        pass  # the end of the file
"""


def test_the_stack_is_cleared_while_another_one_is_being_written(ends: Ends) -> None:
    """Whoever writes moves the position that both share: what comes after that must stand at the start all the same."""
    descriptor = ends.parent.descriptors.stack
    writer = subprocess.Popen([sys.executable, "-c", WRITES_ON, str(descriptor)], pass_fds=[descriptor])

    async def scene() -> None:
        for _ in range(200):
            await until(ends.parent.stack, "what is written after it was cleared")
            ends.parent.clear_stack()

    try:
        asyncio.run(scene())
    finally:
        writer.kill()
        writer.wait()


def test_a_fault_leaves_its_stack(tmp_path: Path) -> None:
    async def scene() -> None:
        async with single() as its:
            its.end.clear_stack()
            its.put(End(signal.SIGSEGV))
            assert await its.death() == signal.SIGSEGV
            assert "Segmentation fault" in its.end.stack()
            assert "in end" in its.end.stack()

    asyncio.run(scene())


def oom_score_adj(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_an_executor_is_offered_to_the_kernel_before_others() -> None:
    async def scene() -> None:
        async with single() as its:
            assert oom_score_adj(its.pid) == max(oom_score_adj("self"), 500)
        async with single(ExecutorOptions(oom_score_adj=0)) as its:
            assert oom_score_adj(its.pid) == oom_score_adj("self"), "it is never lowered"

    asyncio.run(scene())
