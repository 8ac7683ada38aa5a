"""`runwick.testing.running`: the real worker inside a test."""

import asyncio
import datetime
import warnings

import pytest

from runwick import (
    ConfigurationError,
    Job,
    JobContext,
    ManagementActor,
    PermanentJobFailure,
    PerResource,
    RollingWindow,
    Runwick,
)
from runwick.testing import running


class Greet(Job):
    name: str


def application() -> tuple[Runwick, list[str]]:
    rw = Runwick("greetings", store="sqlite:///never-opened.db")
    rw.job("greetings.greet", max_executions=2)(Greet)
    seen: list[str] = []

    @rw.handler
    def greet(job: Greet, ctx: JobContext) -> str:
        seen.append(f"{job.name} {ctx.execution_number}")
        if job.name == "nobody":
            raise PermanentJobFailure("nobody_there", "there is nobody to greet")
        if job.name == "shy" and ctx.execution_number == 1:
            raise ValueError("not yet")
        if job.name == "chain":
            rw.dispatch(Greet("link"))
        return f"Hello, {job.name}!"

    return rw, seen


def test_what_is_due_runs_until_nothing_is() -> None:
    rw, seen = application()
    with running(rw) as run:
        receipt = rw.dispatch(Greet("chain"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tally = run.until_idle()
        assert seen == ["chain 1", "link 1"]
        assert tally.succeeded == 2
        assert rw.get(receipt).state == "succeeded"
        assert rw.get(receipt).result(str) == "Hello, chain!"


def test_all_declared_pools_serve_their_queues() -> None:
    rw, _ = application()
    rw.queue("letters")
    rw.pool("main", queues=("default",), concurrency=1)
    rw.pool("letters", queues=("letters",), concurrency=1)
    with running(rw) as run:
        receipts = [rw.dispatch(Greet("here")), rw.dispatch(Greet("there"), queue="letters")]
        assert run.until_idle().succeeded == 2
        assert [rw.get(receipt).state for receipt in receipts] == ["succeeded", "succeeded"]


def test_a_retry_comes_due_when_the_test_moves_the_time() -> None:
    rw, seen = application()
    with running(rw) as run:
        receipt = rw.dispatch(Greet("shy"))
        run.until_idle()
        assert rw.get(receipt).state == "retrying"
        run.advance(datetime.timedelta(seconds=5))
        run.until_idle()
        assert (seen, rw.get(receipt).state) == (["shy 1", "shy 2"], "succeeded")


def test_failures_are_outcomes_and_not_errors_of_the_test() -> None:
    rw, _ = application()
    with running(rw) as run:
        receipt = rw.dispatch(Greet("nobody"))
        tally = run.until_idle()
        assert (tally.failed, rw.get(receipt).code) == (1, "nobody_there")


def test_delayed_jobs_wait_for_the_tests_time() -> None:
    rw, seen = application()
    with running(rw) as run:
        rw.dispatch(Greet("later"), not_before=datetime.timedelta(hours=3))
        run.until_idle()
        assert seen == []
        run.advance(datetime.timedelta(hours=3))
        run.until_idle()
        assert seen == ["later 1"]


def test_an_async_test_awaits_it() -> None:
    rw, seen = application()

    async def scenario() -> None:
        with running(rw) as run:
            await rw.dispatch_async(Greet("async"))
            await run.until_idle_async()

    asyncio.run(scenario())
    assert seen == ["async 1"]


def test_the_applications_own_store_is_its_own_again_afterwards() -> None:
    rw, _ = application()
    with running(rw):
        rw.dispatch(Greet("inside"))
    with pytest.raises(Exception, match="store_not_installed"):
        rw.dispatch(Greet("outside"))


def test_wrong_declarations_are_refused_before_anything_runs() -> None:
    rw, _ = application()
    rw.pool("main", queues=("greatings",))
    with pytest.raises(ConfigurationError, match="greatings"), running(rw):
        raise AssertionError("the block must not begin")


def test_time_does_not_go_back() -> None:
    rw, _ = application()
    with running(rw) as run, pytest.raises(ValueError, match="forward"):
        run.advance(datetime.timedelta(seconds=-1))


class Weigh(Job):
    crate: str


def scales() -> tuple[Runwick, list[tuple[str, int]]]:
    """At most two crates a minute, and one at a time on each scale."""
    rw = Runwick("harbour", store="sqlite:///never-opened.db")
    rw.job(
        "crate.weigh",
        per_resource=(PerResource(lambda job: "scale", 1),),
        rolling_window=RollingWindow(2, datetime.timedelta(minutes=1)),
        unique_while_active=lambda job: job.crate,
    )(Weigh)
    weighed: list[tuple[str, int]] = []

    @rw.handler
    def weigh(job: Weigh, ctx: JobContext) -> None:
        (fence,) = ctx.fences
        weighed.append((job.crate, fence.value))

    return rw, weighed


def test_limits_hold_as_on_a_real_store_and_time_is_the_tests_own() -> None:
    rw, weighed = scales()
    with running(rw) as run:
        receipts = [rw.dispatch(Weigh(crate)) for crate in ("a", "b", "c", "b")]
        assert [receipt.disposition for receipt in receipts] == ["created"] * 3 + ["reused"]
        run.until_idle()
        assert weighed == [("a", 1), ("b", 2)], "one after the other, with a token that rises"
        assert [reason.code for reason in rw.why(receipts[2]).reasons] == ["no_pool", "rate_full"]
        assert rw.capacity.scopes("resource")[0].in_use == 0
        run.advance(datetime.timedelta(minutes=1))
        run.until_idle()
        assert weighed == [("a", 1), ("b", 2), ("c", 3)]


def test_a_line_longer_than_a_window_empties_window_by_window() -> None:
    rw, weighed = scales()
    with running(rw) as run:
        for number in range(7):
            rw.dispatch(Weigh(f"crate {number}"))
        for expected in (2, 4, 6, 7):
            run.until_idle()
            assert len(weighed) == expected
            run.advance(datetime.timedelta(minutes=1))
    assert [crate for crate, _ in weighed] == [f"crate {number}" for number in range(7)]


def test_a_paused_queue_is_left_alone() -> None:
    rw, seen = application()
    with running(rw) as run:
        rw.dispatch(Greet("here"))
        rw.queues.pause("default", ManagementActor("ops", "Ops", "service"), expected_revision=0)
        run.until_idle()
        assert seen == []
        rw.queues.resume("default", ManagementActor("ops", "Ops", "service"), expected_revision=1)
        run.until_idle()
        assert seen == ["here 1"]
