"""What is counted, by groups: each measures something by itself and answers its counts by their names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.hot_paths.executor_path import executor_path
from tests.hot_paths.on_postgres import postgres_paths
from tests.hot_paths.on_redis import redis_paths
from tests.hot_paths.on_sqlite import sqlite_paths
from tests.hot_paths.whole_worker import worker_paths

GROUPS: Final[Mapping[str, Callable[[Path], dict[str, float]]]] = {
    "executor": executor_path,
    "worker": worker_paths,
    "sqlite": sqlite_paths,
    "postgres": postgres_paths,
    "redis": redis_paths,
}
"""By the word with which the names of its counts begin. Each is given an empty folder."""
