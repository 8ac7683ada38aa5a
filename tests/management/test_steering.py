"""Pausing queues and changing capacities: what is done, refused, replayed and left unknown. On the store in memory."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from runwick import ControlOutcomeUnknown, InvalidArgument, Job, PerResource, Runwick, StoreError
from runwick.contracts.limits import LimitKind
from runwick.management import QueueView
from tests.dispatch.unreliable import Call, failing
from tests.management.test_service import COMMAND, OPS, actions, lost, unavailable


class Charge(Job):
    account: str = "a"


@pytest.fixture
def rw() -> Iterator[Runwick]:
    rw = Runwick("shop", store="memory://")
    rw.queue("mails")
    rw.job("account.charge", queue="accounts", per_resource=(PerResource(lambda job: job.account, 2),))(Charge)
    rw.dispatch(Charge())
    yield rw
    rw.close()


class TestQueues:
    def test_a_queue_is_paused_and_resumed_and_leaves_a_trail(self, rw: Runwick) -> None:
        assert rw.queues.list() == (QueueView(queue="accounts", paused=False, revision=0, since=None),)
        paused = rw.queues.pause("accounts", OPS, expected_revision=0, reason="outage", command_id=COMMAND)
        assert (paused.succeeded, paused.code, paused.revision) == (True, None, 1)
        assert (paused.before, paused.after, paused.command_id) == ("open", "paused", COMMAND)
        (view,) = rw.queues.list()
        assert (view.paused, view.revision, view.since) == (True, 1, rw.audit().records[0].at)
        resumed = rw.queues.resume("accounts", OPS, expected_revision=1)
        assert (resumed.succeeded, resumed.revision, resumed.after) == (True, 2, "open")
        assert actions(rw) == ["pause", "resume"]

    def test_a_refusal_is_a_result_with_the_queue_as_it_stands(self, rw: Runwick) -> None:
        stale = rw.queues.pause("accounts", OPS, expected_revision=3)
        assert (stale.succeeded, stale.code, stale.revision, stale.before) == (False, "stale_revision", 0, "open")
        assert rw.queues.resume("accounts", OPS, expected_revision=0).code == "invalid_state"
        assert actions(rw) == []

    def test_a_declared_queue_can_be_paused_before_anybody_serves_it(self, rw: Runwick) -> None:
        assert rw.queues.pause("mails", OPS, expected_revision=0).succeeded
        assert [(view.queue, view.paused) for view in rw.queues.list()] == [("accounts", False), ("mails", True)]
        assert actions(rw) == ["pause"]

    def test_an_unknown_queue_is_an_error(self, rw: Runwick) -> None:
        message = "neither the application nor its store has a queue 'acounts'; declared are: accounts, mails"
        for act in (rw.queues.pause, rw.queues.resume):
            with pytest.raises(InvalidArgument, match=message) as refused:
                act("acounts", OPS, expected_revision=0)
            assert refused.value.code == "unknown_queue"

    @pytest.mark.parametrize("revision", [-1, True, "1", None, 1.0, 2**31])
    def test_a_revision_is_a_number(self, rw: Runwick, revision: Any) -> None:
        with failing(rw) as store:
            with pytest.raises(InvalidArgument, match="expected_revision is"):
                rw.queues.pause("accounts", OPS, expected_revision=revision)
            with pytest.raises(InvalidArgument, match="is no queue's name"):
                rw.queues.pause("two words", OPS, expected_revision=0)
            with pytest.raises(InvalidArgument, match="actor is str"):
                rw.queues.pause("accounts", "ops", expected_revision=0)  # type: ignore[arg-type]
            assert store.asked == []

    def test_a_paused_queue_is_claimed_from_again_once_it_is_resumed(self, rw: Runwick) -> None:
        from tests.app.running import succeed

        rw.queues.pause("accounts", OPS, expected_revision=0)
        with pytest.raises(ValueError, match="not enough values"):
            succeed(rw)
        rw.queues.resume("accounts", OPS, expected_revision=1)
        succeed(rw)


class TestCapacity:
    def test_scopes_are_listed_and_changed(self, rw: Runwick) -> None:
        (scope,) = rw.capacity.scopes("resource")
        assert (scope.kind, scope.key, scope.capacity, scope.in_use) == (LimitKind.RESOURCE, "a", 2, 0)
        done = rw.capacity.set("resource", "a", 5, OPS, expected_revision=scope.revision, command_id=COMMAND)
        assert (done.succeeded, done.revision, done.before, done.after) == (True, 2, "2", "5")
        assert [each.capacity for each in rw.capacity.scopes(LimitKind.RESOURCE)] == [5]
        [record] = rw.audit().records
        assert (record.action, record.target, record.before, record.after) == ("set_capacity", "resource a", "2", "5")
        assert rw.capacity.set("resource", "b", 5, OPS, expected_revision=1).code == "not_found"
        assert rw.capacity.scopes("queue") == [] == rw.capacity.rates("job-type")

    def test_pages_follow_one_another(self, rw: Runwick) -> None:
        for number in range(4):
            rw.dispatch(Charge(f"account {number}"))
        whole = rw.capacity.scopes("resource")
        first = rw.capacity.scopes("resource", limit=2)
        rest = rw.capacity.scopes("resource", after=first[-1].id, limit=10)
        assert [*first, *rest] == whole
        assert len(whole) == 5

    def test_what_cannot_be_is_one_clear_error(self, rw: Runwick) -> None:
        wrong: list[tuple[tuple[Any, ...], str]] = [
            (("jobs", "a", 1), "there is no kind of limit 'jobs'; give one of queue, job-type, resource"),
            (("resource", "a", 0), "capacity is 0; give a whole number from 1 to 1,000,000"),
            (("resource", "a", True), "capacity is True"),
            (("resource", "", 1), "the key of a resource is ''"),
            (("resource", "é" * 257, 1), "give text of 1 to 512 bytes"),
            (("job-type", "two words", 1), "'two words' is no job's name"),
        ]
        with failing(rw) as store:
            for (kind, key, capacity), message in wrong:
                with pytest.raises(InvalidArgument, match=message):
                    rw.capacity.set(kind, key, capacity, OPS, expected_revision=1)
            for after in ("x", "00", 5):
                with pytest.raises(InvalidArgument, match="give the id of a limit"):
                    rw.capacity.scopes("queue", after=after)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument, match="limit is 0"):
                rw.capacity.rates("queue", limit=0)
            assert store.asked == []


class TestSending:
    def test_the_same_command_answers_what_it_answered_first(self, rw: Runwick) -> None:
        first = rw.queues.pause("accounts", OPS, expected_revision=0, command_id=COMMAND)
        again = rw.queues.pause("accounts", OPS, expected_revision=0, command_id=uuid.UUID(COMMAND))
        assert (first.replayed, again.replayed, again.succeeded, again.revision) == (False, True, True, 1)
        with pytest.raises(StoreError) as caught:
            rw.queues.resume("accounts", OPS, expected_revision=1, command_id=COMMAND)
        assert caught.value.code == "operation_conflict"
        assert actions(rw) == ["pause"]

    @pytest.mark.parametrize("call", [Call(after=lost), Call(before=lost)])
    def test_a_lost_answer_is_asked_for_again(self, rw: Runwick, call: Call) -> None:
        with failing(rw, call) as store:
            result = rw.queues.pause("accounts", OPS, expected_revision=0)
            assert store.asked == ["pause", "pause"]
        assert (result.succeeded, result.replayed) == (True, call.after is not None)

    def test_two_lost_answers_are_unknown_and_the_id_settles_them(self, rw: Runwick) -> None:
        with failing(rw, Call(after=lost), Call(before=lost)), pytest.raises(ControlOutcomeUnknown) as caught:
            rw.capacity.set("resource", "a", 3, OPS, expected_revision=1)
        settled = rw.capacity.set("resource", "a", 3, OPS, expected_revision=1, command_id=caught.value.command_id)
        assert (settled.replayed, settled.succeeded, settled.after) == (True, True, "3")

    def test_a_row_that_somebody_holds_is_waited_for_a_moment(self, rw: Runwick) -> None:
        with failing(rw, Call(before=unavailable), Call(before=unavailable)) as store:
            assert rw.queues.pause("accounts", OPS, expected_revision=0).succeeded
            assert store.asked == ["pause"] * 3

    def test_an_empty_command_id_is_no_wish_for_a_new_one(self, rw: Runwick) -> None:
        with pytest.raises(InvalidArgument, match="an id is a UUID"):
            rw.queues.pause("accounts", OPS, expected_revision=0, command_id="")

    def test_everything_has_a_twin_for_event_loops(self, rw: Runwick) -> None:
        async def act() -> None:
            assert (await rw.queues.pause_async("accounts", OPS, expected_revision=0)).succeeded
            assert (await rw.queues.resume_async("accounts", OPS, expected_revision=1)).succeeded
            assert (await rw.capacity.set_async("resource", "a", 9, OPS, expected_revision=1)).succeeded
            assert await rw.queues.list_async() == rw.queues.list()
            assert await rw.capacity.scopes_async("resource") == rw.capacity.scopes("resource")
            assert await rw.capacity.rates_async("resource") == rw.capacity.rates("resource")
            with pytest.raises(InvalidArgument, match="unknown_queue"):
                await rw.queues.pause_async("acounts", OPS, expected_revision=0)

        asyncio.run(act())
