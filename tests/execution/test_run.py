"""What crosses to an executor with a payload."""

import msgspec
import pytest

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.limits import Fence
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.execution.run import Run
from tests.attempts import an_attempt

ATTEMPT = an_attempt(
    kind=Kind("image.thumbnail", 2),
    lane=Lane("images", Priority.HIGH),
    number=4,
    execution=3,
    generation=2,
    policy=JobPolicy(max_executions=5, error_detail="message"),
    payload=b'{"path":"a.png"}',
    metadata=b'{"shop":"north"}',
    tenant="north",
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    tracestate="vendor=1",
    fences=(Fence("scale", 7), Fence("oven", 2)),
)


def test_a_run_comes_back_as_it_was() -> None:
    run = Run.of(ATTEMPT)
    assert Run.decode(run.encode()) == run
    assert run == Run(
        job_id=ATTEMPT.job_id,
        attempt_id=ATTEMPT.attempt_id,
        name="image.thumbnail",
        version=2,
        queue="images",
        priority=Priority.HIGH,
        execution=3,
        max_executions=5,
        generation=2,
        created_at_ms=ATTEMPT.created_at_ms,
        metadata=b'{"shop":"north"}',
        tenant="north",
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        tracestate="vendor=1",
        message_only=True,
        fences=(Fence("scale", 7), Fence("oven", 2)),
    )


def test_all_of_an_error_is_kept_unless_the_policy_says_otherwise() -> None:
    assert not Run.of(an_attempt()).message_only


def test_a_run_outlives_the_memory_it_was_read_from() -> None:
    lying = bytearray(Run.of(ATTEMPT).encode())
    run = Run.decode(memoryview(lying))
    lying[:] = bytes(len(lying))
    assert run == Run.of(ATTEMPT)


def test_the_proof_of_ownership_and_the_payload_stay_behind() -> None:
    encoded = Run.of(ATTEMPT).encode()
    assert ATTEMPT.claim_token not in encoded
    assert b"a.png" not in encoded


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        Run.decode(b"\x93\x01\x02\x03")
