"""HUP loads the application anew: nothing is lost, nothing runs twice, and what cannot change is refused by name."""

import contextlib
import json
import os
import signal
import subprocess
from typing import Any

import psutil
import pytest

from tests.command.conftest import APPLICATION, Place, executor_at_work, line_of, terminate, wait_for

FRESH = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Two writes of one module in one second must not be taken for one."""
TWO = APPLICATION.replace("return job.what", 'return "new " + job.what')
ANOTHER_KIND = """
@rw.job("errands.extra", queue="extras")
class Extra(Job):
    pass

@rw.handler
def extra(job: Extra) -> str:
    return "extra"
"""


def started(place: Place, *arguments: str, executors: str = "2") -> subprocess.Popen[str]:
    options = ("--executors", executors, "--log-format", "json", *arguments)
    supervisor = place.command("errands", *options, **FRESH)
    event_of(supervisor, "ready")
    return supervisor


def event_of(process: subprocess.Popen[str], *kinds: str) -> dict[str, Any]:
    while True:
        event: dict[str, Any] = json.loads(line_of(process))
        if event["event"] in kinds:
            return event


def reload(supervisor: subprocess.Popen[str]) -> dict[str, Any]:
    """Have it loaded anew; what it says of that."""
    supervisor.send_signal(signal.SIGHUP)
    return event_of(supervisor, "reloaded", "reload_refused")


def renewed(supervisor: subprocess.Popen[str]) -> None:
    """Have it loaded anew, and wait until nothing runs on the former code."""
    assert reload(supervisor)["event"] == "reloaded"
    event_of(supervisor, "renewed")


def done(errands: Any, *receipts: Any) -> list[Any]:
    wait_for(lambda: all(errands.rw.get(receipt).state == "succeeded" for receipt in receipts), "the ends of the jobs")
    return [errands.rw.get(receipt).result(str) for receipt in receipts]


def drained(supervisor: subprocess.Popen[str]) -> list[dict[str, Any]]:
    terminate(supervisor)
    out, err = supervisor.communicate(timeout=30)
    assert (supervisor.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def children(supervisor: subprocess.Popen[str], kind: str) -> list[int]:
    """Pids of its living children of this kind."""
    found = []
    for child in psutil.Process(supervisor.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            if f"runwick {kind}" in "".join(child.cmdline()):
                found.append(child.pid)
    return found


def zygotes(supervisor: subprocess.Popen[str]) -> list[int]:
    return children(supervisor, "zygote")


def test_new_runs_take_the_new_code_and_the_old_zygote_goes(place: Place, errands: Any) -> None:
    supervisor = started(place)
    assert done(errands, errands.rw.dispatch(errands.Run("a"))) == ["a"]
    (first,) = zygotes(supervisor)
    place.write(TWO)
    renewed(supervisor)
    (second,) = zygotes(supervisor)
    assert second != first
    assert done(errands, *(errands.rw.dispatch(errands.Run("b")) for _ in range(4))) == ["new b"] * 4
    drained(supervisor)


def test_a_long_run_ends_on_the_code_that_it_began_with(place: Place, errands: Any) -> None:
    supervisor = started(place)
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    wait_for((place.folder / "gate.started").exists, "the run")
    executor = executor_at_work(supervisor)
    place.write(TWO)
    for _ in range(2):
        assert reload(supervisor)["event"] == "reloaded"
    wait_for(lambda: len(zygotes(supervisor)) == 2, "the second zygote to go, before the first")
    assert psutil.pid_exists(executor)
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    gate.touch()
    assert done(errands, held) == ["hold"]
    wait_for(lambda: len(zygotes(supervisor)) == 1, "the first zygote to go")
    assert len(errands.rw.get(held).attempts) == 1
    drained(supervisor)


def test_reloads_under_load_lose_and_repeat_nothing(place: Place, errands: Any) -> None:
    supervisor = started(place)
    receipts = []
    for number in range(6):
        receipts += [errands.rw.dispatch(errands.Run(f"{number}.{index}")) for index in range(60)]
        place.write(TWO if number % 2 else APPLICATION)
        assert reload(supervisor)["event"] == "reloaded"
    results = done(errands, *receipts)
    assert {result.removeprefix("new ") for result in results} == {f"{n}.{i}" for n in range(6) for i in range(60)}
    assert all(len(errands.rw.get(receipt).attempts) == 1 for receipt in receipts)
    wait_for(lambda: len(zygotes(supervisor)) == 1, "the former zygotes to go")
    events = drained(supervisor)
    assert not {"executor_died", "lease_lost", "reload_failed"} & {event["event"] for event in events}


def test_a_new_kind_is_run_by_new_executors_alone(place: Place, errands: Any) -> None:
    supervisor = started(place)
    from runwick import Job

    @errands.rw.job("errands.extra", queue="extras")
    class Extra(Job):
        pass

    waiting = [errands.rw.dispatch(Extra()) for _ in range(20)]
    place.write(APPLICATION + ANOTHER_KIND)
    assert reload(supervisor)["event"] == "reloaded"
    assert done(errands, *waiting) == ["extra"] * 20
    assert all(len(errands.rw.get(receipt).attempts) == 1 for receipt in waiting)
    drained(supervisor)


def test_pools_come_go_and_change_their_sizes(place: Place, errands: Any) -> None:
    def pools(**sizes: int) -> None:
        queues = {"main": "errands", "side": "others", "wide": "others"}
        lines = [f"rw.pool('{name}', queues=('{queues[name]}',), concurrency={size})" for name, size in sizes.items()]
        place.write("\n".join([APPLICATION, *lines]))

    def change(**sizes: int) -> None:
        pools(**sizes)
        assert reload(supervisor)["event"] == "reloaded"
        done(errands, errands.rw.dispatch(errands.Run("b")), errands.rw.dispatch(errands.Run("b")))
        other = errands.rw.dispatch(errands.Other())
        wait_for(lambda: errands.rw.get(other).state == "succeeded", "the other queue")
        wanted = sum(sizes.values()) + 1
        wait_for(lambda: len(children(supervisor, "executor")) == wanted, "the sizes, and the one that is held")

    pools(main=1, side=1)
    supervisor = place.command("errands", "--log-format", "json", **FRESH)
    event_of(supervisor, "ready")
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    wait_for((place.folder / "gate.started").exists, "the run")
    change(main=2, side=1)
    change(main=2, wide=2)
    change(main=1, wide=3)
    gate.touch()
    done(errands, held)
    wait_for(lambda: len(children(supervisor, "executor")) == 4, "the held one to go")
    drained(supervisor)


def test_asking_while_it_is_loaded_makes_one_more_round(place: Place, errands: Any) -> None:
    supervisor = started(place)
    wait = "while not __import__('os').path.exists('go'): __import__('time').sleep(0.005)\n"
    place.write(wait + APPLICATION)
    supervisor.send_signal(signal.SIGHUP)
    wait_for(lambda: len(psutil.Process(supervisor.pid).children()) == 4, "the second zygote")
    for _ in range(3):
        supervisor.send_signal(signal.SIGHUP)
        supervisor.send_signal(signal.SIGUSR1)
    (place.folder / "go").touch()
    heard = sorted(event_of(supervisor, "reloaded", "renewed")["event"] for _ in range(4))
    assert heard == ["reloaded", "reloaded", "renewed", "renewed"]
    assert "reloaded" not in [event["event"] for event in drained(supervisor)]


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('Runwick("errands"', 'Runwick("letters"', "reload_refused application: errands → letters"),
        ("errands.db", "other.db", "reload_refused store: it is another one"),
        ('db")', 'db", worker=W(lease_duration=S(90)))', "reload_refused lease_duration: 1min → 90s"),
        ("import datetime", "import nothing_like_it, datetime", "import_failed errands: "),
        ("@rw.handler\ndef run", "@rw.handler\ndef run(job: Run) -> None: ...\n\n@rw.handler\ndef run", "_handler"),
    ],
)
def test_what_cannot_change_is_refused_by_name_and_everything_goes_on(
    place: Place, errands: Any, before: str, after: str, named: str
) -> None:
    supervisor = started(place)
    prelude = (
        "from runwick import WorkerOptions as W\nfrom datetime import timedelta\nS = lambda s: timedelta(seconds=s)\n"
    )
    place.write(prelude + APPLICATION.replace(before, after))
    refused = reload(supervisor)
    assert refused["event"] == "reload_refused"
    assert named in refused["text"]
    assert "db" not in refused["text"].partition("store: ")[2]
    assert len(zygotes(supervisor)) == 1
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["b"]
    place.write(TWO)
    renewed(supervisor)
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    drained(supervisor)


def test_a_dead_zygote_is_replaced_by_one_of_the_new_code(place: Place, errands: Any) -> None:
    supervisor = started(place)
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    wait_for((place.folder / "gate.started").exists, "the run")
    place.write(TWO)
    assert reload(supervisor)["event"] == "reloaded"
    for zygote in zygotes(supervisor):
        os.kill(zygote, signal.SIGKILL)
    event_of(supervisor, "zygote_replaced")
    gate.touch()
    event_of(supervisor, "renewed")
    assert done(errands, held) == ["hold"]
    assert done(errands, errands.rw.dispatch(errands.Run("b"))) == ["new b"]
    assert len(zygotes(supervisor)) == 1
    drained(supervisor)


def test_a_reload_during_the_drain_is_ignored_and_one_under_way_does_not_hold_it_up(place: Place, errands: Any) -> None:
    supervisor = started(place)
    place.write("import time\ntime.sleep(60)\n" + APPLICATION)
    supervisor.send_signal(signal.SIGHUP)
    wait_for(
        lambda: len(psutil.Process(supervisor.pid).children()) == 4, "the second zygote, which never ends importing"
    )
    terminate(supervisor)
    supervisor.send_signal(signal.SIGHUP)
    out, err = supervisor.communicate(timeout=30)
    assert (supervisor.returncode, err, "reload" in out) == (0, "", False)
