"""Runs as a list of them gives: what the rules of figures, troubles and advice look at."""

from typing import Any

from runwick.contracts.attempts import Kind
from runwick.contracts.listing import RunRecord
from runwick.contracts.usage import Usage

NOW_MS = 1_750_000_000_000
MIB = 1 << 20


def a_run(number: int = 0, **changes: Any) -> RunRecord:
    """The `number`-th last run, which ended so many seconds ago."""
    usage = {name: changes.pop(name) for name in list(changes) if name in Usage.__struct_fields__}
    values: dict[str, Any] = {
        "job_id": number.to_bytes(16),
        "generation": 1,
        "number": 1,
        "kind": Kind("image.thumbnail", 1),
        "queue": "images",
        "tenant": None,
        "outcome": "succeeded",
        "code": None,
        "begun_at_ms": None,
        "ended_at_ms": NOW_MS - number * 1_000,
        "payload_bytes": 10,
        "usage": Usage(**usage) if usage else None,
        "death": None,
    }
    return RunRecord(**{**values, **changes})
