"""What an operator's controls do and answer, and how a lost answer is settled. On the store in memory."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from runwick import (
    BatchItem,
    ControlOutcomeUnknown,
    InvalidArgument,
    Job,
    JobState,
    JobTarget,
    ManagementActor,
    OutcomeUnknown,
    Receipt,
    Runwick,
    StoreError,
    StoreUnavailable,
)
from runwick.app.history import WorkerView
from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.attempts import WorkerPresence
from tests.app.running import fail, succeed
from tests.dispatch.unreliable import Call, failing

OPS = ManagementActor("ops-bot", "Ops bot", "service")
COMMAND = "0199c0de-0000-7000-8000-00000000000a"


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("store_unavailable", "somebody holds the row")


def lost() -> OutcomeUnknown:
    return OutcomeUnknown("outcome_unknown", "the answer was lost")


@pytest.fixture
def rw() -> Iterator[Runwick]:
    rw = Runwick("shop", store="memory://")

    @rw.job("order.pack", queue="orders")
    class Pack(Job):
        number: int = 0

    rw.pack = Pack  # type: ignore[attr-defined]
    yield rw
    rw.close()


def dispatch(rw: Runwick) -> Receipt:
    return rw.dispatch(rw.pack())  # type: ignore[attr-defined]


def actions(rw: Runwick) -> list[str]:
    return [record.action for record in rw.audit().records]


class TestControls:
    def test_a_waiting_job_is_cancelled_and_leaves_a_trail(self, rw: Runwick) -> None:
        receipt = dispatch(rw)
        seen = rw.get(receipt)
        result = rw.controls.cancel(seen.target, OPS, reason="ordered twice", command_id=COMMAND)
        assert (result.succeeded, result.code, result.state) == (True, None, JobState.CANCELLED)
        assert (result.job_id, result.command_id, result.replayed) == (seen.job_id, COMMAND, False)
        assert (result.generation, result.revision) == (1, seen.revision + 1)
        [record] = rw.audit().records
        assert (record.actor, record.actor_display, record.actor_scheme) == ("ops-bot", "Ops bot", "service")
        assert (record.action, record.job_id, record.reason) == ("cancel", seen.job_id, "ordered twice")
        assert (record.command_id, record.generation) == (COMMAND, 1)
        assert (record.before, record.after) == ("pending", "cancelled")

    def test_a_refusal_is_a_result_with_the_job_as_it_stands(self, rw: Runwick) -> None:
        receipt = dispatch(rw)
        seen = rw.get(receipt)
        stale = JobTarget.of(seen.job_id, 1, seen.revision + 1)
        result = rw.controls.cancel(stale, OPS)
        assert (result.succeeded, result.code) == (False, "stale_revision")
        assert (result.state, result.generation, result.revision) == (JobState.PENDING, 1, seen.revision)
        missing = rw.controls.cancel(JobTarget.of(str(uuid.UUID(int=7)), 1, 1), OPS)
        assert (missing.succeeded, missing.code, missing.state, missing.revision) == (False, "not_found", None, None)
        assert actions(rw) == []

    def test_a_failed_job_is_retried_and_a_succeeded_one_rerun(self, rw: Runwick) -> None:
        failed, good = dispatch(rw), dispatch(rw)
        fail(rw, "no_stock")
        succeed(rw)
        retried = rw.controls.retry(rw.get(failed).target, OPS)
        assert (retried.succeeded, retried.state, retried.generation) == (True, JobState.PENDING, 2)
        assert rw.controls.retry(rw.get(good).target, OPS).code == "invalid_state"
        rerun = rw.controls.rerun(rw.get(good).target, OPS)
        assert (rerun.succeeded, rerun.state, rerun.generation) == (True, JobState.PENDING, 2)
        assert rw.get(good).executions == 0
        assert actions(rw) == ["retry", "rerun"]

    def test_many_are_cancelled_in_one_command(self, rw: Runwick) -> None:
        targets = [rw.get(dispatch(rw)).target for _ in range(3)]
        succeed(rw)
        results = rw.controls.cancel_many(targets, OPS, command_id=COMMAND)
        assert [result.code for result in results] == ["stale_revision", None, None]
        assert [result.succeeded for result in results] == [False, True, True]
        assert actions(rw) == ["cancel", "cancel"]

    def test_a_job_that_waits_has_no_stack(self, rw: Runwick) -> None:
        result = rw.controls.look(rw.get(dispatch(rw)).target, OPS)
        assert (result.succeeded, result.code, result.attempt_id) == (False, "invalid_state", None)
        assert rw.controls.stack(str(uuid.UUID(int=7))) is None


class TestSending:
    def test_the_same_command_answers_what_it_answered_first(self, rw: Runwick) -> None:
        target = rw.get(dispatch(rw)).target
        first = rw.controls.cancel(target, OPS, command_id=COMMAND)
        again = rw.controls.cancel(target, OPS, command_id=uuid.UUID(COMMAND))
        assert (first.replayed, again.replayed) == (False, True)
        assert (again.succeeded, again.state, again.revision) == (True, JobState.CANCELLED, first.revision)
        assert actions(rw) == ["cancel"]

    @pytest.mark.parametrize("empty", ["", b"", 0])
    def test_an_empty_command_id_is_no_wish_for_a_new_one(self, rw: Runwick, empty: Any) -> None:
        target = rw.get(dispatch(rw)).target
        with pytest.raises(InvalidArgument, match="an id is a UUID"):
            rw.controls.cancel(target, OPS, command_id=empty)
        with pytest.raises(InvalidArgument, match="an id is a UUID"):
            asyncio.run(rw.controls.cancel_async(target, OPS, command_id=empty))
        assert actions(rw) == []

    def test_a_command_id_is_not_used_for_something_else(self, rw: Runwick) -> None:
        target, other = rw.get(dispatch(rw)).target, rw.get(dispatch(rw)).target
        rw.controls.cancel(target, OPS, command_id=COMMAND)
        with pytest.raises(StoreError) as caught:
            rw.controls.cancel(other, OPS, command_id=COMMAND)
        assert caught.value.code == "operation_conflict"
        assert rw.get(str(uuid.UUID(bytes=other.job_id))).state is JobState.PENDING

    @pytest.mark.parametrize("call", [Call(after=lost), Call(before=lost)])
    def test_a_lost_answer_is_asked_for_again(self, rw: Runwick, call: Call) -> None:
        target = rw.get(dispatch(rw)).target
        with failing(rw, call) as store:
            result = rw.controls.cancel(target, OPS)
            assert store.asked == ["cancel", "cancel"]
        assert (result.succeeded, result.replayed) == (True, call.after is not None)
        assert actions(rw) == ["cancel"]

    @pytest.mark.parametrize("second", [Call(before=lost), Call(before=lambda: StoreError("x", "refused"))])
    def test_two_lost_answers_are_unknown_and_the_id_settles_them(self, rw: Runwick, second: Call) -> None:
        target = rw.get(dispatch(rw)).target
        with failing(rw, Call(after=lost), second), pytest.raises(ControlOutcomeUnknown) as caught:
            rw.controls.cancel(target, OPS)
        assert caught.value.code == "outcome_unknown"
        assert rw.controls.cancel(target, OPS, command_id=caught.value.command_id).replayed

    def test_a_job_that_somebody_holds_is_waited_for_a_moment(self, rw: Runwick) -> None:
        target = rw.get(dispatch(rw)).target
        with failing(rw, Call(before=unavailable), Call(before=unavailable)) as store:
            assert rw.controls.cancel(target, OPS).succeeded
            assert store.asked == ["cancel"] * 3

    def test_a_refusal_of_the_store_is_raised_at_once(self, rw: Runwick) -> None:
        target = rw.get(dispatch(rw)).target
        with failing(rw, Call(before=lambda: StoreError("x", "refused"))) as store:
            with pytest.raises(StoreError, match="refused"):
                rw.controls.cancel(target, OPS)
            assert store.asked == ["cancel"]

    def test_whoever_stops_waiting_is_told_what_is_unknown(self, rw: Runwick) -> None:
        target = rw.get(dispatch(rw)).target
        with failing(rw, Call(after=KeyboardInterrupt)), pytest.raises(KeyboardInterrupt) as caught:
            rw.controls.cancel(target, OPS, command_id=COMMAND)
        assert isinstance(caught.value.__cause__, ControlOutcomeUnknown)
        assert caught.value.__cause__.command_id == COMMAND

    def test_a_task_that_is_cancelled_before_anything_was_sent_leaves_nothing_open(self, rw: Runwick) -> None:
        target = rw.get(dispatch(rw)).target

        async def cancel() -> None:
            with failing(rw, Call(before=asyncio.CancelledError)):
                await rw.controls.cancel_async(target, OPS)

        with pytest.raises(asyncio.CancelledError) as caught:
            asyncio.run(cancel())
        assert caught.value.__cause__ is None
        assert actions(rw) == []

    def test_every_control_has_a_twin_for_event_loops(self, rw: Runwick) -> None:
        first, second, third = (dispatch(rw) for _ in range(3))
        fail(rw, "no_stock")
        succeed(rw)

        async def act() -> list[str | None]:
            retried = await rw.controls.retry_async((await rw.get_async(first)).target, OPS)
            rerun = await rw.controls.rerun_async((await rw.get_async(second)).target, OPS)
            targets = [(await rw.get_async(third)).target]
            [many] = await rw.controls.cancel_many_async(targets, OPS)
            one = await rw.controls.cancel_async((await rw.get_async(first)).target, OPS)
            look = await rw.controls.look_async((await rw.get_async(second)).target, OPS)
            assert await rw.controls.stack_async(str(uuid.UUID(int=7))) is None
            return [retried.code, rerun.code, many.code, one.code, look.code]

        assert asyncio.run(act()) == [None, None, None, None, "invalid_state"]


class TestLooking:
    def test_events_are_read_from_a_cursor_on(self, rw: Runwick) -> None:
        receipt = dispatch(rw)
        begin = rw.events()
        assert [(event.what, event.job_id, event.name) for event in begin.events] == [
            ("dispatched", rw.get(receipt).job_id, "order.pack")
        ]
        succeed(rw)
        rest = rw.events(after=begin.cursor)
        assert [(event.what, event.state) for event in rest.events] == [
            ("attempt_ended", "succeeded"),
            ("job_ended", "succeeded"),
        ]
        assert rw.events(after=rest.cursor).events == ()
        first = rw.events(limit=1)
        assert (len(first.events), first.more) == (1, True)
        assert asyncio.run(rw.events_async(after=first.cursor)) == rw.events(after=first.cursor)

    @pytest.mark.parametrize("after", [5, b"1", 1.0, ["1"]])
    def test_what_is_no_text_is_no_cursor(self, rw: Runwick, after: Any) -> None:
        for read in (rw.events, rw.audit):
            with pytest.raises(InvalidArgument, match=f"after is {type(after).__name__}; give the cursor") as refused:
                read(after=after)
            assert refused.value.code == "invalid_argument"

    def test_nobody_works_yet(self, rw: Runwick) -> None:
        assert rw.workers() == [] == asyncio.run(rw.workers_async())
        assert rw.audit() == asyncio.run(rw.audit_async())

    def test_pages_are_iterables_of_what_is_on_them(self, rw: Runwick) -> None:
        dispatch(rw)
        rw.controls.cancel(rw.get(dispatch(rw)).target, OPS)
        events, audit = rw.events(), rw.audit()
        assert (list(events), len(events)) == (list(events.events), 4)
        assert (list(audit), len(audit)) == (list(audit.records), 1)

    def test_a_batch_receipt_is_an_iterable_of_its_receipts(self, rw: Runwick) -> None:
        answer = rw.dispatch_many([BatchItem(rw.pack(number)) for number in range(3)])  # type: ignore[attr-defined]
        assert (list(answer), len(answer)) == (answer.receipts, 3)
        assert [rw.get(receipt).job_id for receipt in answer] == [receipt.job_id for receipt in answer.receipts]

    def test_a_target_shows_its_id_as_text(self, rw: Runwick) -> None:
        view = rw.get(dispatch(rw))
        assert repr(view.target) == f"JobTarget(job_id={view.job_id}, generation=1, revision=1)"

    @pytest.mark.parametrize("departed_at_ms", [None, 2_000])
    def test_a_worker_that_has_departed_has_no_executors(self, departed_at_ms: int | None) -> None:
        presence = WorkerPresence(
            worker=bytes(16), application="shop", host="here", process=7, queues=("orders",), executors=1
        )
        record = WorkerRecord(
            presence=presence,
            seen_at_ms=1_000,
            departed_at_ms=departed_at_ms,
            told_at_ms=1_000,
            executors=[ExecutorActivity(number=1, pool="main", phase="handle")],
        )
        assert len(WorkerView.of(record).executors) == (1 if departed_at_ms is None else 0)
