"""What operators see of jobs and do to them; and that what they may not see does not exist for them."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from runwick import JobTarget
from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.administration import WORKER_ALIVE_MS
from runwick.contracts.controls import ControlAction
from runwick.contracts.identity import id_text
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState
from runwick.management.bodies import ControlBody
from runwick.management.desk import Desk
from runwick.management.desk.jobs import EVENT_PAGES_MAX
from runwick.management.desk.refusing import refused_for_state
from runwick.management.permissions import CONTROLS, Caller, Grant, Permission
from tests.conformance.ground import USAGE
from tests.dispatch.unreliable import failing
from tests.management.counter import ALL, COMMAND, NEVER, NOBODY, Counter, only, refused, run, same_but_for

READ = Permission.JOBS_READ


class TestLists:
    def test_jobs_are_listed_page_by_page_the_latest_first(self, counter: Counter) -> None:
        made = [counter.report() for _ in range(5)]
        first = run(counter.desk.jobs(ALL, JobFilter(), limit=2))
        assert [job.job_id for job in first.jobs] == made[:2:-1]
        second = run(counter.desk.jobs(ALL, JobFilter(), first.cursor, 100))
        assert [job.job_id for job in second.jobs] == made[2::-1]
        assert second.cursor is None
        job = first.jobs[0]
        assert (job.name, job.queue, job.state, job.handed_over) == ("reports.build", "reports", "pending", False)
        assert (job.generation, job.revision, job.payload_bytes) == (1, 1, 2)
        assert job.created_at == first.as_of == "2025-06-15T15:06:40.000Z"

    def test_a_list_leaves_out_what_is_hidden_before_it_is_paged(self, counter: Counter) -> None:
        mine = [counter.report(tenant="acme"), counter.report(tenant="acme")]
        counter.mail(tenant="acme")
        counter.report(tenant="other")
        counter.report()
        caller = only(READ, queues={"reports"}, tenants={"acme"})
        page = run(counter.desk.jobs(caller, JobFilter(), limit=2))
        assert [job.job_id for job in page.jobs] == mine[::-1]
        assert run(counter.desk.jobs(only(READ, tenants={None}), JobFilter())).jobs[0].tenant is None

    @pytest.mark.parametrize("limit", [0, 101, True, "5", None])
    def test_a_page_has_a_length(self, one: Counter, limit: Any) -> None:
        for ask in (
            one.desk.jobs(ALL, JobFilter(), limit=limit),
            one.desk.audit(ALL, AuditFilter(), limit=limit),
            one.desk.events(ALL, limit=limit),
            one.desk.scopes(ALL, limit=limit),
            one.desk.rates(ALL, limit=limit),
        ):
            expected = f"limit is {limit!r}; give a whole number from 1 to 100"
            assert refused(ask) == ("InvalidArgument", "invalid_argument", expected)

    def test_events_are_those_of_jobs_within_reach(self, counter: Counter) -> None:
        acme, other, mail = counter.report(tenant="acme"), counter.report(tenant="other"), counter.mail(tenant="acme")
        seen = {
            "all": only(READ),
            "queue": only(READ, queues={"reports"}),
            "tenant": only(READ, tenants={"acme"}),
            "both": only(READ, queues={"mails"}, tenants={"other"}),
        }
        answers = {name: run(counter.desk.events(caller)) for name, caller in seen.items()}
        assert {name: [event.job_id for event in answer.events] for name, answer in answers.items()} == {
            "all": [acme, other, mail],
            "queue": [acme, other],
            "tenant": [acme, mail],
            "both": [],
        }
        assert len({answer.cursor for answer in answers.values()}) == 1
        assert run(counter.desk.events(ALL, answers["all"].cursor)).events == ()

    def test_pages_of_events_are_as_long_as_if_nothing_else_happened(self, one: Counter) -> None:
        """A short page would tell how much others do."""
        mine = []
        for many in (3, 150, 1, 0, 40):
            for _ in range(many):
                one.report(tenant="other")
            mine.append(one.report(tenant="acme"))
        caller, after, pages = only(Permission.JOBS_READ, tenants={"acme"}), None, []
        for _ in range(4):
            body = run(one.desk.events(caller, after, 2))
            pages.append([event.job_id for event in body.events])
            after = body.cursor
        assert pages == [mine[:2], mine[2:4], mine[4:], []]
        assert not body.more

    def test_a_page_of_events_ends_although_there_are_none_within_reach(self, one: Counter) -> None:
        for _ in range(EVENT_PAGES_MAX * 100 + 1):
            one.report(tenant="other")
        body = run(one.desk.events(only(Permission.JOBS_READ, tenants={"acme"})))
        assert (body.events, body.more) == ((), True)


class TestOneJob:
    def test_a_job_shows_its_history_and_no_text_of_it(self, counter: Counter) -> None:
        crash = Outcome(
            OutcomeKind.CRASHED,
            code="executor_crashed",
            error=ErrorDetail("Signal", "secret words", "secret trace"),
            usage=USAGE,
            death=Death("signal", signal=11, phase="handle"),
            black_box=BlackBox("secret line", ""),
        )
        job = run(counter.desk.job(ALL, counter.failed(crash, payload=b'{"tags":["secret"]}')))
        assert (job.state, job.code, job.payload_bytes, job.has_result) == ("failed", "executor_crashed", 19, False)
        [attempt] = job.attempts
        assert (attempt.outcome, attempt.has_error, attempt.has_black_box) == ("crashed", True, True)
        assert attempt.death is not None
        assert attempt.death.text == "killed by SIGSEGV in handle"
        assert attempt.usage is not None
        assert attempt.usage.rss_peak_bytes == USAGE.rss_peak_bytes
        assert b"secret" not in same_but_for(())(job)
        assert run(counter.desk.job(ALL, counter.succeeded())).has_result

    def test_a_running_job_shows_what_its_worker_told(self, counter: Counter) -> None:
        attempt = counter.begun()
        job = run(counter.desk.job(ALL, id_text(attempt.job_id)))
        assert job.handed_over
        assert job.running is not None
        assert (job.running.attempt_id, job.running.host) == (id_text(attempt.attempt_id), None)
        assert job.running.worker_alive is None
        counter.bench.marked(attempt)
        activity = ExecutorActivity(
            number=3,
            pool="main",
            phase="handle",
            process=77,
            job_id=attempt.job_id,
            attempt_id=attempt.attempt_id,
            cpu_us=1_500,
            rss_bytes=9_000,
        )
        counter.bench.renew(executors=[activity])
        job = run(counter.desk.job(ALL, id_text(attempt.job_id)))
        assert not job.handed_over
        assert job.running is not None
        assert (job.running.executor, job.running.phase, job.running.cpu_us) == (3, "handle", 1_500)
        assert (job.running.host, job.running.told_at) == ("worker-1", "2025-06-15T15:06:40.000Z")
        assert job.running.process == 77
        elsewhere = run(counter.desk.job(only(Permission.JOBS_READ), id_text(attempt.job_id))).running
        assert elsewhere == msgspec.structs.replace(job.running, host=None, process=None)
        assert job.running.worker_alive is True
        counter.bench.clock.advance_ms(WORKER_ALIVE_MS)
        lost = run(counter.desk.job(ALL, id_text(attempt.job_id)))
        assert (lost.state, lost.running) == ("running", msgspec.structs.replace(job.running, worker_alive=False))

    def test_why_it_waits_is_said_in_words(self, counter: Counter) -> None:
        body = run(counter.desk.why(ALL, counter.report()))
        assert (body.state, body.as_of) == ("pending", "2025-06-15T15:06:40.000Z")
        assert [(reason.code, reason.text) for reason in body.reasons] == [
            ("no_pool", "No living worker serves its queue.")
        ]


def _reveals(what: Secret, attempt_id: str | None) -> Callable[[Desk, Caller, str], Awaitable[Any]]:
    return lambda desk, caller, job_id: desk.reveal(caller, what, job_id, attempt_id, command_id=COMMAND)


ABOUT_ONE_JOB: dict[str, tuple[Permission, Callable[[Desk, Caller, str], Awaitable[Any]]]] = {
    "job": (READ, lambda desk, caller, job_id: desk.job(caller, job_id)),
    "why": (READ, lambda desk, caller, job_id: desk.why(caller, job_id)),
    "payload": (Permission.JOBS_READ_PAYLOAD, _reveals(Secret.PAYLOAD, None)),
    "result": (Permission.JOBS_READ_PAYLOAD, _reveals(Secret.RESULT, None)),
    "error": (Permission.JOBS_READ_ERROR, _reveals(Secret.ERROR, NEVER)),
    "black_box": (Permission.JOBS_READ_ERROR, _reveals(Secret.BLACK_BOX, NEVER)),
    "stack": (Permission.JOBS_READ_ERROR, _reveals(Secret.STACK, NEVER)),
}


class TestHiddenIsMissing:
    """Every answer about a job that may not be seen is the one about a job that is not there."""

    @pytest.mark.parametrize("question", ABOUT_ONE_JOB)
    def test_of_one_job(self, counter: Counter, question: str) -> None:
        permission, ask = ABOUT_ONE_JOB[question]
        hidden = [counter.mail(), counter.report(tenant="other")]
        caller = only(permission, queues={"reports"}, tenants={None})
        missing = refused(ask(counter.desk, caller, NEVER))
        assert missing == ("JobNotFound", "not_found", f"no job {NEVER} in this application")
        for job_id in hidden:
            name, code, message = refused(ask(counter.desk, caller, job_id))
            assert (name, code, message.replace(job_id, NEVER)) == missing
        assert counter.trail == []

    @pytest.mark.parametrize("action", ControlAction)
    def test_of_targets(self, counter: Counter, action: ControlAction) -> None:
        hidden = [counter.mail(), counter.report(tenant="other")]
        before = [run(counter.desk.job(ALL, job_id)) for job_id in hidden]
        caller = only(CONTROLS[action], queues={"reports"}, tenants={None})
        plain = same_but_for((*hidden, NEVER))
        targets = [counter.target(job_id) for job_id in (*hidden, NEVER)]
        answers = run(counter.desk.control(caller, action, targets, command_id=COMMAND))
        assert len({plain(answer) for answer in answers}) == 1
        assert (answers[0].code, answers[0].succeeded, answers[0].state) == ("not_found", False, None)
        everywhere = run(counter.desk.control(only(CONTROLS[action]), action, targets[-1:], command_id=COMMAND))
        assert plain(everywhere[0]) == plain(answers[0])
        assert [run(counter.desk.job(ALL, job_id)) for job_id in hidden] == before
        assert counter.trail == []

    @pytest.mark.parametrize("question", ABOUT_ONE_JOB)
    def test_it_takes_the_same_calls_of_the_store(self, one: Counter, question: str) -> None:
        permission, ask = ABOUT_ONE_JOB[question]
        caller, hidden = only(permission, queues={"reports"}), one.mail()
        with failing(one.rw) as store:
            for job_id in (hidden, NEVER):
                refused(ask(one.desk, caller, job_id))
        assert store.asked == ["job", "job"]

    def test_whose_event_it_is_is_read_only_where_its_tenant_matters(self, one: Counter) -> None:
        one.report(tenant="acme")
        for caller in (only(READ, queues={"reports"}), only(READ, queues={"mails"}, tenants={"acme"})):
            with failing(one.rw) as store:
                run(one.desk.events(caller))
            assert store.asked == ["events"]


class TestPermissions:
    @pytest.mark.parametrize("question", ABOUT_ONE_JOB)
    def test_without_the_permission_nothing_is_told(self, one: Counter, question: str) -> None:
        permission, ask = ABOUT_ONE_JOB[question]
        others = only(*(each for each in Permission if each is not permission))
        for caller in (NOBODY, others):
            for job_id in (one.report(), NEVER):
                expected = ("Forbidden", "forbidden", f"this needs the permission {permission}")
                assert refused(ask(one.desk, caller, job_id)) == expected
        assert one.trail == []

    @pytest.mark.parametrize("action", ControlAction)
    def test_each_control_has_its_own(self, one: Counter, action: ControlAction) -> None:
        others = only(*(each for each in Permission if each is not CONTROLS[action]))
        target = one.target(one.report())
        assert refused(one.desk.control(others, action, [target]))[1] == "forbidden"
        assert one.trail == []

    def test_lists_need_theirs(self, one: Counter) -> None:
        others = only(*(each for each in Permission if each is not READ))
        for ask in (one.desk.jobs(others, JobFilter()), one.desk.events(others)):
            assert refused(ask)[1] == "forbidden"
        no_audit = only(*(each for each in Permission if each is not Permission.AUDIT_READ))
        assert refused(one.desk.audit(no_audit, AuditFilter()))[1] == "forbidden"


class TestControl:
    def test_one_command_one_change_one_row(self, counter: Counter) -> None:
        job_id = counter.report()
        target = counter.target(job_id)

        def ask() -> Awaitable[list[ControlBody]]:
            return counter.desk.control(ALL, ControlAction.CANCEL, [target], "twice", COMMAND)

        [first], [again] = run(ask()), run(ask())
        assert (first.succeeded, first.state, first.replayed, first.command_id) == (True, "cancelled", False, COMMAND)
        assert (again.succeeded, again.state, again.revision, again.replayed) == (
            True,
            "cancelled",
            first.revision,
            True,
        )
        assert counter.trail == [("cancel", job_id)]
        [record] = run(counter.desk.audit(ALL, AuditFilter())).records
        assert (record.actor, record.reason, record.command_id) == ("ops-bot", "twice", COMMAND)
        assert (record.before, record.after) == ("pending", "cancelled")

    def test_what_is_stale_is_left_alone(self, counter: Counter) -> None:
        job_id = counter.failed()
        stands = counter.target(job_id)
        run(counter.desk.control(ALL, ControlAction.RETRY, [stands]))
        before, trail = run(counter.desk.job(ALL, job_id)), counter.trail
        now = counter.target(job_id)
        stale = {
            "stale_generation": stands,
            "stale_revision": JobTarget(now.job_id, now.generation, now.revision + 1),
        }
        for code, target in stale.items():
            [answer] = run(counter.desk.control(ALL, ControlAction.CANCEL, [target]))
            assert (answer.code, answer.succeeded, answer.revision) == (code, False, before.revision)
        assert (run(counter.desk.job(ALL, job_id)), counter.trail) == (before, trail)

    @pytest.mark.parametrize(
        ("make", "action", "instead"), [("succeeded", "retry", "rerun"), ("failed", "rerun", "retry")]
    )
    def test_what_the_state_does_not_allow_names_what_it_does(
        self, counter: Counter, make: str, action: str, instead: str
    ) -> None:
        target = counter.target(getattr(counter, make)())
        [answer] = run(counter.desk.control(ALL, ControlAction(action), [target]))
        assert (answer.code, answer.state) == ("invalid_state", make)
        assert f"use {instead} to let it run again" in refused_for_state(ControlAction(action), answer.state)
        [done] = run(counter.desk.control(ALL, ControlAction(instead), [target]))
        assert done.code is None

    def test_many_are_answered_in_order_under_one_command(self, counter: Counter) -> None:
        done, mine, hidden = counter.succeeded(), counter.report(), counter.mail()
        caller = only(Permission.JOBS_CANCEL, queues={"reports"})
        asked = [hidden, done, NEVER, mine]
        targets = [counter.target(job_id) for job_id in asked]
        answers = run(counter.desk.control(caller, ControlAction.CANCEL, targets, None, COMMAND))
        assert [(answer.job_id, answer.code) for answer in answers] == [
            (hidden, "not_found"),
            (done, "invalid_state"),
            (NEVER, "not_found"),
            (mine, None),
        ]
        assert {answer.command_id for answer in answers} == {COMMAND}
        assert counter.trail == [("cancel", mine)]
        again = run(counter.desk.control(caller, ControlAction.CANCEL, targets, None, COMMAND))
        assert [(answer.code, answer.replayed) for answer in again] == [
            ("not_found", False),
            ("invalid_state", True),
            ("not_found", False),
            (None, True),
        ]
        assert counter.trail == [("cancel", mine)]

    def test_a_command_is_checked_whole_before_anybody_is_asked(self, one: Counter) -> None:
        target = one.target(one.report())
        caller = only(Permission.JOBS_CANCEL, queues={"mails"})
        for targets, code in (([], "batch_too_large"), ([target] * 2, "invalid_argument")):
            assert refused(one.desk.control(caller, ControlAction.CANCEL, targets))[1] == code
        assert refused(one.desk.control(ALL, ControlAction.CANCEL, [target], command_id=""))[1] == "invalid_id"
        assert refused(one.desk.job(ALL, "7"))[1] == "invalid_id"

    def test_a_look_needs_the_right_to_read_errors(self, counter: Counter) -> None:
        attempt = counter.begun()
        counter.bench.marked(attempt)
        [answer] = run(
            counter.desk.control(
                only(Permission.JOBS_READ_ERROR), ControlAction.LOOK, [counter.target(id_text(attempt.job_id))]
            )
        )
        assert (answer.succeeded, answer.attempt_id) == (True, id_text(attempt.attempt_id))
        assert answer.state is JobState.RUNNING


def test_a_caller_with_two_narrow_grants_has_their_sum(counter: Counter) -> None:
    report, mail = counter.report(tenant="acme"), counter.mail()
    assert refused(counter.desk.job(only(READ, queues={"reports"}), mail))[1] == "not_found"
    both = Caller.of(ALL.actor, [Grant(READ, queues=frozenset({queue})) for queue in ("reports", "mails")])
    assert {run(counter.desk.job(both, each)).job_id for each in (report, mail)} == {report, mail}
