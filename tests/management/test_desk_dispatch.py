"""A job dispatched by hand: strict where text comes in, within reach, once per command, and written down."""

from collections.abc import Awaitable
from typing import Any

import pytest

from runwick import ManagementActor, OutcomeUnknown
from runwick.contracts.identity import id_bytes, id_text, job_of_operation
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.management.bodies import DispatchBody
from runwick.management.desk import Desk
from runwick.management.permissions import EVERYTHING, Caller, Permission
from runwick.runtime.ambient import SystemClock
from tests.dispatch.unreliable import Call, failing
from tests.management.counter import ALL, COMMAND, Counter, only, refused, run

DISPATCH = Permission.JOBS_DISPATCH


def test_a_job_is_made_as_the_application_would_make_it(counter: Counter) -> None:
    body = run(
        counter.desk.dispatch(
            ALL,
            "reports.build",
            b' {"tags": ["a"], "number": 7} ',
            queue="mails",
            priority="high",
            delay_ms=5_000,
            tenant="acme",
            reason="by hand",
            command_id=COMMAND,
        )
    )
    assert (body.disposition, body.replayed, body.command_id) == ("created", False, COMMAND)
    assert body.job_id == id_text(job_of_operation(id_bytes(COMMAND)))
    job = run(counter.desk.job(ALL, body.job_id))
    assert (job.name, job.queue, job.priority, job.tenant) == ("reports.build", "mails", "high", "acme")
    assert job.due_at == "2025-06-15T15:06:45.000Z"
    assert bytes(run(counter.desk.reveal(ALL, "payload", body.job_id)).json) == b'{"number":7,"tags":["a"]}'
    [record] = run(counter.desk.audit(ALL, AuditFilter(action="dispatch"))).records
    assert (record.job_id, record.actor, record.reason) == (body.job_id, "ops-bot", "by hand")
    assert record.command_id == COMMAND


def test_one_command_makes_one_job_and_one_row(counter: Counter) -> None:
    def ask() -> Awaitable[DispatchBody]:
        return counter.desk.dispatch(ALL, "reports.build", b"{}", reason="why", command_id=COMMAND)

    first, again = run(ask()), run(ask())
    assert (first.replayed, again.replayed, again.job_id) == (False, True, first.job_id)
    assert counter.trail == [("dispatch", first.job_id)]
    elsewhere = counter.desk.dispatch(ALL, "reports.build", b"{}", tenant="acme", command_id=COMMAND)
    assert refused(elsewhere)[1] == "operation_conflict"
    assert len(run(counter.desk.jobs(ALL, JobFilter())).jobs) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": b'{"number":8}'},
        {"delay_ms": 5_000},
        {"queue": "mails"},
        {"priority": "high"},
        {"tenant": "acme"},
        {"reason": "another"},
        {"caller": Caller.of(ManagementActor("someone", "Someone", "session"), EVERYTHING)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_request_under_the_same_command_is_refused(counter: Counter, changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {"caller": ALL, "name": "reports.build", "payload": b'{"number":7}', "command_id": COMMAND}
    first = run(counter.desk.dispatch(**given))
    stands = run(counter.desk.jobs(ALL, JobFilter())), counter.bench.audit()
    name, code, message = refused(counter.desk.dispatch(**{**given, **changes}))
    assert (name, code) == ("StoreError", "operation_conflict")
    assert "give this dispatch a command id of its own" in message
    assert (run(counter.desk.jobs(ALL, JobFilter())), counter.bench.audit()) == stands
    written_otherwise = run(counter.desk.dispatch(**{**given, "payload": b' { "number" : 7 } '}))
    assert (written_otherwise.replayed, written_otherwise.job_id) == (True, first.job_id)


def test_a_command_id_that_was_used_for_something_else_makes_no_job(counter: Counter) -> None:
    job_id = counter.report()
    run(counter.desk.reveal(ALL, "payload", job_id, command_id=COMMAND))
    assert refused(counter.desk.dispatch(ALL, "reports.build", b"{}", command_id=COMMAND))[1] == "operation_conflict"
    assert [job.job_id for job in run(counter.desk.jobs(ALL, JobFilter())).jobs] == [job_id]
    assert counter.trail == [("reveal_payload", job_id)]


def test_a_lost_answer_is_asked_for_again(counter: Counter) -> None:
    lost = Call(after=lambda: OutcomeUnknown("outcome_unknown", "the answer was lost"))
    with failing(counter.rw, Call(), lost) as store:
        body = run(counter.desk.dispatch(ALL, "reports.build", b"{}"))
        assert store.asked == ["resolve", "dispatch", "dispatch"]
    assert counter.trail == [("dispatch", body.job_id)]
    with failing(counter.rw, Call(), lost, lost):
        name, code, message = refused(counter.desk.dispatch(ALL, "reports.build", b"{}", command_id=COMMAND))
    assert (name, code) == ("ControlOutcomeUnknown", "outcome_unknown")
    assert COMMAND in message
    assert run(counter.desk.dispatch(ALL, "reports.build", b"{}", command_id=COMMAND)).replayed


@pytest.mark.parametrize(
    ("payload", "code", "message"),
    [
        (b'{"number":1,"number":2}', "invalid_payload", "the member 'number' is given twice"),
        (b'{"numbr":1}', "invalid_payload", "unknown field `numbr`"),
        (b'{"number":"1"}', "invalid_payload", "expected `int`, got `str`"),
        (b'{"number":NaN}', "invalid_payload", "JSON has no number NaN"),
        (b"[" * 100_000, "payload_limit_exceeded", "nest"),
        (b'{"tags":["' + b"x" * (1 << 20) + b'"]}', "payload_too_large", "1,048,576 bytes"),
        (b"\xff", "invalid_text", "not UTF-8"),
        (b'{"tags":["\\u0000"]}', "invalid_text", "NUL"),
        (b"", "invalid_payload", "not JSON"),
    ],
)
def test_a_payload_is_strict_json_of_its_record(one: Counter, payload: bytes, code: str, message: str) -> None:
    refusal = refused(one.desk.dispatch(ALL, "reports.build", payload))
    assert refusal[:2] == ("DispatchValidationError", code)
    assert message in refusal[2]
    assert one.trail == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "reports.unknown"}, "unknown_job"),
        ({"queue": "unknown"}, "unknown_queue"),
        ({"priority": "urgent"}, "invalid_priority"),
        ({"delay_ms": -1}, "invalid_time"),
        ({"delay_ms": True}, "invalid_time"),
        ({"tenant": "not a name"}, "invalid_name"),
        ({"reason": "x" * 1_001}, "invalid_argument"),
        ({"command_id": "7"}, "invalid_id"),
    ],
)
def test_what_cannot_be_is_refused(one: Counter, changes: dict[str, Any], code: str) -> None:
    given = {"name": "reports.build", "payload": b"{}", **changes}
    assert refused(one.desk.dispatch(ALL, **given))[1] == code
    assert run(one.desk.jobs(ALL, JobFilter())).jobs == ()


@pytest.mark.parametrize(
    ("changes", "is_allowed"),
    [
        ({"tenant": "acme"}, True),
        ({"tenant": "acme", "queue": "reports"}, True),
        ({}, False),
        ({"tenant": "other"}, False),
        ({"tenant": "acme", "queue": "mails"}, False),
        ({"tenant": "acme", "queue": "unknown"}, False),
    ],
)
def test_queue_and_tenant_are_within_reach(one: Counter, changes: dict[str, Any], is_allowed: bool) -> None:
    caller = only(DISPATCH, queues={"reports"}, tenants={"acme"})
    ask = one.desk.dispatch(caller, "reports.build", b"{}", **changes)
    if is_allowed:
        assert run(ask).disposition == "created"
    else:
        assert refused(ask) == ("Forbidden", "forbidden", "this needs the permission Jobs.Dispatch")
        assert one.trail == []


def test_a_replay_answers_within_reach_alone(one: Counter) -> None:
    run(one.desk.dispatch(ALL, "reports.build", b"{}", tenant="other", command_id=COMMAND))
    caller = only(DISPATCH, tenants={"acme"})
    ask = one.desk.dispatch(caller, "reports.build", b"{}", tenant="acme", command_id=COMMAND)
    assert refused(ask)[1] == "operation_conflict"


def test_a_key_answers_the_job_that_is_there_and_hides_what_is_hidden(counter: Counter) -> None:
    def make(caller: Caller, tenant: str) -> Awaitable[DispatchBody]:
        return counter.desk.dispatch(caller, "mails.send", b'{"to":"ann"}', tenant=tenant)

    first = run(make(ALL, "acme"))
    assert (first.disposition, run(make(ALL, "other")).job_id) == ("created", first.job_id)
    seen_by_one = run(make(only(DISPATCH, tenants={"other"}), "other"))
    assert (seen_by_one.disposition, seen_by_one.job_id) == ("reused", None)
    assert counter.trail == [("dispatch", first.job_id)]


def test_on_a_store_alone_nobody_knows_the_record(one: Counter) -> None:
    alone = Desk("shop", lambda: one.bench.store, one.bench.ids, SystemClock())
    assert refused(alone.dispatch(ALL, "reports.build", b"{}"))[1] == "application_required"
    assert refused(alone.dispatch(only(), "reports.build", b"{}"))[1] == "forbidden"
