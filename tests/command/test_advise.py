"""``--advise``: what recorded runs suggest, of a store as it is, beside a worker and without one."""

import json
import shlex
from pathlib import Path
from typing import Any

from tests.command.conftest import APPLICATION, Place, line_of, wait_for


def advice_of(place: Place, *arguments: str) -> dict[str, Any]:
    status, out, err = place.run("errands", "--advise", "--log-format", "json", *arguments)
    assert (status, err) == (0, "")
    opened, advice = map(json.loads, out.splitlines())
    assert (opened["event"], advice["event"]) == ("opened", "advice")
    found: dict[str, Any] = advice
    return found


def test_too_few_runs_are_told_as_such_and_nothing_is_started(place: Place, errands: Any) -> None:
    errands.rw.dispatch(errands.Run())
    assert place.run("errands", "--until-empty")[0] == 0
    receipt = errands.rw.dispatch(errands.Run())
    status, out, err = place.run("errands", "--advise")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert "errands.other: 0 runs, too few for advice: it takes 20" in lines
    assert "errands.run: 1 run, too few for advice: it takes 20" in lines
    assert "  too few runs were measured for a recommendation: it takes 20" in lines
    assert "what limits it now: No worker is at work, so nothing is limited but by that." in lines
    assert not any(line.startswith("recommended:") for line in lines)
    assert errands.rw.get(receipt).state == "pending"
    assert advice_of(place)["command"] is None


def test_runs_make_a_recommendation_that_can_be_copied(place: Place, errands: Any) -> None:
    for _ in range(20):
        errands.rw.dispatch(errands.Run())
    assert place.run("errands", "--until-empty")[0] == 0
    status, out, _ = place.run("errands", "--advise")
    assert status == 0
    recommended = out.splitlines()[-1]
    assert recommended.startswith(
        "recommended: RUNWICK_MEMORY_HARD=128MiB runwick-supervise errands --executors-per-core "
    )
    assert "\nerrands.run: its last 20 runs\n" in out
    advice = advice_of(place)
    assert recommended == f"recommended: {advice['command']}"
    assert [each["runs"] for each in advice["types"]] == [0, 20]
    assert advice["settings"]["memory_hard"] == "128MiB"
    codes = [one["code"] for one in advice["types"][1]["advice"]]
    assert {"memory_per_executor", "executors", "memory_limit", "no_time_limit"} <= set(codes)
    variable, _, _, *options = shlex.split(advice["command"])
    name, _, value = variable.partition("=")
    assert place.run("errands", "--check", *options, **{name: value})[0] == 0


def test_a_declared_time_limit_is_known(place: Place, errands: Any) -> None:
    for _ in range(20):
        errands.rw.dispatch(errands.Run())
    assert place.run("errands", "--until-empty")[0] == 0
    limited = APPLICATION.replace('"errands.run", ', '"errands.run", execution_timeout=datetime.timedelta(hours=1), ')
    place.write(limited)
    assert "no_time_limit" not in [one["code"] for one in advice_of(place)["types"][1]["advice"]]


def test_a_worker_at_work_is_looked_at(place: Place, errands: Any) -> None:
    gate = place.folder / "gate"
    errands.rw.dispatch(errands.Run("hold", str(gate)))
    running = place.command("errands", "--executors", "2", "--log-format", "json")
    wait_for(lambda: json.loads(line_of(running))["event"] == "ready", "the worker")
    wait_for(Path(f"{gate}.started").exists, "the run")
    facts = advice_of(place)["limiting"]["facts"]
    assert any(fact.startswith("handlers: ") and "of 2 executors busy" in fact for fact in facts)
    assert any(fact.startswith("supervisor: ") and "of a core just now" in fact for fact in facts)
    assert "store: how long claims and settlements take is not recorded" in facts
    gate.touch()


def test_pools_keep_their_own_numbers(place: Place, errands: Any) -> None:
    pools = 'rw.pool("one", queues=("errands",), concurrency=2)\nrw.pool("two", queues=("others",), concurrency=1)\n'
    place.write(APPLICATION + pools)
    for _ in range(20):
        errands.rw.dispatch(errands.Run())
    assert place.run("errands", "--until-empty")[0] == 0
    advice = advice_of(place)
    assert (advice["pools"], advice["command"]) == (
        "one 2, two 1",
        "RUNWICK_MEMORY_HARD=128MiB runwick-supervise errands",
    )
    assert "executors_per_core" in advice["settings"]


def test_two_questions_are_refused_and_so_is_what_cannot_be_opened(place: Place) -> None:
    place.write(APPLICATION)
    status, out, err = place.run("errands", "--check", "--advise")
    assert (status, out) == (2, "")
    assert "--check and --advise are two questions. Give one of them." in err
    status, out, err = place.run("errands", "--advise")
    assert (status, out) == (2, "")
    assert err.startswith("Runwick cannot start: 1 problem.")
    assert "store_not_installed" in err
    assert not (place.folder / "errands.db").exists()
    assert not (place.folder / "run").exists()
