"""Workers: who works here and what their executors do, as they told it, and the stacks that were asked for."""

from typing import Final, Literal

import msgspec

from runwick.contracts.activity import StackAnswer, WorkerRecord
from runwick.contracts.stores import Act
from runwick.stores.activities import worker_record
from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.lease import REMEMBERED_MS


class _Worker(msgspec.Struct, frozen=True, array_like=True):
    host: str
    process: int
    queues: str
    executors: int
    kinds: str | Literal[False]
    seen_at_ms: int
    departed_at_ms: int | Literal[False]
    told_at_ms: int | Literal[False]
    activity: str | Literal[False]

    def record(self, application: str, worker: bytes) -> WorkerRecord:
        return worker_record(
            application,
            worker,
            self.host,
            self.process,
            self.queues,
            self.executors,
            self.seen_at_ms,
            self.departed_at_ms or None,
            self.told_at_ms or None,
            self.activity or None,
            self.kinds or None,
        )


_seen: Final = msgspec.msgpack.Decoder(list[tuple[bytes, _Worker]]).decode
_text: Final = msgspec.msgpack.Decoder(str | None).decode


def workers(application: str) -> Act[list[WorkerRecord]]:
    """Who was seen within 24 hours, the latest start first."""
    return Act("workers", lambda: _workers(application), reads_only=True)


def _workers(application: str) -> Calls[list[WorkerRecord]]:
    seen = _seen((yield Call("workers", application, packed.arguments(REMEMBERED_MS))))
    # Their ids grow with the time at which they started.
    return [worker.record(application, worker_id) for worker_id, worker in sorted(seen, reverse=True)]


def stack(application: str, attempt_id: bytes) -> Act[StackAnswer | None]:
    """The stack that was asked for, once its worker has answered."""
    return Act("stack", lambda: _stack(application, attempt_id), reads_only=True)


def _stack(application: str, attempt_id: bytes) -> Calls[StackAnswer | None]:
    text = _text((yield Call("stack", application, packed.arguments(packed.binary(attempt_id)))))
    return None if text is None else StackAnswer(attempt_id, text)
