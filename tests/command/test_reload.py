"""HUP loads the application anew: nothing is lost, nothing runs twice, and what cannot change is refused by name."""

import os
import signal
from typing import Any

import psutil
import pytest

from tests.command.conftest import APPLICATION, Place, executor_at_work, terminate, wait_for
from tests.command.reloading import FRESH, TWO, children, done, drained, event_of, reload, renewed, started, zygotes

ANOTHER_KIND = """
@rw.job("errands.extra", queue="extras")
class Extra(Job):
    pass

@rw.handler
def extra(job: Extra) -> str:
    return "extra"
"""


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
        wait_for(lambda: len(children(supervisor, "executor")) == sum(sizes.values()), "the sizes")

    pools(main=1, side=1)
    supervisor = place.command("errands", "--log-format", "json", **FRESH)
    event_of(supervisor, "ready")
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    wait_for((place.folder / "gate.started").exists, "the run")
    change(main=2, side=1)
    change(main=2, wide=2)
    change(main=3, wide=1)
    gate.touch()
    done(errands, held)
    change(main=1, wide=3)
    drained(supervisor)


def resized(place: Place, size: int) -> None:
    pools = (
        f"rw.pool('main', queues=('errands',), concurrency={size})",
        "rw.pool('side', queues=('others',), concurrency=1)",
    )
    place.write("\n".join([APPLICATION, *pools]))


class Gates:
    """Jobs that run until they are let through, each at a gate of its own."""

    def __init__(self, place: Place, errands: Any) -> None:
        self._folder = place.folder
        self._errands = errands
        self.receipts: dict[str, Any] = {}

    def send(self, *names: str) -> None:
        for name in names:
            self.receipts[name] = self._errands.rw.dispatch(self._errands.Run("hold", str(self._folder / name)))

    def begun(self) -> set[str]:
        return {name for name in self.receipts if (self._folder / f"{name}.started").exists()}

    def open(self, *names: str) -> None:
        for name in names:
            (self._folder / name).touch()
        done(self._errands, *(self.receipts[name] for name in names))


def test_a_pool_that_shrinks_begins_nothing_until_fewer_run_than_its_size_says(place: Place, errands: Any) -> None:
    resized(place, 3)
    supervisor = place.command("errands", "--log-format", "json", **FRESH)
    event_of(supervisor, "ready")
    gates = Gates(place, errands)
    gates.send("a", "b", "c")
    wait_for(lambda: gates.begun() == set("abc"), "three runs")
    resized(place, 1)
    assert reload(supervisor)["event"] == "reloaded"
    gates.send("d", "e")
    gates.open("b")
    wait_for(lambda: len(children(supervisor, "executor")) == 3, "its executor to go")
    gates.open("a")
    wait_for(lambda: len(children(supervisor, "executor")) == 2, "its executor to go")
    assert gates.begun() == set("abc")
    gates.open("c")
    wait_for(lambda: len(gates.begun()) == 4, "another run")
    event_of(supervisor, "renewed")
    wait_for(lambda: len(children(supervisor, "executor")) == 2, "as many as both sizes say")
    gates.open("d", "e")
    assert "executor_died" not in [event["event"] for event in drained(supervisor)]


def test_a_pool_that_grows_begins_as_many_more_as_it_has_grown(place: Place, errands: Any) -> None:
    resized(place, 1)
    supervisor = place.command("errands", "--log-format", "json", **FRESH)
    event_of(supervisor, "ready")
    gates = Gates(place, errands)
    gates.send("a")
    wait_for(gates.begun, "the run")
    resized(place, 2)
    assert reload(supervisor)["event"] == "reloaded"
    gates.send("b", "c", "d")
    wait_for(lambda: len(gates.begun()) > 1, "another run")
    wait_for(lambda: len(children(supervisor, "executor")) == 3, "as many as both sizes say")
    assert len(gates.begun()) == 2
    gates.open("a", "b", "c", "d")
    event_of(supervisor, "renewed")
    drained(supervisor)


def test_a_pool_that_leaves_does_not_ask_for_executors_again(place: Place, errands: Any) -> None:
    pool = "\nrw.pool('{}', queues=('errands', 'others'), concurrency=2)"
    place.write(APPLICATION + pool.format("main"))
    supervisor = started(place)
    gates = Gates(place, errands)
    gates.send("a", "b")
    wait_for(lambda: len(gates.begun()) == 2, "two runs")
    place.write(TWO + pool.format("other"))
    assert reload(supervisor)["event"] == "reloaded"
    one, _ = (pid for pid in children(supervisor, "executor") if "errands.run" in psutil.Process(pid).cmdline()[0])
    os.kill(one, signal.SIGKILL)
    event_of(supervisor, "executor_died")
    gates.open("a", "b")
    assert event_of(supervisor, "birth_failed", "renewed")["event"] == "renewed"
    assert sorted(len(errands.rw.get(receipt).attempts) for receipt in gates.receipts.values()) == [1, 2]
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
