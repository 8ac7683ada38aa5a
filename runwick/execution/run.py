"""What crosses to an executor with a payload: the facts of one run, and nothing that its handler has no business with.

A run is an attempt without its proof of ownership, its lease and its policy: an executor can neither renew nor settle.
The payload travels beside it, so that it can be decoded where it lies.
"""

from typing import Final

import msgspec

from runwick.contracts.attempts import Attempt
from runwick.contracts.limits import Fence
from runwick.contracts.states import Priority


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The facts of one run. Field order is the order on the wire; both ends are of the same release."""

    job_id: bytes
    attempt_id: bytes
    name: str
    version: int
    """Of the stored payload."""
    queue: str
    priority: Priority
    execution: int
    """From 1 within the generation."""
    max_executions: int
    generation: int
    created_at_ms: int
    metadata: bytes | None = None
    """A JSON object of text to text, or None."""
    tenant: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    message_only: bool = False
    """Of an error its type and message are kept, and no more."""
    fences: tuple[Fence, ...] = ()

    @classmethod
    def of(cls, attempt: Attempt) -> "Run":
        """The run that `attempt` asks for."""
        return cls(
            attempt.job_id,
            attempt.attempt_id,
            attempt.kind.name,
            attempt.kind.version,
            attempt.lane.queue,
            attempt.lane.priority,
            attempt.execution,
            attempt.policy.max_executions,
            attempt.generation,
            attempt.created_at_ms,
            attempt.metadata,
            attempt.tenant,
            attempt.traceparent,
            attempt.tracestate,
            attempt.policy.error_detail == "message",
            attempt.fences,
        )

    def encode(self) -> bytes:
        """MessagePack for `decode`."""
        return _ENCODER.encode(self)

    @classmethod
    def decode(cls, encoded: bytes | memoryview) -> "Run":
        """The run that `encode` wrote; what it holds is copied out of `encoded`.

        Raises:
            msgspec.DecodeError: the bytes are no run.
        """
        return _DECODER.decode(encoded)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Run)
