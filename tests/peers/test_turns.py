"""The order of a run: rounds in turn, failures that are rows, rounds that no longer fit in."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from scripts.peers import environments, turns
from scripts.peers.grounds import Grounds
from scripts.peers.measure import Bench, Measure
from scripts.peers.system import OurSystem, System
from scripts.peers.trial import Stalled


class One(OurSystem):
    name, title, side, store = "one", "One", "runwick", "sqlite"
    promise, settings = "at least once", "as it comes"


class Two(One):
    name, title = "two", "Two"
    cannot: ClassVar = {"refused": "has no such thing"}


class Elsewhere(System):
    name, title, package, side, store = "elsewhere", "Elsewhere", "pgqueuer", "pgqueuer", "sqlite"
    promise, settings, python = "at least once", "as it comes", "9.9"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def bench(tmp_path: Path, said: list[str]) -> Bench:
    return Bench(Grounds(tmp_path), full=False, quick=True, say=said.append)


def measure(name: str, taken: list[str], failing: str = "", **settings: Any) -> Measure:
    def once(_bench: Bench, system: System) -> dict[str, Any]:
        taken.append(system.name)
        if system.name == failing:
            raise Stalled("stalled at 1 of 2 jobs")
        return {"figure": len(taken)}

    return Measure(name=name, title=name, text="", columns=(), once=once, **settings)


def test_systems_take_turns_in_every_round(bench: Bench, said: list[str]) -> None:
    taken: list[str] = []
    results = turns.take(bench, [One(), Two()], [measure("plain", taken, rounds=2)], None, 1_000)
    assert taken == ["one", "two", "one", "two"]
    assert results.of("plain", "two") == [{"figure": 2}, {"figure": 4}]
    assert any(line.startswith("plain: ") for line in said)  # how long it took


def test_a_failure_is_a_row_and_ends_nothing_else(bench: Bench) -> None:
    taken: list[str] = []
    plain = measure("plain", taken, failing="one", rounds=2)
    results = turns.take(bench, [One(), Two()], [plain], None, 1_000)
    assert taken == ["one", "two", "two"]
    assert results.problem(plain, One()) == "could not be measured: stalled at 1 of 2 jobs"
    assert results.problem(plain, Two()) == ""


def test_what_a_system_cannot_do_is_not_tried(bench: Bench) -> None:
    taken: list[str] = []
    refused = measure("refused", taken)
    results = turns.take(bench, [One(), Two()], [refused], None, 1_000)
    assert taken == ["one"]
    assert results.problem(refused, Two()) == "has no such thing"


def test_later_rounds_are_left_out_for_want_of_time(bench: Bench) -> None:
    taken: list[str] = []
    results = turns.take(bench, [One()], [measure("slow", taken, rounds=3)], None, -1)
    assert taken == ["one"]
    assert results.cut == ["slow: 1 of 3 rounds, for want of time"]


def test_a_system_that_needs_another_python_is_missing_with_its_reason(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(environments, "ENVIRONMENTS", tmp_path)
    taken: list[str] = []
    results = turns.take(bench, [One(), Elsewhere()], [measure("plain", taken)], None, 1_000)
    assert taken == ["one"]
    assert results.missing == {"elsewhere": "needs Python 9.9 or newer; there is no python9.9 on the path or in pyenv"}
