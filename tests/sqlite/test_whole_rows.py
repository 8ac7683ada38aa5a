"""Claims that hand out what they have read before they took it, and batches that are settled without reading rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Answer, IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState
from tests.conformance.ground import (
    BUILD,
    FAILURE,
    KINDS,
    LARGE,
    MEDIUM,
    SEND,
    SUCCESS,
    Bench,
    resource,
    sqlite_bench,
)
from tests.sqlite.recording import recorded

SEVERAL_KINDS = ["claim_ready", "claim_ready", "claim_some", "claim_add", "claim_take"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    bench.run(bench.store.register("shop", [MEDIUM], KINDS))
    yield bench
    bench.store.close()


def succeeded(attempts: list[Attempt]) -> list[Settlement]:
    return [Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in attempts]


@pytest.mark.parametrize("kinds", [[BUILD], [BUILD, SEND]])
def test_what_a_claim_hands_out_is_what_was_asked_for(bench: Bench, kinds: list[object]) -> None:
    text = 'Zoë "quoted" \\ \u2028 \x01'
    many = {
        "metadata": '{"note":"Zo\u00eb \\u0000 \\\\ \u2028"}'.encode(),
        "tenant": text,
        "traceparent": "00-" + 32 * "a" + "-" + 16 * "b" + "-01",
        "tracestate": "vendor=1",
        "expires_at_ms": bench.clock.now_ms() + 60_000,
        "policy": JobPolicy(max_executions=2, max_crashes=1),
    }
    sent = [
        command
        for kind in kinds
        for command in (
            bench.command(kind=kind),
            bench.command(kind=kind, **many),
            bench.command(kind=kind, payload=LARGE),
        )
    ]
    bench.send(*sent)
    attempts = {attempt.job_id: attempt for attempt in bench.claim().attempts}
    assert len(attempts) == len(sent)
    for command in sent:
        attempt = attempts[command.job_id]
        assert (attempt.kind, attempt.lane, attempt.policy) == (command.kind, command.lane, command.policy)
        assert (attempt.metadata, attempt.tenant) == (command.metadata, command.tenant)
        assert (attempt.traceparent, attempt.tracestate) == (command.traceparent, command.tracestate)
        assert attempt.payload_bytes == len(command.payload)
        is_large = command.payload == LARGE
        assert attempt.payload == (None if is_large else command.payload)
        assert (attempt.number, attempt.execution, attempt.begun) == (1, 0 if is_large else 1, not is_large)
        assert attempt.runs_ahead


def test_a_later_attempt_tells_what_went_before(bench: Bench) -> None:
    bench.retry(bench.claimed(), delay_ms=0)
    (second,) = bench.claim().attempts
    bench.retry(second, delay_ms=0, outcome=Outcome(OutcomeKind.CRASHED, code="executor_died"))
    (third,) = bench.claim().attempts
    assert (third.number, third.execution, third.generation, third.crashes) == (3, 3, 1, 1)
    assert not third.runs_ahead


def test_a_claim_of_several_kinds_reads_the_rows_of_what_it_found(bench: Bench) -> None:
    bench.send(bench.command(), bench.command(kind=SEND), bench.command())
    bench.claim(kinds=frozenset())  # its names are known from now on
    with recorded() as steps:
        attempts = bench.claim().attempts
    assert [attempt.kind for attempt in attempts] == [BUILD, SEND, BUILD]
    assert [step.statement for step in steps][-len(SEVERAL_KINDS) :] == SEVERAL_KINDS


def test_a_batch_of_two_claims_is_settled_without_reading_its_rows(bench: Bench) -> None:
    bench.dispatch(16)
    attempts = bench.claim(free=8).attempts + bench.claim(free=8).attempts
    with recorded() as steps:
        answers = bench.run(bench.store.settle(succeeded(attempts[::2] + attempts[1::2])))
    assert answers == [Answer.DONE] * 16
    assert [step.statement for step in steps][:3] == ["held_plainly", "held_plainly", "next_position"]
    assert {bench.job(attempt.job_id).state for attempt in attempts} == {JobState.SUCCEEDED}


def test_an_attempt_that_stands_twice_in_a_batch_is_ended_once(bench: Bench) -> None:
    attempt = bench.claimed()
    answers = bench.run(bench.store.settle(succeeded([attempt, attempt])))
    assert answers == [Answer.DONE, Answer.NOT_YOURS]
    assert len(bench.job(attempt.job_id).attempts) == 1


@pytest.mark.parametrize("what", ["cancelled", "lost", "holds"])
def test_where_one_does_not_simply_run_each_is_looked_at(bench: Bench, what: str) -> None:
    bench.dispatch(1, scopes=(resource("printer"),) if what == "holds" else ())
    bench.dispatch(2)
    first, second, third = bench.claim().attempts
    if what == "cancelled":
        bench.cancel(first.job_id)
    if what == "lost":
        bench.release(first)
    if_cancelled = IfCancelled(OutcomeKind.CANCELLED, "cancel_requested")
    batch = [
        Settlement(first, FAILURE, JobState.RETRYING, "handler_failed", 1_000, if_cancelled),
        *succeeded([second, third]),
    ]
    with recorded() as steps:
        answers = bench.run(bench.store.settle(batch))
    assert [step.statement for step in steps][:2] == ["held_plainly", "held"]
    expected = {"cancelled": Answer.CANCELLED, "lost": Answer.NOT_YOURS, "holds": Answer.DONE}
    assert answers == [expected[what], Answer.DONE, Answer.DONE]
    if what == "holds":
        assert bench.claimed(scopes=(resource("printer"),)).holds == 1
