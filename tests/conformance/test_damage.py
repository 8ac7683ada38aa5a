"""One damaged row: what it held is not there, and it takes no other with it. On the stores that keep JSON."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, USAGE, Bench, sqlite_bench
from tests.conformance.places import Database
from tests.conformance.test_activity import busy, workers
from tests.conformance.test_runs import runs
from tests.conformance.test_sqlite_rows import rows

CRASH = Outcome(
    OutcomeKind.CRASHED,
    "executor_crashed",
    usage=USAGE,
    death=Death("signal", 9),
    error=ErrorDetail(type="Torn", message="it tore"),
    black_box=BlackBox(stack="at line 1"),
)
DAMAGES = ["", "{", "null", "[]", '["x"]', "[-1, -1, -1]", "[9e999]", '{"cpu_us": 1}', "[" * 2_000]


class Place(NamedTuple):
    """A bench, and a way to write one text over a column of all rows of a table."""

    bench: Bench
    spoil: Callable[[str, str, str], object]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        bench = sqlite_bench(tmp_path)
        place = Place(bench, lambda table, column, text: rows(bench, f"UPDATE runwick_{table} SET {column} = ?", text))
    else:
        database: Database = request.getfixturevalue("postgres_database")
        bench = database.bench()
        place = Place(
            bench, lambda table, column, text: database.execute(f"UPDATE runwick.{table} SET {column} = %s", text)
        )
    yield place
    bench.store.close()


@pytest.mark.parametrize("text", DAMAGES)
def test_a_run_is_listed_without_what_cannot_be_read_of_it(place: Place, text: str) -> None:
    bench = place.bench
    spoiled = bench.claimed()
    bench.settle(spoiled, CRASH, JobState.FAILED)
    for table, column in (
        ("attempt", "usage"),
        ("attempt", "death"),
        ("detail", "error"),
        ("detail", "black_box"),
    ):
        place.spoil(table, column, text)
    sound = bench.claimed()
    bench.settle(sound, CRASH, JobState.FAILED)
    assert [(run.job_id, run.usage, run.death) for run in runs(bench)[:1]] == [(sound.job_id, USAGE, "signal")]
    (run,) = runs(bench)[1:]
    assert (run.job_id, run.outcome, run.code) == (spoiled.job_id, "crashed", "executor_crashed")
    (attempt,) = bench.job(spoiled.job_id).attempts
    assert (attempt.attempt_id, attempt.number) == (spoiled.attempt_id, 1)
    for what in (Secret.ERROR, Secret.BLACK_BOX):
        command = bench.showing(what, spoiled.job_id, attempt_id=spoiled.attempt_id)
        assert bench.run(bench.store.reveal(command)) is not None
    assert len(bench.run(bench.store.costliest(APPLICATION, "cpu_us", 10))) == 2


@pytest.mark.parametrize("text", DAMAGES)
def test_a_worker_is_listed_without_what_cannot_be_read_of_it(place: Place, text: str) -> None:
    bench = place.bench
    bench.renew(executors=[busy(bench)])
    place.spoil("worker", "queues", text)
    place.spoil("worker", "kinds", text)
    place.spoil("activity", "executors", text)
    (worker,) = workers(bench)
    assert worker.presence.host == bench.presence().host
    assert list(worker.executors) == []
