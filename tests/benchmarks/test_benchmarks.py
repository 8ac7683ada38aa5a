"""Every benchmark that is quick enough runs to its end and tells all that its readers look for."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from scripts.bench import main
from scripts.benchmarks import claim, executors, latency, lists, noop, rate, recover, shapes
from scripts.benchmarks.application import AT_ONCE, PER_SECOND, Nothing
from scripts.benchmarks.figures import Assignment, Report
from scripts.benchmarks.ground import fresh_ground
from scripts.benchmarks.sites import POSTGRES, REDIS, SqliteSite
from scripts.benchmarks.supervised import EXECUTORS, PROJECT


def told(report: Report, assignment: Assignment) -> dict[str, Any]:
    """What a machine reads of a report, after a look at what people see."""
    assert len(report.as_text().splitlines()) == 1 + len(report.figures)
    answer: dict[str, Any] = json.loads(json.dumps(report.as_json(assignment)))
    assert answer["store"] == assignment.store
    if assignment.store == POSTGRES:
        assert answer["durability"] == "postgres.synchronous-commit"
        assert answer["server"]["version"].startswith("18.")
        assert answer["server"]["settings"]["fsync"] == answer["server"]["settings"]["synchronous_commit"] == "on"
    elif assignment.store == REDIS:
        assert answer["durability"] == "redis.aof-always"
        assert answer["server"]["version"].startswith("8.2")
        assert answer["server"]["settings"]["appendfsync"] == "always"
    else:
        assert answer["server"] is None
    return answer


def test_noop_sets_ours_beside_the_floor(assignment: Assignment) -> None:
    answer = told(noop.run(assignment), assignment)
    assert answer["ratio"] == pytest.approx(answer["ours"]["jobs_per_s"] / answer["floor"]["jobs_per_s"], rel=1e-3)


def test_executors_are_killed_weighed_and_set_beside_those_with_other_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "KILLS", 1)
    monkeypatch.setattr(executors, "ROWS", 100)
    monkeypatch.setattr(executors, "SIZE", 10)
    monkeypatch.setattr(executors, "COMPUTING", executors.COMPUTING[::4])
    assignment = Assignment(
        store="sqlite", site=SqliteSite(tmp_path), jobs=10, seconds=0.1, work_ms=1, rounds=1, say=lambda _text: None
    )
    ours = told(executors.run(assignment), assignment)["ours"]
    assert ours["respawns"] == EXECUTORS
    for name in ("respawn_ms", "respawn_ms_from_kill", "respawn_ms_without_imports"):
        assert 0 < ours[name]["p50"] <= ours[name]["max"]
    shared, apart = ours["memory"]["preloaded"], ours["memory"]["not preloaded"]
    assert shared["private_mb"] < apart["private_mb"], "what is preloaded is shared"
    assert set(ours["computing"]) == {"one thread", "crowded, nice 10"}
    assert all(each["cpu_ms_per_job"] > 0 for each in ours["computing"].values())


def test_latency_is_measured_idle_and_apart(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "PAUSE_S", (0.0, 0.0))
    ours = told(latency.run(assignment), assignment)["ours"]
    assert ours["apart_jobs"] == latency.APART_JOBS * 20
    for percentiles in (ours["dispatch_to_start_ms"], ours["apart_dispatch_to_start_ms"]):
        assert 0 < percentiles["p50"] <= percentiles["p99"]


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_claims_of_every_shape_stand_beside_those_of_a_small_store(
    shape: str, assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "CLAIMS", 2)
    monkeypatch.setattr(claim, "WARM_UP", 1)
    monkeypatch.setattr(shapes, "BACKLOG", 20)
    answer = told(claim.run(dataclasses.replace(assignment, shape=shape)), assignment)
    measured = dict(answer["ours"][shape])
    line = measured.pop("line", None)
    large = ["held_with_backlog", "held_without_backlog"] if shape == "held" else [shape]
    assert list(measured) == ["small", *large]
    assert measured["small"]["ratio"] == 1
    assert answer["ratio"] == max(measured[name]["ratio"] for name in large)
    assert (line["jobs"] if line else None) == (3 * AT_ONCE if shape in ("blocked", "held") else None)


def test_claims_of_jobs_with_a_scope_stand_beside_plain_ones(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "CLAIMS", 2)
    answer = told(claim.run(dataclasses.replace(assignment, shape="scoped")), assignment)
    assert answer["ratio"] is None
    for name in ("plain", "scoped"):
        assert answer["ours"]["scoped"][name]["claim_ms"] > 0
        assert answer["ours"]["scoped"][name]["settle_ms"] > 0


def test_a_page_of_every_filter_stands_beside_a_look_at_one_job(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "ROUNDS", 2)
    answer = told(lists.run(dataclasses.replace(assignment, jobs=200)), assignment)
    medians = {name: figures["p50_ms"] for name, figures in answer["ours"]["filters"].items()}
    assert list(medians) == list(lists.FILTERS)
    assert answer["ours"]["slowest_ms"] == max(medians.values()) == medians[answer["ours"]["slowest"]]
    assert answer["ratio"] == pytest.approx(answer["ours"]["slowest_ms"] / answer["floor"]["lookup_ms"], rel=1e-2)


def test_runs_under_a_limit_are_counted_by_the_second(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate, "SECONDS", 2)
    answer = told(rate.run(dataclasses.replace(assignment, jobs=4 * PER_SECOND)), assignment)
    ours = answer["ours"]
    assert 0 < ours["grants"] == sum(ours["per_second"]) <= 3 * PER_SECOND
    assert answer["ratio"] == ours["share"] == pytest.approx(ours["grants"] / (2 * PER_SECOND), abs=1e-4)
    assert ours["idle_seconds"] == ours["per_second"].count(0)
    # Its first jobs have room; all others were refused, and none of them ran without having been moved in between.
    assert ours["moves"]["jobs"] == 3 * PER_SECOND
    assert ours["moves_until_granted"]["jobs"] >= ours["grants"] - PER_SECOND
    assert 1 <= ours["moves_until_granted"]["mean"] <= ours["moves_until_granted"]["max"] <= ours["moves"]["max"]
    assert ours["moves"]["max"] >= 2, "who stood in the line was moved into it and out of it"


def test_a_shape_goes_with_claims_alone() -> None:
    answer = CliRunner().invoke(main, ["noop", "--shape", "held"])
    assert (answer.exit_code, "--shape goes with 'claim', not with 'noop'." in answer.output) == (2, True)


def test_what_is_killed_runs_again(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover, "SUPERVISORS", 1)
    monkeypatch.setattr(recover, "KILLS", 2)
    monkeypatch.setattr(recover, "EXPIRIES", 2)
    ours = told(recover.run(assignment), assignment)["ours"]
    assert (ours["kills"], ours["supervisor_kills"], ours["recoveries"]) == (2, 1, 2)
    for what in ("executor_to_running_ms", "replacement_ms", "supervisor_to_running_ms"):
        assert 0 < ours[what]["p50"] <= ours[what]["p99"] <= ours[what]["max"]


def test_several_producers_dispatch_everything_between_them(assignment: Assignment) -> None:
    with fresh_ground(assignment.site) as ground:
        ended = subprocess.run(
            [sys.executable, "-m", "scripts.benchmarks.producers", "19", "8"],
            cwd=PROJECT,
            env={**os.environ, "RUNWICK_STORE": ground.url},
            check=True,
            stdout=subprocess.PIPE,
        )
        answer = json.loads(ended.stdout)
        assert answer["jobs"] == 19
        assert answer["wall_s"] > 0
        assert len(ground.rw.store.run(ground.rw.store.claim(ground.claim_plan(Nothing))).attempts) == 19
