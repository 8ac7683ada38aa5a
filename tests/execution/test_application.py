"""Middleware, upgrades and the profile of web requests, from the declaration to what the store says in the end."""

from collections.abc import Generator
from datetime import timedelta

import pytest

from runwick import Cancelled, Failed, Job, JobContext, JobDefaults, JobState, Result, Retry, Runwick
from runwick.testing import running


class Charge(Job):
    cents: int


class ChargeV1(Job):
    euros: int


def an_app(defaults: JobDefaults | None = None) -> Runwick:
    return Runwick("shop", store="memory://", job_defaults=defaults)


def test_a_job_that_an_older_release_dispatched_is_run_by_this_one() -> None:
    older, newer = an_app(), an_app()
    older.job("shop.charge")(ChargeV1)
    newer.job("shop.charge", version=2)(Charge)
    charged: list[int] = []

    @newer.handler
    def charge(job: Charge) -> None:
        charged.append(job.cents)

    with running(newer) as run:
        with older.store_replaced(newer.store):
            receipt = older.dispatch(ChargeV1(5))
        run.until_idle()
        assert newer.get(receipt).state is JobState.PENDING  # nothing leads from version 1: it is left alone
        newer.dispatch(Charge(7))
        run.until_idle()
        assert charged == [7]

        @newer.upgrade(Charge, from_version=1)
        def in_cents(old: ChargeV1) -> Charge:
            return Charge(old.euros * 100)

        run.until_idle()
        assert (newer.get(receipt).state, charged) == (JobState.SUCCEEDED, [7, 500])


def test_an_upgrade_that_raises_ends_the_job_with_its_first_attempt() -> None:
    older, newer = an_app(), an_app()
    older.job("shop.charge")(ChargeV1)
    newer.job("shop.charge", version=2)(Charge)

    @newer.handler
    def charge(job: Charge) -> None:
        pytest.fail("called")

    @newer.upgrade(Charge, from_version=1)
    def in_cents(old: ChargeV1) -> Charge:
        raise ZeroDivisionError

    with running(newer) as run:
        with older.store_replaced(newer.store):
            receipt = older.dispatch(ChargeV1(5))
        run.until_idle()
        view = newer.get(receipt)
    assert (view.state, view.code, len(view.attempts)) == (JobState.FAILED, "payload_upgrade_failed", 1)


def test_what_middleware_answers_is_what_becomes_of_the_job() -> None:
    rw = an_app()
    rw.job("shop.charge", max_executions=2, retry_delay=(timedelta(seconds=1), timedelta(minutes=1)))(Charge)
    answers: list[Result] = []

    @rw.handler
    def charge(job: Charge) -> None: ...

    @rw.middleware
    def answering(ctx: JobContext) -> Generator[None, Result, Result]:
        if answers:
            return answers.pop()
        return (yield)

    with running(rw) as run:
        answers[:] = [Failed("no_such_card", "Card 7 is void.")]
        failed = rw.dispatch(Charge(5))
        run.until_idle()
        answers[:] = [Cancelled("withdrawn")]
        cancelled = rw.dispatch(Charge(5))
        run.until_idle()
        answers[:] = [Retry("bank_closed", timedelta(hours=9))]
        retried = rw.dispatch(Charge(5))
        run.until_idle()
        assert rw.get(retried).state is JobState.RETRYING
        run.advance(timedelta(seconds=59))
        run.until_idle()
        assert rw.get(retried).state is JobState.RETRYING
        run.advance(timedelta(seconds=1))  # the job's longest delay, without any chance in it
        run.until_idle()
        views = [rw.get(receipt) for receipt in (failed, cancelled, retried)]
    assert [(view.state, view.code, len(view.attempts)) for view in views] == [
        (JobState.FAILED, "no_such_card", 1),
        (JobState.CANCELLED, "withdrawn", 1),
        (JobState.SUCCEEDED, None, 2),
    ]


def test_the_profile_of_web_requests() -> None:
    rw = an_app(JobDefaults.web_requests())
    rw.job("shop.charge")(Charge)
    runs: list[int] = []

    @rw.handler
    def charge(job: Charge, ctx: JobContext) -> None:
        runs.append(ctx.execution_number)
        raise ConnectionError("\U0001f4a5" * 1001)

    assert rw.catalog.by_record[Charge].policy.execution_timeout_ms == 600_000
    with running(rw) as run:
        receipt = rw.dispatch(Charge(5))
        run.until_idle()
        for nominal_s in (30, 60, 120, 240):
            run.advance(timedelta(seconds=nominal_s / 2) - timedelta(milliseconds=1))
            count = len(runs)
            run.until_idle()
            assert len(runs) == count  # half of the nominal delay is the least
            run.advance(timedelta(seconds=nominal_s / 2, milliseconds=1))
            run.until_idle()
        view = rw.get(receipt)
    assert runs == [1, 2, 3, 4, 5]
    assert (view.state, view.code) == (JobState.FAILED, "executions_exhausted")
    for attempt in view.attempts:
        assert attempt.error is not None
        assert (attempt.error.type, attempt.error.message, attempt.error.text) == (
            "ConnectionError",
            "\U0001f4a5" * 999 + "…",
            "",
        )
