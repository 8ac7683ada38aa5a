"""What a page says of figures that are made up: medians and spreads, who is better, what is missing."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts.peers import environments, pages
from scripts.peers.goals import GOALS
from scripts.peers.measure import Figures
from scripts.peers.measures import cpu, kills, latency, noop
from scripts.peers.system import OurSystem, System
from scripts.peers.systems import every_system
from scripts.peers.turns import Results


class Ours(OurSystem):
    name, title, side, store = "runwick-postgres", "Runwick, PostgreSQL", "runwick", "postgres"
    promise, settings = "at least once", "two executors"


class Other(System):
    name, title, package, side, store = "quick", "Quick & Co", "pgqueuer", "pgqueuer", "postgres"
    promise, settings = "at most once", "as it comes"


class Slow(System):
    name, title, package, side, store = "slow", "Slow", "pgqueuer", "pgqueuer", "postgres"
    promise, settings = "at least once", "as it comes"


class Absent(Other):
    name, title = "absent", "Absent"


def rates(*values: float) -> list[Figures]:
    return [{"jobs": 10, "jobs_per_s": value, "workers_cpu_us": 20.0, "mains_cpu_us": 9.0} for value in values]


@pytest.fixture
def results() -> Results:
    return Results(
        systems=[Ours(), Other(), Slow(), Absent()],
        measures=[noop.MEASURE, latency.MEASURE, kills.MEASURE],
        rounds={
            "noop": {
                "runwick-postgres": rates(100, 300, 200),
                "quick": rates(400, 400, 400),
                "slow": rates(50),
            },
            "latency": {"runwick-postgres": [{"p50_ms": 1.25, "p95_ms": 2.0, "p99_ms": 3.0}]},
            "kills": {
                "runwick-postgres": [{"child": "again after 0.05 s", "worker": "again after 0.40 s"}],
                "slow": [{"problem": "could not be measured: stalled at 3 of 8 jobs"}],
            },
        },
        missing={"absent": "needs Python 9.9 or newer"},
        seconds={"noop": 61.0, "latency": 9.0, "kills": 30.0},
        cut=["Jobs that do nothing: 1 of 3 rounds, for want of time"],
    )


@pytest.fixture
def page(results: Results, tmp_path: Path) -> str:
    (tmp_path / "of-before.svg").write_text("<svg/>")
    return pages.write(results, {}, tmp_path, quick=False).read_text()


def test_a_row_has_the_median_the_spread_and_the_multiple(page: str) -> None:
    assert "| **Runwick, PostgreSQL** | 200 (100 to 300) | 1.00 |" in page
    assert "| Quick & Co | 400 | 0.50 |" in page
    assert "| Slow | 50 | 4.00 |" in page


def test_who_is_better_is_said_with_what_it_promises(page: str) -> None:
    assert "* jobs/s: Quick & Co, which promises at most once, 2.00 times better." in page
    assert "Slow, " not in page
    assert page.count("No other system does better here") == 1  # in the latency, where nobody else has a figure


def test_whoever_has_no_figures_has_a_row_and_a_reason(page: str) -> None:
    assert page.count("* Absent: needs Python 9.9") == 3
    assert "* Slow: could not be measured: stalled at 3 of 8 jobs." in page
    assert "* Quick & Co: not measured." in page
    assert "* Jobs that do nothing: 1 of 3 rounds, for want of time." in page
    assert "Taken only with `make bench-peers FULL=1`" in page
    assert cpu.MEASURES[0].title in page.split("## What was not measured")[1]


def test_goals_are_judged_against_those_that_promise_as_much(page: str, results: Results) -> None:
    assert "| No-op on PostgreSQL, times the fastest other one | ≥ 1.3 | ≥ 1.7 | 4.00 | met |" in page
    assert "| Idle dispatch to start on PostgreSQL, p50 in ms | ≤ 1.5 | ≤ 1 | 1.25 | met |" in page
    results.rounds["latency"]["runwick-postgres"] = [{"p50_ms": 1.75}]
    goal = next(goal for goal in GOALS if "p50 in ms" in goal.text)
    assert goal.value(results) == 1.75
    assert not goal.is_met(1.75)
    assert "| Memory of the worker tree, MB (PSS) | ≤ 60 | ≤ 60 | – | not measured |" in page


def test_plots_are_drawings_of_what_was_measured(page: str, tmp_path: Path) -> None:
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["latency.svg", "noop.svg"]
    drawing = ElementTree.fromstring((tmp_path / "noop.svg").read_text())
    bars = [float(each.attrib["width"]) for each in drawing.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars[0] == pytest.approx(bars[1] / 2, rel=0.01)
    assert bars[2] == pytest.approx(bars[1] / 8, rel=0.01)
    assert "![Jobs that do nothing](noop.svg)" in page


def test_machines_read_every_round(page: str, tmp_path: Path) -> None:
    told = json.loads((tmp_path / "results.json").read_text())
    quick = told["measures"]["noop"]["systems"]["quick"]
    assert [one["jobs_per_s"] for one in quick["rounds"]] == [400, 400, 400]
    assert quick["ours_times"]["jobs_per_s"] == 0.5
    assert told["systems"]["quick"]["version"] == environments.version(Other())
    assert told["not_measured"]["systems"]["absent"].startswith("needs Python 9.9")


def test_every_system_is_told_apart_pinned_and_has_a_side() -> None:
    systems = every_system()
    assert len({system.name for system in systems}) == len({system.title for system in systems}) == len(systems)
    sides = Path(environments.__file__).parent / "sides"
    for system in systems:
        assert environments.version(system)[0].isdigit()
        assert (sides / f"{system.side}.py").exists()
        assert system.settings
