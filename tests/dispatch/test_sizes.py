"""What is dispatched is read back byte by byte, up to the limits; one byte more is refused."""

import asyncio

import pytest

from runwick import BatchItem, DispatchOptions, DispatchValidationError, Runwick
from runwick.contracts.attempts import Attempt, ClaimPlan, Lane, LaneTurn
from runwick.contracts.dispatching import METADATA_MAX_BYTES
from runwick.contracts.states import Priority
from runwick.wire.limits import PAYLOAD_MAX_BYTES, STRING_MAX_BYTES
from tests.dispatch.jobs import Lines, Report, stored

CHARACTERS = ["a", "é", "€", "😀"]
"""One each of the widths that UTF-8 has."""


def of_size(size: int, character: str) -> Lines:
    """A record whose payload has exactly so many bytes, in texts of that character."""
    line = character * (STRING_MAX_BYTES // len(character.encode()))
    frame, more = len(b'{"lines":[]}'), len(line.encode()) + len(b'"",')
    lines = [line] * ((size - frame - 10) // more)
    left = size - frame - len(lines) * more - len(b'""')
    width = len(character.encode())
    return Lines([*lines, character * (left // width) + "x" * (left % width)])


def claimed(rw: Runwick) -> list[Attempt]:
    """Everything there is to run, with its payload, in the order of dispatch."""
    store, attempts = rw.store, list[Attempt]()
    while True:
        plan = ClaimPlan(
            application="shop",
            worker=rw.ids.ordered(),
            claim_token=rw.ids.secret(),
            turns=[LaneTurn(Lane(queue, each), 100) for queue in sorted(rw.catalog.queues) for each in Priority],
            kinds=frozenset(rw.catalog.jobs),
            free=100,
            ahead=0,
            payload_bytes=4 * 1024 * 1024,
            lease_ms=60_000,
        )
        found = store.run(store.claim(plan)).attempts
        if not found:
            return sorted(attempts, key=lambda attempt: attempt.job_id)
        attempts += [each if each.begun else begun(rw, each) for each in found]


def begun(rw: Runwick, attempt: Attempt) -> Attempt:
    """A large payload is read by the begin."""
    read = rw.store.run(rw.store.begin(attempt)).attempt
    assert read is not None
    return read


@pytest.mark.parametrize("character", CHARACTERS)
def test_a_payload_up_to_its_limit_is_read_back(rw: Runwick, character: str) -> None:
    for size in (PAYLOAD_MAX_BYTES - 1, PAYLOAD_MAX_BYTES):
        assert len(rw.prepare(of_size(size, character)).command.payload) == size
    sent = [rw.prepare(of_size(PAYLOAD_MAX_BYTES, character)), rw.prepare(of_size(64 * 1024 + 1, character))]
    for prepared in sent:
        rw.dispatch_prepared(prepared)
    assert [attempt.payload for attempt in claimed(rw)] == [prepared.command.payload for prepared in sent]


@pytest.mark.parametrize("character", CHARACTERS)
def test_one_byte_more_is_refused(rw: Runwick, character: str) -> None:
    job = of_size(PAYLOAD_MAX_BYTES + 1, character)
    with pytest.raises(DispatchValidationError, match="payload_too_large") as refused:
        rw.dispatch(job)
    assert "may have 1,048,576 bytes, this has 1,048,577" in refused.value.message
    with pytest.raises(DispatchValidationError, match="payload_too_large"):
        asyncio.run(rw.dispatch_many_async([Report("fine"), job]))
    assert stored(rw) == 0


@pytest.mark.parametrize("character", CHARACTERS)
def test_all_that_a_dispatch_says_is_read_back(rw: Runwick, character: str) -> None:
    room = METADATA_MAX_BYTES - len("key")
    width = len(character.encode())
    metadata = {"key": character * (room // width) + "x" * (room % width)}
    options = DispatchOptions(metadata=metadata, tenant="t" * 128, priority="low")
    prepared = rw.prepare_many([BatchItem(Report(character * 1000), options), Report("last")])
    rw.dispatch_prepared(prepared)
    for attempt, command in zip(claimed(rw), prepared.commands, strict=True):
        assert (attempt.job_id, attempt.kind, attempt.lane) == (command.job_id, command.kind, command.lane)
        assert (attempt.policy, attempt.payload) == (command.policy, command.payload)
        assert (attempt.metadata, attempt.tenant) == (command.metadata, command.tenant)


def test_a_batch_at_its_limit_is_read_back(rw: Runwick) -> None:
    prepared = rw.prepare_many([of_size(PAYLOAD_MAX_BYTES, "a"), of_size(PAYLOAD_MAX_BYTES, "€")])
    assert len(rw.dispatch_prepared(prepared).receipts) == 2
    assert [attempt.payload for attempt in claimed(rw)] == [command.payload for command in prepared.commands]
    with pytest.raises(DispatchValidationError, match="batch_too_large"):
        rw.dispatch_many([of_size(PAYLOAD_MAX_BYTES, "a"), of_size(PAYLOAD_MAX_BYTES, "€"), Report("")])
