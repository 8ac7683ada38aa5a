"""What a store keeps of a worker and of what its executors do, and how it is read again."""

from collections.abc import Sequence
from typing import Final

import msgspec

from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.attempts import Kind, WorkerPresence
from runwick.stores.damage import maybe_read

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


def kinds_json(kinds: Sequence[Kind] | None) -> str | None:
    """What a worker decodes, as a JSON array of [name, version]; None where it did not tell."""
    return None if kinds is None else msgspec.json.encode([(kind.name, kind.version) for kind in kinds]).decode()


def kinds_told(kinds: str | None) -> list[Kind] | None:
    """The other way round."""
    told = maybe_read(kinds, list[tuple[str, int]])
    return None if told is None else [Kind(*pair) for pair in told]


def worker_record(
    application: str,
    worker: bytes,
    host: str,
    process: int,
    queues: str,
    executors: int,
    seen_at_ms: int,
    departed_at_ms: int | None,
    told_at_ms: int | None,
    activity: str | None,
    kinds: str | None = None,
) -> WorkerRecord:
    """One row of `workers`, which every SQL store selects alike."""
    return WorkerRecord(
        presence=WorkerPresence(
            worker=worker,
            application=application,
            host=host,
            process=process,
            queues=maybe_read(queues, list[str]) or [],
            executors=executors,
            kinds=kinds_told(kinds),
        ),
        seen_at_ms=seen_at_ms,
        departed_at_ms=departed_at_ms,
        told_at_ms=told_at_ms,
        executors=maybe_read(activity, list[ExecutorActivity]) or [],
    )
