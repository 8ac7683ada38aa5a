"""The smallest acts there are, on a table of marks: the driver knows nothing of jobs, so these do."""

import datetime
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from runwick.config.options import PostgresOptions
from runwick.contracts.ambient import Clock
from runwick.contracts.stores import Act
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.driver import Driver
from runwick.stores.postgres.migrate import migrate
from runwick.stores.steps import Preparation, Step
from scripts.servers.postgres import PostgresServer
from tests.postgres.asking import execute

SCHEMA: Final = """
CREATE TABLE runwick.mark (name text PRIMARY KEY, number smallint CHECK (number > 0));
CREATE FUNCTION runwick.fail(state text) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION USING ERRCODE = state, MESSAGE = 'as ordered'; END $$;
CREATE SEQUENCE runwick.arrived START 1;
CREATE FUNCTION runwick.crosswise(first text, second text) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO runwick.mark (name) VALUES (first) ON CONFLICT DO NOTHING;
    PERFORM nextval('runwick.arrived');
    WHILE (SELECT last_value FROM runwick.arrived) < 2 LOOP PERFORM pg_sleep(0.002); END LOOP;
    INSERT INTO runwick.mark (name) VALUES (second) ON CONFLICT DO NOTHING;
  END $$;
"""
TEXTS: Final = {
    "add": "INSERT INTO runwick.mark (name) SELECT unnest($1::text[]) RETURNING name",
    "add_number": "INSERT INTO runwick.mark (name, number) VALUES ($1, $2)",
    "names": "SELECT name FROM runwick.mark",
    "sleep": "SELECT pg_sleep($1)",
    "fail": "SELECT runwick.fail($1)",
    "gate": "SELECT runwick.gate($1::uuid, $2::integer, $3::integer, $4, $5, $6::text[])",
    "id": "SELECT id, ARRAY[id] FROM runwick.store",
    "nonsense": "SELECT FROM nowhere.at_all",
    "mistake": "SELEC 1",
    "crosswise": "SELECT runwick.crosswise($1, $2)",
    "setting": "SELECT current_setting($1)",
}


def a_driver(
    url: str, *, limit_ms: int = 20_000, calls: int = 4, clock: Clock | None = None, unsafe: bool = False
) -> Driver:
    options = PostgresOptions(request_timeout=datetime.timedelta(milliseconds=limit_ms), allow_unsafe_durability=unsafe)
    return Driver(
        address_of(url),
        options,
        concurrent_calls=calls,
        clock=clock or SystemClock(),
        statements=TEXTS.__getitem__,
    )


def marked(url: str) -> str:
    execute(url, SCHEMA)
    return url


def a_store_on(server: PostgresServer) -> str:
    """A new store on a test's own server."""
    url = server.create_database("shop")
    migrate(address_of(url), SystemClock(), SystemIds())
    return marked(url)


def doing(*steps: Step, name: str = "do", reads_only: bool = False) -> Act[list[tuple[Any, ...]]]:
    """These steps one after the other; answers the rows of the last."""

    def course() -> Generator[Step, Any, list[tuple[Any, ...]]]:
        rows: list[tuple[Any, ...]] = []
        for step in steps:
            rows = yield step
        return rows

    return Act(name, course, reads_only=reads_only)


def add(*names: str, act: str = "add") -> Act[list[tuple[Any, ...]]]:
    """Write one row for each name."""
    return doing(Step("add", (list(names),)), name=act)


def preparing(statement: str, parameters: Sequence[Any] = ()) -> Preparation:
    return Preparation(statement, parameters)


def names() -> Act[set[str]]:
    """What was written."""

    def course() -> Generator[Step, Any, set[str]]:
        rows = yield Step("names")
        return {name for (name,) in rows}

    return Act("names", course, reads_only=True)


def sessions(url: str, purpose: str = "runwick%") -> list[int]:
    """The server's processes for the driver's connections of that purpose."""
    asked = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' "
        f"AND application_name LIKE '{purpose}' ORDER BY pid"
    )
    return [pid for (pid,) in execute(url, asked)]


def waiting(url: str) -> Callable[[], object]:
    """Whether one of the driver's statements waits for a lock just now."""
    asked = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'runwick%' "
        "AND wait_event_type = 'Lock'"
    )
    return lambda: execute(url, asked)


def end_sessions(url: str, purpose: str = "runwick%") -> int:
    """End the driver's connections from the other side; answers how many."""
    asked = (
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() "
        f"AND application_name LIKE '{purpose}'"
    )
    return len(execute(url, asked))
