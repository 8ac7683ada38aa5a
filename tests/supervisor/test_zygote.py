"""The zygote: what it answers, what it refuses, and how it is replaced."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from runwick.contracts.errors import ConfigurationError, Problem
from runwick_supervisor import zygote_handle
from runwick_supervisor.events import EventKind
from runwick_supervisor.link import Manifest
from runwick_supervisor.zygote_handle import Zygote
from tests.supervisor.applications.deeds import Echo, Hold
from tests.supervisor.crew import DEEDS, ROOT, Crew, crew, until

HEAD = """
import os
from runwick import Job, Runwick
rw = Runwick("here", store="sqlite:///here.db")
@rw.job("here.work", queue="benches")
class Work(Job):
    pass
@rw.handler
def work(job: Work) -> None: ...
"""


def boot(folder: Path, source: str, timeout_s: float = 20.0) -> Manifest:
    """Boot a zygote on an application of this source, and end it again."""
    (folder / "subject.py").write_text(source)

    async def scene() -> Manifest:
        zygote = Zygote()
        try:
            return await zygote.boot("subject", folder, timeout_s)
        finally:
            await zygote.stop()

    return asyncio.run(scene())


def problems(folder: Path, source: str, timeout_s: float = 20.0) -> tuple[Problem, ...]:
    """What the boot is refused for."""
    with pytest.raises(ConfigurationError) as refused:
        boot(folder, source, timeout_s)
    return refused.value.problems


def test_the_manifest_says_what_a_worker_needs(tmp_path: Path) -> None:
    manifest = boot(tmp_path, HEAD)
    assert manifest.application == "here"
    assert manifest.store is not None
    assert manifest.store.endswith("here.db")
    assert manifest.queues == ("benches",)
    assert [(kind.name, kind.version) for kind in manifest.kinds] == [("here.work", 1)]
    assert [lane.queue for lane in manifest.lanes] == ["benches"]
    assert [pool.name for pool in manifest.pools] == ["main"]
    assert manifest.worker.outstanding_max() == 16
    assert manifest.warnings == ()


def test_older_versions_that_can_be_upgraded_are_its_kinds_too(tmp_path: Path) -> None:
    source = """
from runwick import Job, Runwick
rw = Runwick("here", store="sqlite:///here.db")
class First(Job):
    size: int
@rw.job("here.work", version=2)
class Work(Job):
    megabytes: int
@rw.upgrade(Work, from_version=1)
def upgrade(first: First) -> Work:
    return Work(megabytes=first.size)
@rw.handler
def work(job: Work) -> None: ...
"""
    manifest = boot(tmp_path, source)
    assert [(kind.name, kind.version) for kind in manifest.kinds] == [("here.work", 1), ("here.work", 2)]


def test_how_strongly_executors_are_fenced_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert boot(tmp_path, HEAD).grade == "full"
    without = HEAD.replace('store="', 'executors=ExecutorOptions(compiled_part=False), store="')
    manifest = boot(tmp_path, without.replace("import Job", "import ExecutorOptions, Job"))
    assert (manifest.grade, manifest.warnings) == ("watched", ())
    assert not manifest.executors.compiled_part
    lost = "from runwick_supervisor import native\nnative.load = lambda: (None, 'it was lost')\n"
    manifest = boot(tmp_path, HEAD + lost)
    assert manifest.grade == "watched"
    assert "it was lost. Executors that outlive their leases are stopped by the zygote alone" in manifest.warnings[0]


def test_a_middleware_that_nobody_registered_is_a_problem_of_workers(tmp_path: Path) -> None:
    source = HEAD.replace('queue="benches"', 'queue="benches", middleware=("nobody",)')
    (problem,) = boot(tmp_path, source).problems
    assert "nobody" in problem.message


def test_a_manifest_never_shows_its_store() -> None:
    async def scene() -> str:
        zygote = Zygote()
        try:
            return repr(await zygote.boot(DEEDS, ROOT))
        finally:
            await zygote.stop()

    assert "sqlite" not in asyncio.run(scene())


def test_a_manifest_longer_than_a_packet_crosses(tmp_path: Path) -> None:
    many = "\n".join(f'rw.queue("{"q" * 100}{number}")' for number in range(3000))
    assert len(boot(tmp_path, HEAD + many).queues) == 3001


def test_threads_that_the_import_left_running_are_named(tmp_path: Path) -> None:
    source = "import threading\nthreading.Thread(target=threading.Event().wait, name='ticker', daemon=True).start()\n"
    (warning,) = boot(tmp_path, HEAD + source).warnings
    assert "importing subject left threads running: ticker." in warning


def test_everything_wrong_with_the_declarations_comes_at_once(tmp_path: Path) -> None:
    source = HEAD + "\n".join(
        [
            "@rw.handler",
            "def again(job: Work) -> None: ...",
            "rw.pool('main', queues=['nowhere'])",
        ]
    )
    assert {problem.code for problem in problems(tmp_path, source)} == {"duplicate_handler", "invalid_pool"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("raise ValueError('the reason')", "ValueError: the reason"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise type('Odd', (BaseException,), {'__str__': lambda self: 1 / 0})", "Odd"),
        (r"raise ValueError('\ud800\0' + 'x' * 100_000)", "xxx"),
        ("import nothing_of_this_name", "nothing_of_this_name"),
        ("os._exit(4)", "exited with status 4"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("import sys; os.write(int(sys.argv[1]), b'.junk')", "no message came"),
    ],
)
def test_an_import_that_fails_is_one_problem_with_its_reason(tmp_path: Path, line: str, expected: str) -> None:
    (problem,) = problems(tmp_path, f"import os\n{line}\n")
    assert (problem.code, problem.setting) == ("import_failed", "subject")
    assert expected in problem.message
    assert len(problem.message) < 10_000


def test_an_endless_import_is_ended(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "while True: pass\n", timeout_s=0.3)
    assert problem.code == "boot_timeout"
    assert "had not ended after 0.3 s" in problem.message


def test_what_does_not_exist_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        zygote = Zygote()
        try:
            await zygote.boot("nothing.here", tmp_path)
        finally:
            await zygote.stop()

    with pytest.raises(ConfigurationError) as refused:
        asyncio.run(scene())
    assert [problem.code for problem in refused.value.problems] == ["invalid_application"]


@pytest.mark.parametrize("line", ["os.fork()", "os.fork() or 1 / 0"], ids=["and goes on", "and fails"])
def test_an_import_that_forks_and_returns_twice_is_one_zygote(tmp_path: Path, line: str) -> None:
    (tmp_path / "subject.py").write_text(f"import os\n{line}\n{HEAD}")

    async def scene() -> None:
        async with crew(2, "subject", tmp_path) as its:
            assert len(its.executors) == 2
            assert its.heard(EventKind.BIRTH_FAILED) == []

    asyncio.run(scene())


def kill_zygote(its: Crew) -> int:
    """SIGKILL it; answers its pid."""
    assert its.zygote._running is not None
    pid = its.zygote._running.process.pid
    os.kill(pid, signal.SIGKILL)
    return pid


def test_executors_outlive_their_zygote_and_the_next_one_replaces_them(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            (held,) = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "gate")))
            await until((tmp_path / "started").exists, "a run")
            before = [executor.pid for executor in its.executors]
            kill_zygote(its)
            await until(lambda: its.heard(EventKind.ZYGOTE_DIED), "its death")
            assert await its.result(Echo("meanwhile")) == "meanwhile"
            await until(lambda: its.heard(EventKind.ZYGOTE_REPLACED), "the next zygote")
            assert [executor.pid for executor in its.executors] == before
            (tmp_path / "gate").touch()
            await until(lambda: held in its.outcomes, "the run to end")
            for pid in before:
                os.kill(pid, signal.SIGKILL)
            await until(lambda: len(its.heard(EventKind.EXECUTOR_REPLACED)) == 2, "replacements by the next zygote")
            assert await its.result(Echo("after")) == "after"

    asyncio.run(scene())


def test_a_zygote_that_dies_over_a_birth_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote_handle, "_FORK_TIMEOUT_S", 1000.0)

    async def scene() -> None:
        async with crew(1) as its:
            assert its.zygote._running is not None
            os.kill(its.zygote._running.process.pid, signal.SIGSTOP)
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(its.zygote.family.turn.locked, "the birth to be asked for")
            kill_zygote(its)
            await until(lambda: its.heard(EventKind.EXECUTOR_REPLACED), "a replacement by the next zygote")
            assert await its.result(Echo("after")) == "after"

    asyncio.run(scene())


def test_junk_from_the_zygote_costs_the_zygote_and_nothing_else() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            assert its.zygote._running is not None
            its.zygote._running.link._socket.send(b".junk")
            await until(lambda: its.heard(EventKind.ZYGOTE_REPLACED), "the next zygote")
            assert await its.result(Echo("unharmed")) == "unharmed"

    asyncio.run(scene())


def test_an_application_that_cannot_be_imported_again_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zygote_handle, "_RETRY_FIRST_S", 0.01)
    subject = tmp_path / "subject.py"
    subject.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom {DEEDS} import rw\n")

    async def scene() -> None:
        async with crew(1, target="subject", app_dir=tmp_path) as its:
            subject.write_text("raise ValueError('half a deployment')")
            kill_zygote(its)
            await until(lambda: len(its.heard(EventKind.ZYGOTE_FAILED)) >= 3, "three failed boots")
            assert "half a deployment" in its.heard(EventKind.ZYGOTE_FAILED)[0].text
            assert its.failures == [], "an executor lives"
            os.kill(its.executors[0].pid, signal.SIGKILL)
            await until(lambda: its.failures, "the backend to give up")
            subject.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom {DEEDS} import rw\n")
            await until(lambda: its.heard(EventKind.ZYGOTE_REPLACED), "the next zygote")
            await until(lambda: its.executors and its.executors[0].is_ready, "an executor")
            assert await its.result(Echo("back")) == "back"

    asyncio.run(scene())
