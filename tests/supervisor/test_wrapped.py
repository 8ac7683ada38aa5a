"""Middleware and upgrades on executors."""

import asyncio

import msgspec

from runwick.contracts.attempts import Kind
from runwick.contracts.outcomes import OutcomeKind
from runwick.contracts.policies import JobPolicy
from tests.attempts import an_attempt
from tests.supervisor.applications import wrapped
from tests.supervisor.applications.wrapped import Awaiting, Calling, Generating
from tests.supervisor.crew import crew, until

TARGET = "tests.supervisor.applications.wrapped"


def test_every_form_of_middleware_runs_and_answers() -> None:
    async def scene() -> None:
        async with crew(1, TARGET, application=wrapped.rw) as its:
            for record, way, version in ((Generating, "generator", 2), (Calling, "plain", 1), (Awaiting, "async", 1)):
                assert await its.result(record("fine")) == f"fine by {way}, version {version} of {version}"
                assert await its.result(record("skip")) == "skipped"
                outcomes = await its.run(record("retry"), record("fail"), record("cancel"))
                assert [(each.kind, each.code, each.retry_after_ms) for each in outcomes] == [
                    (OutcomeKind.FAILED, "bank_closed", 90_000),
                    (OutcomeKind.FAILED_PERMANENTLY, "no_such_card", None),
                    (OutcomeKind.CANCELLED, "withdrawn", None),
                ]

    asyncio.run(scene())


def test_a_payload_of_an_older_version_is_upgraded() -> None:
    async def scene() -> None:
        async with crew(1, TARGET, application=wrapped.rw) as its:
            old = an_attempt(kind=Kind("wrapped.generator", 1), payload=b'{"words":["all","fine"]}', payload_bytes=24)
            its.give(old)
            await until(lambda: its.outcomes, "it to end")
            (outcome,) = its.outcomes[old.job]
            assert outcome.result is not None
            assert msgspec.json.decode(outcome.result) == "all fine by generator, version 1 of 2"

    asyncio.run(scene())


def test_only_type_and_message_of_an_error_are_kept_where_the_policy_says_so() -> None:
    async def scene() -> None:
        async with crew(1, TARGET, application=wrapped.rw) as its:
            attempt = an_attempt(
                kind=Kind("wrapped.plain", 1),
                payload=b'{"text":7}',
                payload_bytes=10,
                policy=JobPolicy(error_detail="message"),
            )
            its.give(attempt)
            await until(lambda: its.outcomes, "it to end")
            (outcome,) = its.outcomes[attempt.job]
            assert outcome.code == "payload_undecodable"
            assert outcome.error is not None
            assert outcome.error.message.startswith("the payload is no Calling")
            assert outcome.error.text == ""

    asyncio.run(scene())
