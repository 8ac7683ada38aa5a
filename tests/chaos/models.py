"""R12: histories that hypothesis makes up, on the memory store and another one side by side; the two must agree."""

import contextlib
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.conformance.ground import Bench, sqlite_bench
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase
from tests.conformance.test_model import TwoStores
from tests.servers import prepare_template

EXAMPLES: Final = 50
STEPS: Final = 50


def agreeing(store: str, seed: int, examples: int = EXAMPLES) -> int:
    """Play so many histories; answers how many steps that was, at most.

    Raises:
        AssertionError: the stores differ.
    """
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="runwick-model-") as folder:
            _compare(seed, examples, lambda: sqlite_bench(Path(folder)), lambda: _empty(Path(folder)))
    elif store == "postgres":
        with PostgresServer() as server:
            prepare_template(server)
            database = Database(server)
            _compare(seed, examples, database.bench, lambda: None)
            database.close()
    else:
        with RedisServer() as redis, contextlib.closing(RedisDatabase(redis)) as keys:
            _compare(seed, examples, keys.bench, functools.partial(_counted, keys))
    return examples * STEPS


def _compare(seed: int, examples: int, other: Callable[[], Bench], check: Callable[[], None]) -> None:
    @hypothesis.seed(seed)
    class Machine(TwoStores):
        def __init__(self) -> None:
            super().__init__(other, check)

    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        # Nothing is shortened: that takes minutes, and the seed says it all.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=settings)


def _counted(database: RedisDatabase) -> None:
    assert database.recount() == []


def _empty(folder: Path) -> None:
    for left in folder.iterdir():
        left.unlink()
