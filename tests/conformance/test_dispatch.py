"""Dispatch: durable, all of a batch or none, once however often it is sent."""

import asyncio

import pytest

from runwick.contracts.dispatching import ReceiptDisposition
from runwick.contracts.errors import StoreError
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, BUILD, MEDIUM, SEND, Bench


def test_receipts_come_in_input_order_and_name_what_was_created(bench: Bench) -> None:
    commands = [bench.command() for _ in range(5)]
    receipts = bench.send(*commands)
    assert [(receipt.job, receipt.operation) for receipt in receipts] == [
        (command.job_id, command.operation_id) for command in commands
    ]
    assert {receipt.disposition for receipt in receipts} == {ReceiptDisposition.CREATED}
    assert {receipt.confirmed_profile for receipt in receipts} == {bench.store.profile}


def test_a_new_job_is_pending_and_due_now(bench: Bench) -> None:
    (job_id,) = bench.dispatch(tenant="north")
    job = bench.job(job_id)
    assert (job.state, job.kind, job.lane, job.tenant) == (JobState.PENDING, BUILD, MEDIUM, "north")
    assert (job.generation, job.revision, job.executions, job.max_executions) == (1, 1, 0, 3)
    assert job.created_at_ms == job.due_at_ms == bench.clock.now_ms()
    assert (job.code, job.ended_at_ms, job.result, list(job.attempts)) == (None, None, None, [])


@pytest.mark.parametrize(
    ("given", "due_in_ms"),
    [({"delay_ms": 5_000}, 5_000), ({"not_before_ms": 1_750_000_007_000}, 7_000), ({"not_before_ms": 1_000}, 0)],
    ids=["a delay", "a point in time", "a time in the past means now"],
)
def test_a_job_waits_for_its_time(bench: Bench, given: dict[str, int], due_in_ms: int) -> None:
    (job_id,) = bench.dispatch(**given)
    assert bench.job(job_id).due_at_ms == bench.clock.now_ms() + due_in_ms


def test_a_command_sent_again_answers_the_same_receipt_and_creates_nothing(bench: Bench) -> None:
    commands = [bench.command() for _ in range(3)]
    first = bench.run(bench.store.dispatch(commands[:2]))
    bench.clock.advance_ms(10)
    assert bench.run(bench.store.dispatch(commands))[:2] == first
    assert len(bench.claim().attempts) == 3
    assert bench.claim().attempts == []


def test_a_command_twice_in_one_batch_is_one_job(bench: Bench) -> None:
    command = bench.command()
    first, second = bench.run(bench.store.dispatch([command, command]))
    assert first == second
    assert len(bench.claim().attempts) == 1


def test_a_command_of_a_finished_job_does_not_bring_it_back(bench: Bench) -> None:
    command = bench.command()
    bench.run(bench.store.dispatch([command]))
    (attempt,) = bench.claim().attempts
    bench.succeed(attempt)
    bench.run(bench.store.dispatch([command]))
    assert bench.claim().attempts == []
    assert bench.job(command.job_id).state is JobState.SUCCEEDED


def test_a_batch_is_created_whole_or_not_at_all(bench: Bench) -> None:
    (taken,) = bench.dispatch(application="new")
    fresh = bench.command(kind=SEND, application="new")
    stranger = bench.command(job_id=taken, application="new")
    with pytest.raises(StoreError, match="was created by operation") as refused:
        bench.run(bench.store.dispatch([fresh, stranger]))
    assert refused.value.code == "operation_conflict"
    assert bench.run(bench.store.job("new", fresh.job_id)) is None
    bench.run(bench.store.dispatch([fresh]))
    assert bench.job(fresh.job_id, "new").state is JobState.PENDING


@pytest.mark.parametrize(
    "text",
    ["", "plain", "\u00e4\u00f6\u00fc\u00df", "\u20ac\u6f22\u5b57", "\U0001f600\U00010348", 'a"\\\n\t', "\u0000"],
    ids=["empty", "ascii", "two bytes", "three bytes", "four bytes", "escapes", "nul"],
)
def test_payload_and_metadata_read_back_byte_for_byte(bench: Bench, text: str) -> None:
    raw = b'{ "text" : "%s" }' % text.encode()
    tenant = text.replace("\u0000", "")  # in a text it is refused before any store sees it
    attempt = bench.claimed(payload=raw, metadata=raw, tenant=tenant, traceparent="00-ab-cd-01", tracestate="x=1")
    assert (attempt.payload, attempt.payload_bytes, attempt.metadata) == (raw, len(raw), raw)
    assert (attempt.tenant, attempt.traceparent, attempt.tracestate) == (tenant, "00-ab-cd-01", "x=1")


@pytest.mark.parametrize("letter", ["x", "\u00fc", "\u20ac", "\U0001f600"], ids=["1", "2", "3", "4"])
def test_payloads_around_every_limit_read_back_byte_for_byte(bench: Bench, letter: str) -> None:
    """F142: whatever the width of their letters."""
    width = len(letter.encode())
    for size in (1 << 16, 1 << 20):
        for extra in (-1, 0, 1):
            letters, fill = divmod(size + extra - 2, width)
            raw = f'"{letter * letters}{"y" * fill}"'.encode()
            attempt = bench.claimed(payload=raw)
            assert attempt.payload_bytes == len(raw) == size + extra
            read = attempt if attempt.begun else bench.begin(attempt).attempt
            assert read is not None
            assert read.payload == raw
            bench.succeed(read)


def test_a_payload_of_one_mebibyte_reads_back_byte_for_byte(bench: Bench) -> None:
    raw = b'"' + bytes(32 + i % 94 for i in range((1 << 20) - 2)).replace(b'"', b"'") + b'"'
    attempt = bench.claimed(payload=raw)
    assert (attempt.payload, attempt.payload_bytes) == (None, 1 << 20)
    begun = bench.begin(attempt).attempt
    assert begun is not None
    assert begun.payload == raw


def test_applications_do_not_see_each_other(bench: Bench) -> None:
    (job_id,) = bench.dispatch()
    bench.dispatch(application="bakery")
    assert bench.run(bench.store.job("bakery", job_id)) is None
    assert bench.run(bench.store.job("nobody", job_id)) is None
    assert [attempt.job_id for attempt in bench.claim().attempts] == [job_id]


def test_an_event_loop_runs_the_same_acts(bench: Bench) -> None:
    command = bench.command()

    async def life() -> JobState:
        store = bench.store
        await store.run_async(store.dispatch([command]))
        claim = await store.run_async(store.claim(bench.plan()))
        await store.run_async(store.release(claim.attempts))
        record = await store.run_async(store.job(APPLICATION, command.job_id))
        assert record is not None
        return record.state

    assert asyncio.run(life()) is JobState.PENDING
