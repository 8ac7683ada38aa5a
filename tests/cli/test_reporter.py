"""What a command that runs a worker says of what happens, to people and to machines."""

import io
import os
from typing import Any

import msgspec
import pytest

from runwick.cli.reporter import JsonReporter, Opening, TextReporter, report_worker_events
from runwick.contracts.cancelling import CancellationCause
from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth
from runwick.contracts.identity import id_text
from runwick.contracts.limits import Drift, LimitKind
from runwick.contracts.outcomes import Death, ErrorDetail, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.stores import Outlook
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.tally import Tally
from tests.attempts import an_attempt

ABOUT = Opening(
    program="runwick-supervise",
    target="thumbs.jobs",
    app_dir=".",
    application="thumbs",
    store="memory",
    size={"cores": 2, "executors": 3},
    pools={"main": 3},
    accounting="cpu",
    notes=(),
    force="cancels, a third time kills",
    grade="full (deadline timer compiled in)",
)
ATTEMPT = an_attempt()
JOB = id_text(ATTEMPT.job_id)
NAME = ATTEMPT.kind.name


def said(*told: object) -> list[str]:
    """The lines for people, without their time."""
    out, bus = io.StringIO(), Bus()
    report_worker_events(bus, TextReporter(out))
    for event in told:
        bus.publish(event)
    return [line.split("  ", 1)[1] for line in out.getvalue().splitlines()]


def objects(*told: object) -> list[dict[str, Any]]:
    """The same for machines."""
    out, bus = io.StringIO(), Bus()
    report_worker_events(bus, JsonReporter(out))
    for event in told:
        bus.publish(event)
    return [msgspec.json.decode(line) for line in out.getvalue().splitlines()]


def health(code: str | None, text: str = "") -> events.HealthChanged:
    status = HealthStatus.HEALTHY if code is None else HealthStatus.UNHEALTHY
    draining = RoleHealth("worker", HealthStatus.DEGRADED, "draining")
    roles = draining, RoleHealth("pool main", status, code, text)
    return events.HealthChanged(WorkerHealth(HealthStatus.UNHEALTHY, False, roles))


def test_the_grade_stands_beside_the_accounting_and_the_further_signals_are_named() -> None:
    out = io.StringIO()
    reporter = TextReporter(out)
    reporter.opened(ABOUT)
    reporter.ready(ABOUT, 0.5)
    reporter.opened(msgspec.structs.replace(ABOUT, grade=None))
    lines = out.getvalue().splitlines()
    assert lines[1] == "stopping grade: full (deadline timer compiled in) · accounting: cpu of every attempt"
    assert lines[2] == (
        "ready in 0.50 s · dashboard: runwick web --app thumbs.jobs · "
        "stop: Ctrl-C drains, again cancels, a third time kills"
    )
    assert lines[4] == "accounting: cpu of every attempt"


def test_the_dashboards_command_can_be_typed_where_the_worker_was_started() -> None:
    out = io.StringIO()
    TextReporter(out).ready(msgspec.structs.replace(ABOUT, app_dir="/srv/our apps"), 0.5)
    assert "· dashboard: runwick web --app thumbs.jobs --app-dir '/srv/our apps' ·" in out.getvalue()


def test_the_grade_is_a_fact_for_machines() -> None:
    out = io.StringIO()
    JsonReporter(out).opened(ABOUT)
    assert msgspec.json.decode(out.getvalue())["grade"] == "full (deadline timer compiled in)"


def test_the_health_of_pools_is_told_when_it_changes_and_nothing_that_has_lines_of_its_own() -> None:
    lines = said(
        health(None),
        health("no_executors", "0 of 3 executors are ready"),
        health("no_executors", "0 of 4 executors are ready"),
        health(None),
    )
    assert lines == [
        "health: pool main: 0 of 3 executors are ready",
        "health: every pool has its executors again",
    ]
    (fact,) = objects(health("no_executors"))
    assert (fact["event"], fact["status"], fact["ready"]) == ("health", "unhealthy", False)
    assert fact["roles"] == {"pool main": "no_executors"}


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            events.AttemptAsked(ATTEMPT, CancellationCause.USER_REQUESTED),
            f"{NAME} {JOB} is asked to stop (user_requested)",
        ),
        (events.EndedUnbegun([ATTEMPT], "expired"), f"{NAME} {JOB} ended before it began (expired)"),
        (events.Expired(3), "3 jobs expired before they began"),
        (events.PredecessorRecovered(bytes(16), 2), "recovered 2 attempts of a predecessor that is dead"),
    ],
)
def test_what_happens_is_one_line(event: object, line: str) -> None:
    assert said(event) == [line]


def test_how_an_executor_died_is_told_with_the_attempt() -> None:
    death = Death("signal", signal=9, phase="handle")
    outcome = Outcome(OutcomeKind.CRASHED, "executor_crashed", death=death)
    (line,) = said(events.Settled([Settlement(ATTEMPT, outcome, JobState.RETRYING, "executor_crashed", 5)], 0.01))
    assert "crashed (executor_crashed: killed by SIGKILL in handle), now retrying" in line


def test_progress_says_how_many_run_beside_the_share_of_the_cores() -> None:
    out = io.StringIO()
    reporter = TextReporter(out)
    reporter.opened(ABOUT)
    reporter.progress(Tally(Bus()), 0.997, None, 2, 5.0)
    reporter.progress(Tally(Bus()), None, None, 3, 5.0)
    shares, counts = out.getvalue().splitlines()[-2:]
    assert shares.endswith("0 done · 2 running · 99.7 % of both cores in handlers · 0 retried · 0 failed")
    assert counts.endswith("0 done · 3 running · 0 retried · 0 failed")


@pytest.mark.parametrize("form", [TextReporter, JsonReporter])
def test_when_nobody_reads_any_more_its_lines_go_nowhere(form: Any) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        reporter = form(out)
        reporter.happened("drained", "first", {})
        assert b"first" in os.read(reading, 1000)
        os.close(reading)
        for _ in range(3):
            reporter.happened("drained", "nobody hears this", {})


def test_a_result_that_asks_for_another_run_is_told_by_its_code() -> None:
    outcome = Outcome(OutcomeKind.FAILED, "retry_requested", ErrorDetail("Retry", "out of ink"))
    (line,) = said(events.Settled([Settlement(ATTEMPT, outcome, JobState.RETRYING, "retry_requested", 5)], 0.01))
    assert line.endswith("failed (retry_requested), now retrying")


def test_limits_that_differ_and_that_were_mended_are_told() -> None:
    drift = events.LimitDrifted(Drift(LimitKind.QUEUE, "mails", "capacity 5", "capacity 2"))
    assert said(drift, events.LimitsMended(3)) == [
        "queue mails has capacity 5 in the store, which holds; declared is capacity 2",
        "3 scopes counted their holds wrongly and were set right; please report this",
    ]
    told, mended = objects(drift, events.LimitsMended(3))
    assert (told["event"], told["kind"], told["key"], told["stored"]) == (
        "limit_drifted",
        "queue",
        "mails",
        "capacity 5",
    )
    assert (mended["event"], mended["count"]) == ("limits_mended", 3)


def test_progress_and_summary_tell_what_waits_for_limits_and_in_paused_queues() -> None:
    out, facts, bus = io.StringIO(), io.StringIO(), Bus()
    tally = Tally(bus)
    bus.publish(events.MovedAside(4, 2))
    waits = Outlook(due=9, later=0, leased=0, undecodable=0, postponed=0, oldest_due_ms=1_500, blocked=1_234, paused=7)
    plain = msgspec.structs.replace(waits, blocked=0, paused=0)
    for outlook in (waits, plain):
        for reporter in (TextReporter(out), JsonReporter(facts)):
            reporter.progress(tally, None, outlook, 0, 1.0)
            reporter.summary(tally, None, outlook, 1.0)
    lines = out.getvalue().splitlines()
    assert lines[0].endswith("oldest waiting 1.5 s · 1,234 in line for a limit · 7 in paused queues")
    assert lines[2] == "left: 0 not due yet · 0 that this worker cannot decode · 7 in paused queues"
    assert lines[3].endswith("oldest waiting 1.5 s")
    progress, summary, *_ = map(msgspec.json.decode, facts.getvalue().splitlines())
    assert [progress[name] for name in ("blocked", "paused", "parked", "deferred")] == [1_234, 7, 4, 2]
    assert summary["left"] == {"later": 0, "undecodable": 0, "paused": 7}
