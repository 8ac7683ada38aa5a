"""How much of what a worker's executors do every store keeps."""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.activity import ExecutorActivity

ACTIVITY_MAX_BYTES: Final = 64 * 1024
"""Of one worker, as JSON."""


def executors_json(executors: Sequence[ExecutorActivity]) -> bytes:
    """What they do, as a JSON array. Where it would be longer than a store keeps, those that run nothing are left out
    first."""
    whole = msgspec.json.encode(list(executors))
    if len(whole) <= ACTIVITY_MAX_BYTES:
        return whole
    kept: list[ExecutorActivity] = []
    left_bytes = ACTIVITY_MAX_BYTES - len("[]")
    for executor in sorted(executors, key=lambda executor: executor.job_id is None):
        left_bytes -= len(msgspec.json.encode(executor)) + len(",")
        if left_bytes < 0:
            break
        kept.append(executor)
    return msgspec.json.encode(kept)
