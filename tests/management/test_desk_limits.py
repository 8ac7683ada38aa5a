"""What operators see of queues, workers and limits, and do to them."""

from collections.abc import Awaitable

import pytest

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.administration import WORKER_ALIVE_MS
from runwick.contracts.controls import SteerAction
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter
from runwick.management.bodies import SteerBody, WorkerListBody
from runwick.management.permissions import Caller, Grant, Permission
from tests.conformance.ground import capped, resource, window
from tests.management.counter import ALL, COMMAND, MAILS, NOBODY, OPS, Counter, only, refused, run, same_but_for


class TestQueues:
    def test_each_tells_how_far_behind_it_is(self, counter: Counter) -> None:
        counter.report()
        counter.bench.clock.advance_ms(2_000)
        counter.report()
        counter.report(delay_ms=60_000)
        counter.begun(MAILS)
        body = run(counter.desk.queues(ALL))
        mails, reports = body.queues
        assert (reports.queue, reports.due, reports.later, reports.blocked, reports.leased) == ("reports", 2, 1, 0, 0)
        assert (reports.declared, reports.paused, reports.revision) == (True, False, 0)
        assert reports.oldest_due_at == "2025-06-15T15:06:40.000Z"
        assert (mails.queue, mails.due, mails.leased, mails.oldest_due_at) == ("mails", 0, 1, None)
        assert body.as_of == "2025-06-15T15:06:42.000Z"

    def test_what_is_declared_is_there_before_anybody_uses_it(self, one: Counter) -> None:
        assert [queue.queue for queue in run(one.desk.queues(ALL)).queues] == ["mails", "reports"]
        narrow = run(one.desk.queues(only(Permission.QUEUES_READ, queues={"reports"})))
        assert [queue.queue for queue in narrow.queues] == ["reports"]
        assert refused(one.desk.queues(NOBODY))[1] == "forbidden"

    def test_pausing_leaves_one_change_and_one_row(self, counter: Counter) -> None:
        counter.report()
        first = run(counter.desk.pause(ALL, "reports", 0, "broken printer", COMMAND))
        again = run(counter.desk.pause(ALL, "reports", 0, "broken printer", COMMAND))
        assert (first.succeeded, first.before, first.after, first.revision) == (True, "open", "paused", 1)
        assert (first.replayed, again.replayed, again.revision) == (False, True, 1)
        [record] = run(counter.desk.audit(ALL, AuditFilter(target="queue"))).records
        assert (record.action, record.target, record.reason) == ("pause", "queue reports", "broken printer")
        stale = run(counter.desk.resume(ALL, "reports", 0))
        assert (stale.succeeded, stale.code, stale.revision) == (False, "stale_revision", 1)
        assert counter.bench.queue().paused
        assert run(counter.desk.resume(ALL, "reports", 1)).after == "open"
        assert [action for action, _ in counter.trail] == ["pause", "resume"]

    @pytest.mark.parametrize("action", [SteerAction.PAUSE, SteerAction.RESUME])
    def test_a_hidden_queue_is_a_missing_one(self, counter: Counter, action: SteerAction) -> None:
        counter.report()
        caller = only(Permission.QUEUES_CONTROL, queues={"mails"})
        steer = getattr(counter.desk, action.value)
        answers = [
            run(steer(caller, "reports", 0, None, COMMAND)),
            run(steer(caller, "nowhere", 0, None, COMMAND)),
            run(steer(ALL, "nowhere", 0, None, COMMAND)),
        ]
        assert len(set(map(same_but_for(()), answers))) == 1
        assert (answers[0].succeeded, answers[0].code) == (False, "not_found")
        assert not counter.bench.queue().paused
        assert counter.trail == []

    def test_a_queue_needs_its_permission(self, one: Counter) -> None:
        others = only(*(each for each in Permission if each is not Permission.QUEUES_CONTROL))
        assert refused(one.desk.pause(others, "reports", 0))[1] == "forbidden"
        assert refused(one.desk.pause(ALL, "no queue", 0))[1] == "invalid_argument"
        assert refused(one.desk.pause(ALL, "reports", -1))[1] == "invalid_argument"


class TestWorkers:
    def told(self, counter: Counter, caller: Caller) -> WorkerListBody:
        """By a worker that runs a report of one tenant and a mail, and has one executor idle."""
        report, mail = counter.begun(tenant="acme"), counter.begun(MAILS)
        activities = [
            ExecutorActivity(
                number=number,
                pool="main",
                phase="handle",
                job_id=attempt.job_id,
                attempt_id=attempt.attempt_id,
                name=attempt.kind.name,
                cpu_us=5,
            )
            for number, attempt in enumerate((report, mail), 1)
        ]
        counter.bench.renew(executors=[*activities, ExecutorActivity(number=3, pool="main", phase="idle", restarts=2)])
        return run(counter.desk.workers(caller))

    def test_executors_tell_what_they_do(self, counter: Counter) -> None:
        [worker] = self.told(counter, ALL).workers
        assert (worker.host, worker.alive, worker.queues) == ("worker-1", True, ("reports",))
        assert [each.name for each in worker.executors] == ["reports.build", "mails.send", None]
        assert worker.executors[2].restarts == 2
        assert None not in {each.job_id for each in worker.executors[:2]}

    @pytest.mark.parametrize(
        ("grants", "shown"),
        [
            ([], [None, None]),
            ([Grant(Permission.JOBS_READ)], ["reports.build", "mails.send"]),
            ([Grant(Permission.JOBS_READ, queues=frozenset({"mails"}))], [None, "mails.send"]),
            ([Grant(Permission.JOBS_READ, tenants=frozenset({"acme"}))], ["reports.build", None]),
            ([Grant(Permission.JOBS_READ, tenants=frozenset({"other"}))], [None, None]),
        ],
    )
    def test_whose_job_it_is_is_told_within_reach(
        self, counter: Counter, grants: list[Grant], shown: list[str | None]
    ) -> None:
        caller = Caller.of(OPS, [Grant(Permission.CAPACITY_READ), *grants])
        [worker] = self.told(counter, caller).workers
        assert [each.name for each in worker.executors[:2]] == shown
        for each, name in zip(worker.executors, shown, strict=False):
            assert (each.job_id is None, each.attempt_id is None, each.cpu_us) == (name is None, name is None, 5)

    def test_one_that_was_not_seen_for_long_is_not_alive(self, counter: Counter) -> None:
        self.told(counter, ALL)
        counter.bench.clock.advance_ms(WORKER_ALIVE_MS)
        [worker] = run(counter.desk.workers(ALL)).workers
        assert (worker.alive, worker.departed_at, worker.told_at) == (False, None, "2025-06-15T15:06:40.000Z")
        assert refused(counter.desk.workers(only(Permission.JOBS_READ)))[1] == "forbidden"


class TestLimits:
    def test_scopes_of_all_kinds_come_page_by_page(self, counter: Counter) -> None:
        counter.report(scopes=(capped("reports", 5), resource("printer", 2), resource("plotter")))
        first = run(counter.desk.scopes(ALL, limit=2))
        second = run(counter.desk.scopes(ALL, cursor=first.cursor, limit=2))
        assert second.cursor is None
        assert first.scopes[0].kind == "queue"
        assert (first.scopes[0].key, first.scopes[0].capacity) == ("reports", 5)
        assert {each.key for each in (*first.scopes, *second.scopes)} == {"reports", "printer", "plotter"}
        of_kind = run(counter.desk.scopes(ALL, "resource"))
        assert {each.key for each in of_kind.scopes} == {"printer", "plotter"}

    def test_rates_come_alike(self, counter: Counter) -> None:
        counter.report(rates=(window("api", 7), window("db", 3)))
        first = run(counter.desk.rates(ALL, LimitKind.RESOURCE, limit=1))
        second = run(counter.desk.rates(ALL, LimitKind.RESOURCE, first.cursor, 1))
        shown = {(each.key, each.max_executions) for each in (*first.rates, *second.rates)}
        assert shown == {("api", 7), ("db", 3)}

    @pytest.mark.parametrize("cursor", ["", "7", "queue.", "resource.zz", "queue." + "0" * 30, "x." + "0" * 32])
    def test_what_is_no_cursor_is_refused(self, one: Counter, cursor: str) -> None:
        for ask in (one.desk.scopes(ALL, cursor=cursor), one.desk.rates(ALL, cursor=cursor)):
            assert refused(ask)[1] == "invalid_argument"
        of_another_kind = one.desk.scopes(ALL, "resource", "queue." + "0" * 32)
        assert refused(of_another_kind)[1] == "invalid_argument"

    def test_a_capacity_is_changed_once(self, counter: Counter) -> None:
        counter.report(scopes=(resource("printer", 2),))

        def ask(revision: int, command_id: str | None) -> Awaitable[SteerBody]:
            return counter.desk.set_capacity(ALL, "resource", "printer", 4, revision, "two more", command_id)

        first, again = run(ask(1, COMMAND)), run(ask(1, COMMAND))
        assert (first.succeeded, first.before, first.after, first.replayed) == (True, "2", "4", False)
        assert (again.replayed, again.revision) == (True, first.revision)
        assert run(ask(1, None)).code == "stale_revision"
        assert counter.bench.scope("printer").capacity == 4
        assert [action for action, _ in counter.trail] == ["set_capacity"]

    @pytest.mark.parametrize("key", ["", "\x00", "print\x00er", "\ud800", "x" * 1025])
    def test_what_no_store_can_keep_is_no_key(self, counter: Counter, key: str) -> None:
        ask = counter.desk.set_capacity(ALL, "resource", key, 1, 1)
        assert refused(ask)[:2] == ("InvalidArgument", "invalid_argument")

    def test_they_need_their_permissions(self, one: Counter) -> None:
        read = only(*(each for each in Permission if each is not Permission.CAPACITY_READ))
        edit = only(*(each for each in Permission if each is not Permission.CAPACITY_EDIT))
        for ask in (
            one.desk.scopes(read),
            one.desk.rates(read),
            one.desk.workers(read),
            one.desk.set_capacity(edit, "resource", "printer", 1, 1),
        ):
            assert refused(ask)[1] == "forbidden"


def test_ids_are_text(counter: Counter) -> None:
    attempt = counter.begun()
    counter.bench.renew(attempt)
    assert run(counter.desk.workers(ALL)).workers[0].worker == id_text(counter.bench.worker)
