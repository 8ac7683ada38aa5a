"""The checker itself: it finds nothing in sound histories, and every planted bug by the invariant that it breaks."""

import tempfile
from pathlib import Path

import pytest

from runwick.stores.memory.store import MemoryStore
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.chaos import limit_plants, plants
from tests.chaos.book import Book
from tests.chaos.checker import INVARIANTS, violations
from tests.chaos.history import History, Mark
from tests.chaos.limit_log import LoggedMemoryStore, log_postgres, log_sqlite, logged_library
from tests.chaos.needs import KINDS, LANES
from tests.chaos.plants import Change, Plant
from tests.chaos.reading import Rows, memory_rows, postgres_rows, read_history, redis_rows, sqlite_rows
from tests.chaos.rehearsal import LEASE_MS, Rehearsal
from tests.conformance.ground import APPLICATION, Bench, memory_bench, sqlite_bench
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase

STEPS = 400
PLANTS = (*plants.PLANTS, *limit_plants.PLANTS)
CHANGES = (*plants.CHANGES, *limit_plants.CHANGES)
TRIES = 60
"""Plays in which a planted bug may show."""


def played(bench: Bench, seed: int) -> tuple[Rehearsal, list[Mark]]:
    marks: list[Mark] = []
    play = Rehearsal(bench, seed, Book(), marks.append, steered=seed % 2 == 1)
    play.play(STEPS)
    play.rest()
    return play, marks


def history_of(play: Rehearsal, marks: list[Mark], rows: Rows) -> History:
    return read_history(
        play.bench.store,
        APPLICATION,
        rows,
        lanes=LANES,
        kinds=KINDS,
        lines=play.book.lines,
        marks=marks,
        followed=play.followed,
        declared_lost=frozenset(play.declared_lost),
        read_at_ms=play.bench.clock.now_ms(),
        lease_ms=LEASE_MS,
    )


def in_memory(seed: int) -> History:
    bench = memory_bench()
    assert isinstance(bench.store, MemoryStore)
    bench.store = store = LoggedMemoryStore.of(bench.store)
    play, marks = played(bench, seed)
    return history_of(play, marks, memory_rows(store, play.claimed_at_ms))


@pytest.mark.parametrize("seed", range(8))
def test_plays_in_memory_are_sound(seed: int) -> None:
    assert violations(in_memory(seed)) == {}


def test_plays_on_sqlite_are_sound() -> None:
    for seed in range(4):
        with tempfile.TemporaryDirectory(prefix="runwick-chaos-") as folder:
            bench = sqlite_bench(Path(folder))
            log_sqlite(Path(folder) / "jobs.db")
            play, marks = played(bench, seed)
            history = history_of(play, marks, sqlite_rows(Path(folder) / "jobs.db"))
            bench.store.close()
        assert violations(history) == {}


def test_plays_on_postgres_are_sound(postgres: PostgresServer) -> None:
    database = Database(postgres)
    log_postgres(database.url)
    for seed in range(2):
        bench = database.bench()
        database.execute("TRUNCATE chaos.log")
        play, marks = played(bench, seed)
        history = history_of(play, marks, postgres_rows(database.url))
        bench.store.close()
        assert violations(history) == {}
    database.close()


def test_plays_on_redis_are_sound(redis_server: RedisServer) -> None:
    database = RedisDatabase(redis_server, logged_library())
    for seed in range(2):
        bench = database.bench()
        play, marks = played(bench, seed)
        history = history_of(play, marks, redis_rows(redis_server, bench.store, APPLICATION))
        bench.store.close()
        assert violations(history) == {}
        assert history.limit_log
        assert history.claimed_at_ms == play.claimed_at_ms
        assert database.recount() == []
    database.close()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.breaks}: {plant.into.__name__}")
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.into(monkeypatch)
    assert any(plant.breaks in violations(in_memory(seed)) for seed in range(TRIES))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.breaks}: {change.of.__name__}")
def test_a_changed_history_is_found_out(change: Change) -> None:
    assert change.breaks in violations(change.of(in_memory(1)))


def test_every_invariant_is_broken_by_something() -> None:
    assert {plant.breaks for plant in PLANTS} | {change.breaks for change in CHANGES} == set(INVARIANTS)
