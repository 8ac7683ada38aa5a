"""What the server really did for a store's statements: their plans as they were executed, from its log.

``auto_explain`` writes the plan of each statement with what it cost: rows, loops, pages. So a test looks at what the
store's own acts made the server do, on the store's own connections, and guesses nothing.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.servers.postgres import PostgresServer
from tests.postgres.asking import execute

FOLDER: Final = Path(__file__).parents[2] / "runwick" / "stores" / "postgres" / "sql"

_SETTINGS: Final = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_parameter_max_length": "0",
}
_PLAN: Final = re.compile(r"duration: [\d.]+ ms  plan:\n((?:\t.*\n)+)")


_STATEMENTS: Final = {file.read_text(): file.stem for file in FOLDER.glob("*.sql")}


class Node(NamedTuple):
    """One step of a plan."""

    kind: str
    table: str
    by: str
    """The index."""
    rows: float
    """What it gave, over all loops."""
    removed: float
    """What it looked at in vain, over all loops."""


class Plan(NamedTuple):
    """One statement as it was executed."""

    statement: str
    """The file's name."""
    nodes: list[Node]
    pages: int
    """Of tables and indexes, from first to last; a page counts each time."""

    def on(self, table: str) -> list[Node]:
        """The steps that read this table."""
        return [node for node in self.nodes if node.table == table and node.kind != "ModifyTable"]


def explain_all(url: str) -> None:
    """From now on, new connections to this database leave their plans in the server's log."""
    name = url.rpartition("/")[2]
    for setting, value in _SETTINGS.items():
        execute(url, f"ALTER DATABASE {name} SET {setting} = '{value}'")


class Log:
    """What the server says from now on.

    Args:
        server: whose log it is.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._seen = len(server.log())

    def plans(self) -> list[Plan]:
        """The plans of the store's statements since this was asked last, in order."""
        text = self._server.log()[self._seen :]
        self._seen += len(text)
        explained = (json.loads(found[1]) for found in _PLAN.finditer(text))
        return [_plan(one) for one in explained if one["Query Text"] in _STATEMENTS]


def _plan(explained: dict[str, Any]) -> Plan:
    top = explained["Plan"]
    pages = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    return Plan(_STATEMENTS[explained["Query Text"]], list(_nodes(top)), pages)


def _nodes(step: dict[str, Any]) -> Iterator[Node]:
    loops = step["Actual Loops"]
    yield Node(
        step["Node Type"],
        step.get("Relation Name", ""),
        step.get("Index Name", ""),
        step["Actual Rows"] * loops,
        step.get("Rows Removed by Filter", 0) * loops,
    )
    for inner in step.get("Plans", ()):
        yield from _nodes(inner)
