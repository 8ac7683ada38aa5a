"""What a handler may know about its run."""

import datetime
from collections.abc import Mapping

import pytest

from runwick.contracts.cancelling import Cancellation
from runwick.contracts.context import JobContext
from runwick.contracts.limits import Fence
from runwick.contracts.policies import JobPolicy
from runwick.execution.cancellation import NEVER, Token
from runwick.execution.context import RunContext
from runwick.execution.run import Run
from tests.execution.declared import BuildReport, a_catalog, a_run


def handler(job: BuildReport) -> None: ...


CATALOG = a_catalog(handler)
ENTRY = CATALOG.by_record[BuildReport]


def a_context(run: Run | None = None, token: Cancellation = NEVER) -> JobContext:
    return RunContext(CATALOG.application, run or a_run(), ENTRY, BuildReport(3), token)


def test_every_documented_fact_is_there() -> None:
    context = a_context(
        a_run(
            job_id=bytes(range(16)),
            attempt_id=bytes(range(16, 32)),
            execution=2,
            generation=3,
            policy=JobPolicy(max_executions=5),
            created_at_ms=1_700_000_000_123,
            tenant="north",
        )
    )
    assert context.application == "shop"
    assert context.job_id == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert context.attempt_id == "10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert context.job_name == "reports.build"
    assert context.created_at == datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=datetime.UTC)
    assert (context.execution_number, context.max_executions, context.generation) == (2, 5, 3)
    assert (context.queue, context.priority) == ("reports", "low")
    assert type(context.priority) is str
    assert (context.original_payload_version, context.current_payload_version) == (1, 1)
    assert (context.serializer_profile_id, context.serializer_profile_version) == ("runwick.json", 1)
    assert context.payload == BuildReport(3)
    assert context.tenant == "north"


def test_metadata_and_trace_are_those_of_the_dispatch() -> None:
    context = a_context(a_run(metadata=b'{"shop":"north"}', traceparent="00-a-b-01", tracestate="v=1"))
    assert context.metadata == {"shop": "north"}
    assert context.metadata is context.metadata
    assert context.trace == {"traceparent": "00-a-b-01", "tracestate": "v=1"}
    assert a_context(a_run(traceparent="00-a-b-01")).trace == {"traceparent": "00-a-b-01"}


def test_a_plain_dispatch_leaves_them_empty() -> None:
    context = a_context()
    assert (context.metadata, context.trace, context.tenant) == ({}, {}, None)


@pytest.mark.parametrize("part", ["metadata", "trace"])
def test_the_facts_cannot_be_written(part: str) -> None:
    facts: Mapping[str, str] = getattr(a_context(a_run(metadata=b'{"shop":"north"}')), part)
    with pytest.raises(TypeError):
        facts["shop"] = "south"  # type: ignore[index]
    with pytest.raises(AttributeError):
        setattr(a_context(), part, {})


def test_fences_are_those_of_its_attempt() -> None:
    fences = (Fence("scale", 7), Fence("oven", 2))
    assert a_context(a_run(fences=fences)).fences == fences
    assert a_context().fences == ()


def test_items_are_the_runs_own() -> None:
    context = a_context()
    context.items["seen"] = 1
    assert context.items == {"seen": 1}
    assert a_context().items == {}


def test_its_cancellation_is_the_token_of_the_run() -> None:
    token = Token()
    assert a_context(token=token).cancellation is token
    assert not a_context().cancellation.is_set()


def test_it_says_what_it_is() -> None:
    run = a_run(job_id=bytes(16), policy=JobPolicy(max_executions=5))
    assert repr(a_context(run)) == ("<JobContext reports.build 00000000-0000-0000-0000-000000000000, execution 1 of 5>")
