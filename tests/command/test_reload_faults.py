"""HUP while things go wrong: signals at once, processes that stand still or die, imports that never end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from runwick.contracts.controls import ManagementActor
from tests.command.conftest import APPLICATION, Place, executor_at_work, terminate, wait_for
from tests.command.reloading import TWO, children, done, drained, event_of, reload, renewed, started, zygotes

GATED = "while not __import__('os').path.exists('go'): __import__('time').sleep(0.005)\n"
"""Before an application: its import does not end until it may."""
NOTED = APPLICATION.replace(
    "-> str:\n", "-> str:\n    with open('begun', 'a') as begun:\n        begun.write(f'{job.what}\\n')\n"
)
"""Writes down what it begins."""
IMPATIENT = """
from pathlib import Path
from runwick_supervisor import command, supervision
from runwick_supervisor.zygote_handle import Zygote

class Impatient(Zygote):
    async def boot(self, target, app_dir):
        return await super().boot(target, app_dir, 2.0 if Path("hurry").exists() else 60.0)

supervision.Zygote = Impatient
command.main()
"""
"""The command, whose zygotes may take two seconds to import the application while they shall hurry."""
LOOP = "            time.sleep(0.005)\n"
DEAF = """
            try:
                time.sleep(0.005)
            except BaseException:
                pass
"""
OPERATOR = ManagementActor("ops-bot", "Ops bot", "service")
RELOADS = 18
FIRST = 6


def importing(supervisor: subprocess.Popen[str]) -> psutil.Process:
    """The second zygote, as soon as there is one."""
    known = {child.pid for child in psutil.Process(supervisor.pid).children()}
    supervisor.send_signal(signal.SIGHUP)

    def new() -> list[psutil.Process]:
        return [child for child in psutil.Process(supervisor.pid).children() if child.pid not in known]

    wait_for(new, "the second zygote")
    return new()[0]


def held_by(place: Place, errands: Any, supervisor: subprocess.Popen[str]) -> tuple[Any, int]:
    """A job that holds an executor until there is a gate, and the executor's pid."""
    held = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    wait_for((place.folder / "gate.started").exists, "the run")
    return held, executor_at_work(supervisor)


def belongings(supervisor: subprocess.Popen[str]) -> Counter[str]:
    """What the parent has of processes, shared memory and descriptors, by kind. Left out are the connections of the
    store, which come with the load and stay, and what a sweep opens for a moment."""
    folder = Path(f"/proc/{supervisor.pid}")
    kinds: Counter[str] = Counter()
    for descriptor in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            name = str(descriptor.readlink())
            if "errands.db" not in name and (not name.startswith("/proc") or name.endswith("/statm")):
                kinds["statm" if name.endswith("/statm") else name.partition(":[")[0]] += 1
    maps = (folder / "maps").read_text()
    family = psutil.Process(supervisor.pid).children(recursive=True)
    return kinds + Counter({"mapped": maps.count("/memfd:"), "processes": len(family)})


class Stream:
    """Short jobs, one after the other, until it ends."""

    def __init__(self, errands: Any) -> None:
        self._errands = errands
        self._enough = threading.Event()
        self.receipts: list[Any] = []
        self._thread = threading.Thread(target=self._flow)
        self._thread.start()

    def _flow(self) -> None:
        while not self._enough.wait(0.005):
            self.receipts.append(self._errands.rw.dispatch(self._errands.Run(str(len(self.receipts)))))

    def end(self) -> list[Any]:
        self._enough.set()
        self._thread.join()
        return self.receipts


def test_many_reloads_under_load_lose_and_leave_nothing(place: Place, errands: Any) -> None:
    place.write(NOTED)
    supervisor = started(place)
    stream = Stream(errands)
    try:
        for _ in range(FIRST):
            renewed(supervisor)
        before, rss = belongings(supervisor), psutil.Process(supervisor.pid).memory_info().rss
        for _ in range(RELOADS - FIRST):
            renewed(supervisor)
        wait_for(lambda: belongings(supervisor) == before, "nothing more than before")
        assert psutil.Process(supervisor.pid).memory_info().rss < rss + 8 * 1024 * 1024
        assert psutil.Process(supervisor.pid).num_threads() <= 2 + min(32, (os.cpu_count() or 1) + 4)
    finally:
        receipts = stream.end()
    done(errands, *receipts)
    assert all(len(errands.rw.get(receipt).attempts) == 1 for receipt in receipts)
    begun = (place.folder / "begun").read_text().split()
    assert sorted(map(int, begun)) == list(range(len(receipts))), "each of them was begun once"
    heard = Counter(event["event"] for event in drained(supervisor))
    assert set(heard) <= {"draining", "summary", "progress"}


@pytest.mark.parametrize("times", [2, 5])
def test_several_hups_at_once_make_two_rounds_at_most(place: Place, errands: Any, times: int) -> None:
    supervisor = started(place)
    stream = Stream(errands)
    place.write(TWO)
    for _ in range(times):
        supervisor.send_signal(signal.SIGHUP)
    event_of(supervisor, "reloaded")
    receipts = stream.end()
    done(errands, *receipts)
    assert all(len(errands.rw.get(receipt).attempts) == 1 for receipt in receipts)
    wait_for(lambda: len(zygotes(supervisor)) == 1, "the former zygotes to go")
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    heard = Counter(event["event"] for event in drained(supervisor))
    assert heard["reloaded"] <= 1
    assert not {"executor_died", "birth_failed", "reload_refused", "reload_failed"} & set(heard)


def test_executors_that_stand_still_hold_no_reload_up(place: Place, errands: Any) -> None:
    supervisor = started(place)
    held, busy = held_by(place, errands, supervisor)
    former = children(supervisor, "executor")
    for executor in former:
        os.kill(executor, signal.SIGSTOP)
    place.write(TWO)
    assert reload(supervisor)["event"] == "reloaded"
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    assert psutil.pid_exists(busy)
    (place.folder / "gate").touch()
    for executor in former:
        os.kill(executor, signal.SIGCONT)
    assert done(errands, held) == ["hold"]
    event_of(supervisor, "renewed")
    assert not set(former) & set(children(supervisor, "executor"))
    assert "executor_died" not in [event["event"] for event in drained(supervisor)]


def test_term_while_executors_are_exchanged_ends_everything_in_order(place: Place, errands: Any) -> None:
    supervisor = started(place)
    stream = Stream(errands)
    place.write(GATED + TWO)
    family = [importing(supervisor), *psutil.Process(supervisor.pid).children()]
    (place.folder / "go").touch()
    event_of(supervisor, "reloaded")
    terminate(supervisor)
    out, err = supervisor.communicate(timeout=30)
    receipts = stream.end()
    assert (supervisor.returncode, err) == (0, "")
    assert "executor_died" not in out
    assert {errands.rw.get(receipt).state for receipt in receipts} <= {"succeeded", "pending"}
    assert not any(process.is_running() for process in family)


def test_the_former_zygote_dies_while_the_next_one_imports(place: Place, errands: Any) -> None:
    supervisor = started(place)
    (first,) = zygotes(supervisor)
    place.write(GATED + TWO)
    importing(supervisor)
    os.kill(first, signal.SIGKILL)
    event_of(supervisor, "zygote_died")
    assert done(errands, errands.rw.dispatch(errands.Run("a"))) == ["a"], "executors go on without any zygote"
    (place.folder / "go").touch()
    event_of(supervisor, "renewed")
    assert done(errands, *(errands.rw.dispatch(errands.Run("b")) for _ in range(4))) == ["new b"] * 4
    wait_for(lambda: len(zygotes(supervisor)) == 1, "the former zygote to go")
    heard = Counter(event["event"] for event in drained(supervisor))
    assert not {"zygote_died", "birth_failed", "executor_died", "reload_failed"} & set(heard)


def test_a_zygote_that_is_killed_while_it_imports_changes_nothing(place: Place, errands: Any) -> None:
    supervisor = started(place)
    held, _ = held_by(place, errands, supervisor)
    place.write(GATED + TWO)
    importing(supervisor).kill()
    refused = event_of(supervisor, "reloaded", "reload_refused")
    assert refused["event"] == "reload_refused"
    assert "import_failed errands: the process that imported it gave no answer: killed by SIGKILL" in refused["text"]
    assert done(errands, errands.rw.dispatch(errands.Run("a"))) == ["a"]
    (place.folder / "go").touch()
    assert reload(supervisor)["event"] == "reloaded"
    (place.folder / "gate").touch()
    assert done(errands, held) == ["hold"]
    event_of(supervisor, "renewed")
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    assert not {"zygote_died", "reload_refused"} & {event["event"] for event in drained(supervisor)}


def test_an_import_that_never_ends_is_given_up_and_the_next_hup_works(place: Place, errands: Any) -> None:
    place.program = (sys.executable, "-c", IMPATIENT)
    supervisor = started(place)
    place.write(GATED + TWO)
    (place.folder / "hurry").touch()
    endless = importing(supervisor)
    assert done(errands, errands.rw.dispatch(errands.Run("a"))) == ["a"]
    refused = event_of(supervisor, "reloaded", "reload_refused")
    assert refused["event"] == "reload_refused"
    assert [problem["code"] for problem in refused["problems"]] == ["boot_timeout"]
    assert "the import had not ended after 2 s" in refused["text"]
    assert not endless.is_running()
    (place.folder / "hurry").unlink()
    assert done(errands, errands.rw.dispatch(errands.Run("a"))) == ["a"]
    (place.folder / "go").touch()
    renewed(supervisor)
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    assert "reload_refused" not in [event["event"] for event in drained(supervisor)]


def test_a_long_run_is_watched_looked_at_and_cancelled_after_the_hand_over(place: Place, errands: Any) -> None:
    supervisor = started(place)
    held, busy = held_by(place, errands, supervisor)
    place.write(TWO)
    assert reload(supervisor)["event"] == "reloaded"
    rw, since = errands.rw, errands.rw.workers()[0].seen_at

    def seen() -> bool:
        (worker,) = rw.workers()
        return worker.seen_at > since and busy in [one.process for one in worker.executors if one.job_id == held.job_id]

    wait_for(seen, "what the executor of before does now")
    seen_in: list[str] = []

    def looked() -> bool:
        result = rw.controls.look(rw.get(held).target, OPERATOR)
        seen_in[:] = [result.attempt_id] if result.attempt_id else []
        return bool(seen_in)

    wait_for(looked, "the mark of its beginning")
    wait_for(lambda: rw.controls.stack(*seen_in), "its stack")
    assert "errands.py" in rw.controls.stack(*seen_in)
    assert rw.controls.cancel(rw.get(held).target, OPERATOR).cancel_requested
    wait_for(lambda: rw.get(held).state == "cancelled", "its end")
    event_of(supervisor, "renewed")
    assert len(rw.get(held).attempts) == 1
    drained(supervisor)


def test_the_time_limit_of_a_long_run_holds_after_the_hand_over(
    place: Place, application: Callable[[str, str], Any]
) -> None:
    limited = "max_executions=1, execution_timeout=datetime.timedelta(seconds=5)"
    stubborn = APPLICATION.replace("max_executions=2, retry_delay=(datetime.timedelta(milliseconds=1),) * 2", limited)
    stubborn = stubborn.replace(LOOP, DEAF)
    errands = application("errands", stubborn)
    supervisor = started(place, RUNWICK_CANCELLATION_GRACE="200ms", RUNWICK_CLEANUP_BUDGET="200ms")
    held, _ = held_by(place, errands, supervisor)
    place.write(stubborn.replace("return job.what", 'return "new " + job.what'))
    assert reload(supervisor)["event"] == "reloaded"
    assert errands.rw.get(held).state == "running"
    assert event_of(supervisor, "executor_stopped", "renewed")["event"] == "executor_stopped"
    wait_for(lambda: errands.rw.get(held).state == "failed", "its end")
    assert [attempt.outcome for attempt in errands.rw.get(held).attempts] == ["timed_out"]
    event_of(supervisor, "renewed")
    drained(supervisor)
