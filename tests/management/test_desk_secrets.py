"""What is private is shown to whom it may be shown, and only once it is written down that it was."""

import itertools
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from runwick import OutcomeUnknown, RunwickError, StoreError
from runwick.contracts.activity import Report, StackAnswer
from runwick.contracts.controls import ControlAction
from runwick.contracts.identity import id_text
from runwick.contracts.listing import AuditFilter
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.revealing import Secret
from runwick.management.bodies import RevealBody
from runwick.management.permissions import SECRETS, Permission
from tests.conformance.ground import sqlite_bench
from tests.conformance.test_sqlite_rows import rows
from tests.dispatch.unreliable import Call, failing
from tests.faults.failing_sqlite import BROKEN, FULL, LOST, Fault, Saboteur
from tests.management.counter import ALL, COMMAND, NEVER, Counter, only, opened, refused, run

CRASH = Outcome(
    OutcomeKind.CRASHED,
    code="executor_crashed",
    error=ErrorDetail("Signal", "it died", "no trace"),
    death=Death("signal", signal=11),
    black_box=BlackBox("first line\nlast line", "the stack"),
)


def attempt_of(counter: Counter, job_id: str) -> str:
    return run(counter.desk.job(ALL, job_id)).attempts[-1].attempt_id


def test_payload_and_result_come_byte_for_byte_as_stored(counter: Counter) -> None:
    payload = b'{"number":123456789012345678901234567890,"tags":["\xc3\xa9"]}'
    job_id = counter.succeeded(payload=payload, result=b"[1.10, 2]")
    for what, stored in ((Secret.PAYLOAD, payload), (Secret.RESULT, b"[1.10, 2]")):
        body = run(counter.desk.reveal(ALL, what, job_id, reason="ticket 4411"))
        assert bytes(body.json) == stored
        assert stored in msgspec.json.encode(body)
        assert (body.what, body.attempt_id, body.replayed) == (what.value, None, False)
    assert counter.trail == [("reveal_payload", job_id), ("reveal_result", job_id)]
    [last, _] = run(counter.desk.audit(ALL, AuditFilter())).records
    assert (last.actor, last.reason, last.before, last.after) == ("ops-bot", "ticket 4411", None, None)


@pytest.mark.parametrize(
    "stored", [b"\\\xff{", b'"\xff"', b'1,"replayed":true', b'{"a":1}{"b":2}', b"[" * 5_000, b'"\x00"']
)
def test_what_is_no_json_comes_as_text_and_says_nothing_in_the_answer(tmp_path: Path, stored: bytes) -> None:
    with opened(sqlite_bench(tmp_path)) as counter:
        job_id = counter.succeeded(result=b"1")
        rows(counter.bench, "UPDATE runwick_job SET payload = ?", stored)
        rows(counter.bench, "UPDATE runwick_detail SET result = ?", stored)
        for what in ("payload", "result"):
            body = run(counter.desk.reveal(ALL, what, job_id))
            assert (body.json, body.text) == (None, stored.decode(errors="backslashreplace"))
            assert msgspec.json.decode(msgspec.json.encode(body))["replayed"] is False
        assert [action for action, _ in counter.trail] == ["reveal_payload", "reveal_result"]


def test_errors_and_black_boxes_are_an_attempts(counter: Counter) -> None:
    job_id = counter.failed(CRASH)
    attempt_id = attempt_of(counter, job_id)
    error = run(counter.desk.reveal(ALL, "error", job_id, attempt_id))
    assert (error.type, error.message, error.text, error.log) == ("Signal", "it died", "no trace", None)
    box = run(counter.desk.reveal(ALL, "black_box", job_id, attempt_id))
    assert (box.type, box.text, box.log) == (None, "the stack", ("first line", "last line"))
    assert [action for action, _ in counter.trail] == ["reveal_error", "reveal_black_box"]


def test_a_stack_is_shown_once_its_worker_has_answered(counter: Counter) -> None:
    attempt = counter.begun()
    counter.bench.marked(attempt)
    job_id, attempt_id = id_text(attempt.job_id), id_text(attempt.attempt_id)
    run(counter.desk.control(ALL, ControlAction.LOOK, [counter.target(job_id)]))
    assert run(counter.desk.reveal(ALL, "stack", job_id, attempt_id)).text is None
    report = Report(presence=counter.bench.presence(), stacks=[StackAnswer(attempt.attempt_id, "in build()")])
    counter.bench.run(counter.bench.store.renew(report, [], 60_000, 5_000))
    assert run(counter.desk.reveal(ALL, "stack", job_id, attempt_id)).text == "in build()"


def test_where_there_is_nothing_everything_is_null_and_written_down(counter: Counter) -> None:
    job_id = counter.report()
    body = run(counter.desk.reveal(ALL, "result", job_id))
    assert (body.json, body.text, body.log, body.type, body.message) == (None, None, None, None, None)
    assert counter.trail == [("reveal_result", job_id)]


def test_sent_again_it_shows_again_and_writes_no_second_row(counter: Counter) -> None:
    job_id = counter.report()
    first = run(counter.desk.reveal(ALL, "payload", job_id, reason="why", command_id=COMMAND))
    again = run(counter.desk.reveal(ALL, "payload", job_id, reason="why", command_id=COMMAND))
    assert (first.replayed, again.replayed, bytes(again.json)) == (False, True, b"{}")
    assert counter.trail == [("reveal_payload", job_id)]
    other = counter.report()
    assert refused(counter.desk.reveal(ALL, "payload", other, command_id=COMMAND))[1] == "operation_conflict"
    assert counter.trail == [("reveal_payload", job_id)]


def test_a_secret_takes_an_attempt_where_it_is_an_attempts(one: Counter) -> None:
    job_id = one.report()
    assert refused(one.desk.reveal(ALL, "error", job_id))[2] == "error is an attempt's, so it needs an attempt_id"
    assert (
        refused(one.desk.reveal(ALL, "payload", job_id, job_id))[2] == "payload is the job's, so it takes no attempt_id"
    )
    assert refused(one.desk.reveal(ALL, "secret", job_id))[1] == "invalid_argument"
    assert refused(one.desk.reveal(ALL, "payload", job_id, reason=" "))[1] == "invalid_argument"
    assert refused(one.desk.reveal(ALL, "payload", job_id, command_id=""))[1] == "invalid_id"
    assert one.trail == []


@pytest.mark.parametrize("what", Secret)
def test_each_needs_its_own_permission(one: Counter, what: Secret) -> None:
    others = only(*(each for each in Permission if each is not SECRETS[what]))
    attempt_id = None if what in (Secret.PAYLOAD, Secret.RESULT) else COMMAND
    assert refused(one.desk.reveal(others, what, one.report(), attempt_id))[1] == "forbidden"
    run(one.desk.reveal(only(SECRETS[what]), what, one.report(), attempt_id))
    assert [action for action, _ in one.trail] == [f"reveal_{what.value}"]


def test_a_job_that_goes_in_between_is_not_there(one: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, read = one.target(one.report()).job_id, one.bench.store.job
    monkeypatch.setattr(one.bench.store, "job", lambda application, _: read(application, job_id))
    assert refused(one.desk.reveal(ALL, "payload", NEVER))[1] == "not_found"
    assert one.trail == []


def answer_of(answer: Awaitable[RevealBody]) -> tuple[RevealBody | None, str, str]:
    """What came; or the code and all that was said of why not."""
    try:
        return run(answer), "", ""
    except RunwickError as refusal:
        return None, refusal.code, "".join(traceback.format_exception(refusal))


class TestNothingLeavesBeforeTheRowIsCommitted:
    """Whatever the commit ends in but success, the caller gets an error and no data."""

    @pytest.mark.parametrize(
        ("error", "raised"),
        [
            (lambda: StoreError("x", "the commit was refused"), "StoreError"),
            (lambda: OutcomeUnknown("outcome_unknown", "the commit's answer was lost"), "ControlOutcomeUnknown"),
        ],
    )
    def test_a_commit_that_fails_shows_nothing(
        self, counter: Counter, error: Callable[[], Exception], raised: str
    ) -> None:
        job_id = counter.report(payload=b'{"tags":["hush"]}')
        calls = [Call(), Call(before=error), Call(before=error)]
        with failing(counter.rw, *calls) as store:
            refusal = refused(counter.desk.reveal(ALL, "payload", job_id))
        assert refusal[0] == raised
        assert "hush" not in refusal[2]
        assert store.asked[:2] == ["job", "reveal"]
        assert counter.trail == []

    @pytest.mark.parametrize("fault", [BROKEN, LOST, FULL], ids=str)
    def test_whichever_statement_fails_there_is_a_row_or_no_data(
        self, saboteur: Saboteur, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
    ) -> None:
        """On a real file, the commit included: the statement fails, and so does each that comes after it."""
        monkeypatch.setattr("runwick.management.sending._TRIES_FOR_S", -1.0)
        bench = sqlite_bench(tmp_path)
        with opened(bench) as counter:
            for number in itertools.count(1):
                job_id = counter.report(payload=b'{"tags":["hush"]}')
                before = len(counter.trail)
                saboteur.arm(fault._replace(times=1_000), number)
                body, code, said = answer_of(counter.desk.reveal(ALL, "payload", job_id))
                saboteur.disarm()
                written = counter.trail[before:]
                if body is not None:
                    assert bytes(body.json) == b'{"tags":["hush"]}'
                    assert written == [("reveal_payload", job_id)]
                    break
                assert "hush" not in said
                assert written == [] or code == "outcome_unknown"
            assert number > 5
        bench.store.close()

    def test_a_lost_answer_is_asked_for_again_and_leaves_one_row(self, counter: Counter) -> None:
        job_id = counter.report()
        lost = Call(after=lambda: OutcomeUnknown("outcome_unknown", "the answer was lost"))
        with failing(counter.rw, Call(), lost):
            body = run(counter.desk.reveal(ALL, "payload", job_id))
        assert (bytes(body.json), body.replayed) == (b"{}", True)
        assert counter.trail == [("reveal_payload", job_id)]
