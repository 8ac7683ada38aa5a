"""The overview and the job types, as stores answer them."""

import pytest

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.administration import Admission
from runwick.contracts.controls import SteerAction
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter
from runwick.contracts.usage import Usage
from runwick.management.permissions import Caller, Grant, Permission
from tests.conformance.ground import APPLICATION, FAILURE
from tests.management.counter import ALL, MAILS, OPS, Counter, only, refused, run

READ = Permission.JOBS_READ
COST = Usage(
    wall_us=2_000_000, cpu_user_us=900_000, cpu_system_us=100_000, rss_peak_bytes=1 << 26, rss_end_bytes=1 << 25
)


class TestOverview:
    def test_at_rest_nothing_is_wrong(self, counter: Counter) -> None:
        body = run(counter.desk.overview(ALL))
        assert body.troubles == ()
        assert (body.due, body.running, body.workers, body.cores, body.admission) == (0, 0, 0, None, "open")
        assert sum(body.ended.values) == 0

    def test_it_counts_what_waits_runs_and_ended(self, counter: Counter) -> None:
        attempt = counter.begun()
        counter.bench.marked(attempt)
        counter.begun(MAILS)
        counter.failed()
        counter.succeeded(COST)
        counter.report()
        counter.report(delay_ms=59_999)
        activity = ExecutorActivity(
            number=1,
            pool="main",
            phase="handle",
            job_id=attempt.job_id,
            attempt_id=attempt.attempt_id,
            begun_at_ms=counter.bench.clock.now_ms(),
            cpu_us=12_000_000,
        )
        counter.bench.renew(executors=[activity])
        counter.bench.clock.advance_ms(59_999)
        body = run(counter.desk.overview(ALL))
        assert (body.due, body.later, body.running, body.handed_over) == (2, 0, 1, 1)
        assert (body.workers, body.executors, body.executors_busy) == (1, 2, 1)
        assert (sum(body.ended.values), sum(body.failed.values)) == (2, 1)
        assert [point.code for point in body.recent_failures] == [FAILURE.code]
        assert body.oldest_due_at == "2025-06-15T15:06:40.000Z"
        # A second of what ended, twelve of what runs, in a minute of two executors.
        assert (body.cores, body.cores_over_ms, body.cores_share) == (0.217, 60_000, 0.1083)

    def test_a_narrow_reach_shows_that_much(self, counter: Counter) -> None:
        counter.failed(tenant="acme")
        counter.failed(tenant="other")
        counter.report(tenant="other")
        counter.mail()
        tenant = run(counter.desk.overview(only(READ, tenants={"acme"})))
        # How many others' jobs wait in a queue is nothing that a tenant is told.
        assert (tenant.due, tenant.troubles, tenant.oldest_due_at) == (0, (), None)
        assert [point.tenant for point in tenant.recent_failures] == ["acme"]
        queue = run(counter.desk.overview(only(READ, queues={"mails"})))
        assert (queue.due, queue.recent_failures) == (1, ())
        assert [trouble.queue for trouble in queue.troubles] == ["mails"]
        with_queues = run(counter.desk.overview(only(READ, Permission.QUEUES_READ, queues={"reports"})))
        assert with_queues.due == 1

    def test_how_many_workers_there_are_is_told_to_whom_they_are_shown(self, counter: Counter) -> None:
        counter.succeeded(COST)
        counter.bench.renew()
        for caller, told in ((only(READ), False), (only(READ, Permission.CAPACITY_READ), True)):
            body = run(counter.desk.overview(caller))
            shown = (body.workers, body.executors, body.executors_busy)
            assert shown == ((1, 2, 0) if told else (None, None, None))
            assert (body.cores_share is None, body.cores is None) == (not told, False)

    def test_troubles_come_from_the_store(self, counter: Counter) -> None:
        counter.report()
        counter.mail()
        counter.bench.steer(counter.bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, "mails", expected_revision=0))
        counter.bench.administration.set_admission(Admission.DRAIN, APPLICATION)
        troubles = run(counter.desk.overview(ALL)).troubles
        assert [(trouble.code, trouble.queue) for trouble in troubles] == [
            ("no_worker", "reports"),
            ("admission_closed", None),
            ("queue_paused", "mails"),
        ]
        counter.bench.renew()
        counter.bench.clock.advance_ms(60_001)
        troubles = run(counter.desk.overview(ALL)).troubles
        assert troubles[0].text == "Queue reports is behind: its oldest due job has waited 1 min 0 s, and 1 job is due."

    def test_a_lost_worker_is_told_to_whom_workers_are_shown(self, counter: Counter) -> None:
        counter.bench.renew()
        counter.bench.clock.advance_ms(120_000)
        [trouble] = run(counter.desk.overview(ALL)).troubles
        assert (trouble.code, trouble.severity) == ("worker_lost", "warning")
        assert "worker-1, process 7" in trouble.text
        assert run(counter.desk.overview(only(READ))).troubles == ()


class TestTypes:
    def test_each_has_the_figures_of_its_last_runs(self, counter: Counter) -> None:
        for _ in range(3):
            counter.succeeded(COST)
        counter.failed()
        mails, reports = run(counter.desk.types(ALL)).types
        assert (mails.name, mails.runs, mails.last_at, mails.wall_us) == ("mails.send", 0, None, None)
        assert run(counter.desk.type(ALL, "mails.send")).points == ()
        assert [each.name for each in run(counter.desk.types(only(READ, queues={"reports"}))).types] == [
            "reports.build"
        ]
        assert (reports.name, reports.runs, reports.failed) == ("reports.build", 4, 1)
        assert reports.codes == {FAILURE.code: 1}
        assert reports.cpu_us is not None
        assert (reports.cpu_us.count, reports.cpu_us.p50) == (3, 1_000_000)

    def test_a_rare_type_is_read_by_itself(self, counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
        counter.bench.succeed(counter.begun(MAILS))
        counter.succeeded()
        counter.succeeded()
        monkeypatch.setattr("runwick.management.desk.overview.RUNS_MAX", 2)
        assert [(each.name, each.runs) for each in run(counter.desk.types(ALL)).types] == [
            ("mails.send", 1),
            ("reports.build", 2),
        ]

    def test_one_type_has_its_runs_and_advice(self, counter: Counter) -> None:
        made = [counter.succeeded(COST) for _ in range(20)]
        body = run(counter.desk.type(ALL, "reports.build"))
        assert [point.job_id for point in body.points] == made[::-1]
        assert (body.points[0].cpu_us, body.points[0].payload_bytes) == (1_000_000, 2)
        assert {advice.code for advice in body.advice} == {"memory_per_executor", "executors", "memory_limit"}

    def test_what_limits_the_application_is_told_to_who_may_see_all_of_it(self, counter: Counter) -> None:
        counter.succeeded(COST)
        counter.mail()
        body = run(counter.desk.type(ALL, "reports.build"))
        assert body.limiting is not None
        assert (body.limiting.factor, body.limiting.facts[-1]) == (
            "no_worker",
            "waiting: 1 due, 0 in line for limits, 0 in paused queues",
        )
        narrow = Caller.of(OPS, [Grant(READ, queues=frozenset({"reports"})), Grant(Permission.CAPACITY_READ)])
        for caller in (only(READ), narrow):
            assert run(counter.desk.type(caller, "reports.build")).limiting is None

    def test_a_type_without_visible_jobs_is_none(self, counter: Counter) -> None:
        counter.mail()
        counter.succeeded(tenant="acme")
        caller = only(READ, queues={"reports"}, tenants={"acme"})
        assert [each.name for each in run(counter.desk.types(caller)).types] == ["reports.build"]
        assert run(counter.desk.type(caller, "reports.build")).runs == 1
        hidden, missing = (refused(counter.desk.type(caller, name)) for name in ("mails.send", "mails.none"))
        assert hidden == ("JobNotFound", "not_found", "no job type 'mails.send' in this application")
        for odd in ("\x00", "mails.send\x00", "\ud800"):
            assert refused(counter.desk.type(ALL, odd))[:2] == hidden[:2]
        assert missing == ("JobNotFound", "not_found", "no job type 'mails.none' in this application")


@pytest.mark.parametrize("name", ["overview", "types"])
def test_figures_need_the_right_to_read_jobs(one: Counter, name: str) -> None:
    others = only(*(each for each in Permission if each is not READ))
    assert refused(getattr(one.desk, name)(others))[1] == "forbidden"
    assert refused(one.desk.type(others, "reports.build"))[1] == "forbidden"


class TestTrail:
    def test_it_is_filtered_and_read_page_by_page(self, counter: Counter) -> None:
        job_id = counter.report()
        for what in ("payload", "result"):
            run(counter.desk.reveal(ALL, what, job_id))
        run(counter.desk.pause(ALL, "reports", 0))
        first = run(counter.desk.audit(ALL, AuditFilter(), limit=1))
        assert [record.action for record in first.records] == ["pause"]
        rest = run(counter.desk.audit(ALL, AuditFilter(), first.cursor))
        assert [record.action for record in rest.records] == ["reveal_result", "reveal_payload"]
        of_job = run(counter.desk.audit(ALL, AuditFilter(job_id=counter.target(job_id).job_id)))
        assert len(of_job.records) == 2
        assert run(counter.desk.audit(ALL, AuditFilter(actor="nobody"))).records == ()


def test_settings_say_what_holds_and_where_it_comes_from(counter: Counter) -> None:
    counter.report()
    body = run(counter.desk.settings(only(Permission.SETTINGS_READ)))
    assert (body.application, body.admission) == ("shop", "open")
    assert body.store_id is not None
    assert "rate_admission" in body.capabilities
    assert body.store == counter.bench.store.description
    others = only(*(each for each in Permission if each is not Permission.SETTINGS_READ))
    assert refused(counter.desk.settings(others))[1] == "forbidden"
