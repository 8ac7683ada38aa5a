"""Every benchmark that is quick enough runs to its end and tells all that its readers look for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks import claims, latency, noop, recover
from scripts.benchmarks.application import Nothing
from scripts.benchmarks.figures import Assignment, Report
from scripts.benchmarks.ground import fresh_ground
from scripts.benchmarks.peers import pgqueuer
from scripts.benchmarks.sites import POSTGRES, PostgresSite
from scripts.benchmarks.supervised import PROJECT


def told(report: Report, assignment: Assignment) -> dict[str, Any]:
    """What a machine reads of a report, after a look at what people see."""
    assert len(report.as_text().splitlines()) == 1 + len(report.figures)
    answer: dict[str, Any] = json.loads(json.dumps(report.as_json(assignment)))
    assert answer["store"] == assignment.store
    if assignment.store == POSTGRES:
        assert answer["durability"] == "postgres.synchronous-commit"
        assert answer["server"]["version"].startswith("18.")
        assert answer["server"]["settings"]["fsync"] == answer["server"]["settings"]["synchronous_commit"] == "on"
    else:
        assert answer["server"] is None
    return answer


def test_noop_sets_ours_beside_the_floor(
    assignment: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgqueuer, "_PROGRAMS", tmp_path / "missing")
    answer = told(noop.run(assignment), assignment)
    assert answer["ratio"] == pytest.approx(answer["ours"]["jobs_per_s"] / answer["floor"]["jobs_per_s"], rel=1e-3)
    assert set(answer["peers"]) == ({"pgqueuer"} if assignment.store == POSTGRES else set())


def test_latency_is_measured_idle_and_apart(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "PAUSE_S", (0.0, 0.0))
    ours = told(latency.run(assignment), assignment)["ours"]
    assert ours["apart_jobs"] == latency.APART_JOBS * 20
    for percentiles in (ours["dispatch_to_start_ms"], ours["apart_dispatch_to_start_ms"]):
        assert 0 < percentiles["p50"] <= percentiles["p99"]


def test_claims_of_large_stores_stand_beside_those_of_a_small_one(assignment: Assignment) -> None:
    answer = told(claims.run(assignment), assignment)
    sizes = ["small", "pending", "finished"]
    held = ["held_with_backlog", "held_without_backlog"] if assignment.store == POSTGRES else []
    measured = [name for name in answer["ours"] if isinstance(answer["ours"][name], dict)]
    assert measured == sizes + held
    assert answer["ours"]["small"]["ratio"] == 1
    assert answer["ratio"] == max(answer["ours"][name]["ratio"] for name in measured)


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


def test_a_peer_that_is_not_here_says_how_to_get_it(
    postgres_site: PostgresSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgqueuer, "_PROGRAMS", tmp_path / "missing")
    assert "make bench-peers" in _peer(postgres_site).figure().meaning


def test_a_peer_that_fails_fails_nothing_else(
    postgres_site: PostgresSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pgq"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(pgqueuer, "_PROGRAMS", tmp_path)
    peer = _peer(postgres_site)
    peer.measure()
    answer = peer.as_json(100.0)
    assert (answer["jobs_per_s"], answer["ours_times"]) == (None, None)
    assert "exit status 3" in answer["problem"]
    assert peer.figure().value == "–"


def _peer(site: PostgresSite) -> pgqueuer.PgQueuer:
    assignment = Assignment(store=POSTGRES, site=site, jobs=5, seconds=0.1, work_ms=1, rounds=1, say=lambda _text: None)
    return pgqueuer.PgQueuer(assignment, 5, b"{}")
