"""``runwick jobs get``: how a job looks to an operator."""

import importlib
import uuid
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from runwick.cli.answers import Seen
from runwick.cli.at_desk import Operation
from runwick.cli.job_text import lay_out_job
from runwick.cli.jobs import next_for, next_text
from runwick.cli.main import main
from runwick.cli.modes import Mode
from runwick.cli.places import Place
from runwick.cli.tellers import teller_for
from runwick.contracts import JobState, PermanentJobFailure, Priority, Usage
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail
from runwick.contracts.stores import AttemptRecord, JobRecord
from runwick.execution.errors import detail_of
from runwick.management.bodies import DistributionBody, JobDetailBody, RunningBody, TypeBody
from runwick.management.deaths import death_text
from runwick.management.desk.shown import job_detail_body
from tests.cli.applications import SOUND
from tests.cli.conftest import WriteApplication

ID = uuid.UUID("0199c0de-0000-7000-8000-000000000001")
NOON_MS = 1_795_953_600_000
GIB = 2**30


def job(**changes: Any) -> JobDetailBody:
    facts: dict[str, Any] = {
        "job_id": ID.bytes,
        "kind": Kind("image.thumbnail", 1),
        "lane": Lane("images", Priority.MEDIUM),
        "state": JobState.PENDING,
        "code": None,
        "generation": 1,
        "revision": 1,
        "executions": 0,
        "max_executions": 5,
        "created_at_ms": NOON_MS + 3_000,
        "due_at_ms": None,
        "ended_at_ms": None,
        "tenant": None,
        "payload_bytes": 2,
        "result": None,
        "attempts": (),
    }
    return job_detail_body(JobRecord(**{**facts, **changes}), None)


def attempt(number: int, outcome: str, code: str | None = None, **changes: Any) -> AttemptRecord:
    facts: dict[str, Any] = {
        "attempt_id": uuid.UUID(int=number).bytes,
        "generation": 1,
        "number": number,
        "outcome": outcome,
        "code": code,
        "begun_at_ms": NOON_MS,
        "ended_at_ms": NOON_MS + 1_800,
        "usage": None,
    }
    return AttemptRecord(**{**facts, **changes})


def used(wall_us: int, peak_bytes: int, children_us: int | None = None) -> Usage:
    return Usage(
        wall_us=wall_us,
        cpu_user_us=1_500_000,
        cpu_system_us=200_000,
        cpu_children_us=children_us,
        rss_peak_bytes=peak_bytes,
    )


def plain(job: JobDetailBody) -> str:
    """As it looks where there are no colours."""
    return click.unstyle(lay_out_job(job))


def test_a_job_that_failed() -> None:
    crashed = [
        attempt(
            1,
            "crashed",
            "executor_crashed",
            usage=used(1_800_000, 2 * GIB),
            death=Death("signal", signal=9, phase="handle"),
            error=ErrorDetail("signal", "a secret"),
            black_box=BlackBox("a secret line"),
        ),
        attempt(2, "failed", "handler_failed", usage=used(900, 41 * 2**20, 50_000), error=_secret_error()),
        attempt(3, "abandoned"),
        attempt(4, "failed_permanently", "no_user", error=detail_of(PermanentJobFailure("no_user", "a secret"))),
    ]
    record = job(
        state=JobState.FAILED,
        code="poison_job",
        executions=3,
        ended_at_ms=NOON_MS + 65_000,
        lane=Lane("images", Priority.HIGH),
        attempts=crashed,
    )
    shown = plain(record)
    assert shown == (
        "job 0199c0de-0000-7000-8000-000000000001  image.thumbnail  failed (poison_job)  queue images (high)  "
        "created 2026-11-29 12:00:03 UTC\n"
        "  executions 3 of 5  ended 2026-11-29 12:01:05 UTC\n"
        "  The job killed its executor too often; mend it.\n"
        "  #  outcome             why                                             wall    cpu    peak memory\n"
        "  1  crashed             executor_crashed (killed by SIGKILL in handle)  1.8 s   1.7 s  2.0 GiB\n"
        "  2  failed              handler_failed                                  900 µs  1.8 s  41 MiB\n"
        "  3  abandoned           –                                               –       –      –\n"
        "  4  failed_permanently  no_user                                         –       –      –"
    )
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("death", "text"),
    [
        (Death("out_of_memory", signal=9, phase="handle"), "killed for memory in handle"),
        (Death("memory_limit", signal=9, phase="decode"), "over its memory limit in decode"),
        (Death("exit", status=3), "exited with status 3"),
        (Death("signal", signal=63), "killed by signal 63"),
        (Death("unknown"), "ended in an unknown way"),
    ],
)
def test_how_an_executor_died(death: Death, text: str) -> None:
    assert death_text(death) == text


def test_a_running_job_says_whether_its_handler_has_begun_and_whether_it_is_to_stop() -> None:
    running = job(state=JobState.RUNNING, executions=1, cancel_requested_at_ms=NOON_MS + 1_000)
    assert "handed over  cancel requested 2026-11-29 12:00:01 UTC" in plain(running)
    begun = job(state=JobState.RUNNING, executions=1, begun_at_ms=NOON_MS, expires_at_ms=NOON_MS + 5_000)
    assert "begun 2026-11-29 12:00:00 UTC  expires 2026-11-29 12:00:05 UTC" in plain(begun)


@pytest.mark.parametrize("alive", [True, None, False])
def test_what_a_dead_worker_said_last_is_not_what_happens_now(alive: bool | None) -> None:
    running = RunningBody(
        attempt_id=str(ID),
        worker=str(ID),
        worker_alive=alive,
        host="worker-1",
        process=77,
        executor=3,
        pool="main",
        phase="handle",
        begun_at="2026-11-29T12:00:00.000Z",
        cpu_us=1_500,
        rss_bytes=9_000,
        told_at="2026-11-29T12:00:01.000Z",
    )
    shown = plain(msgspec.structs.replace(job(state=JobState.RUNNING, executions=1), running=running))
    assert ("now: executor 3" in shown) is (alive is not False)
    assert ("its worker is gone" in shown) is (alive is False)


def _secret_error() -> ErrorDetail:
    return ErrorDetail("ValueError", "the secret of user 7", "Traceback: secret")


def test_what_is_not_known_has_no_column() -> None:
    record = job(
        state=JobState.SUCCEEDED,
        executions=1,
        ended_at_ms=NOON_MS + 5_000,
        attempts=[attempt(1, "succeeded")],
        result=b'{"secret":1}',
    )
    assert plain(record).splitlines()[1:] == [
        "  executions 1 of 5  ended 2026-11-29 12:00:05 UTC  result stored",
        "  #  outcome",
        "  1  succeeded",
    ]


def test_several_generations_are_told_apart() -> None:
    record = job(
        kind=Kind("image.thumbnail", 3),
        state=JobState.RETRYING,
        generation=2,
        executions=1,
        due_at_ms=NOON_MS + 9_000,
        tenant="acme",
        attempts=[attempt(1, "failed", "handler_failed"), attempt(1, "failed", "no_such_file", generation=2)],
    )
    assert plain(record).splitlines() == [
        "job 0199c0de-0000-7000-8000-000000000001  image.thumbnail (version 3)  retrying  queue images  "
        "created 2026-11-29 12:00:03 UTC",
        '  generation 2  executions 1 of 5  due 2026-11-29 12:00:09 UTC  tenant "acme"',
        "  generation  #  outcome  why",
        "  1           1  failed   handler_failed",
        "  2           1  failed   no_such_file",
    ]


def test_a_dispatched_job_is_found_and_its_payload_not_shown(write_application: WriteApplication) -> None:
    app = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    module = importlib.import_module(app)
    receipt = module.rw.dispatch(module.MakeThumbnail("secret.png"))
    module.rw.close()
    ran = CliRunner().invoke(main, ["jobs", "get", receipt.job_id, "--app", app])
    assert (ran.exit_code, ran.stderr) == (0, "")
    headline, progress, *rest = ran.stdout.splitlines()
    assert headline.startswith(f"job {receipt.job_id}  image.thumbnail  pending  queue images (high)  created ")
    assert progress.startswith("  executions 0 of 5  due ")
    assert rest == [f"  next (with --app {app}): runwick jobs why {receipt.job_id}"]
    assert "secret" not in ran.stdout


def test_a_job_that_does_not_exist(write_application: WriteApplication) -> None:
    app = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    ran = CliRunner().invoke(main, ["jobs", "get", str(ID), "--app", app])
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr == f"not_found: no job {ID} in this application\n"


def test_what_is_no_id_is_wrong_usage(write_application: WriteApplication) -> None:
    ran = CliRunner().invoke(main, ["jobs", "get", "17", "--app", write_application(SOUND)])
    assert ran.exit_code == 2
    assert ran.stderr.startswith("invalid_id: ")


def test_what_may_come_next_fits_how_the_job_stands() -> None:
    crashed = attempt(1, "crashed", "executor_crashed", error=_secret_error(), black_box=BlackBox("a line"))
    failed = job(state=JobState.FAILED, code="poison_job", generation=2, revision=9, attempts=[crashed])
    place = Place(app="thumbs.jobs")
    desk: Any = None
    operation = Operation(desk, teller_for(Mode.PEOPLE, "jobs get"), Mode.PEOPLE, place, None, None, Seen())
    actions = next_for(operation, failed)
    assert [each.command for each in actions] == ["jobs reveal-black-box", "jobs reveal-error", "jobs retry"]
    assert actions[-1].argv[3:] == [
        *("retry", str(ID), "--expected-generation", "2", "--expected-revision", "9", "--app", "thumbs.jobs")
    ]
    assert next_text(operation, actions) == (
        f"\n  next (with --app thumbs.jobs): runwick jobs reveal-black-box {ID} · runwick jobs reveal-error {ID} · "
        f"runwick jobs retry {ID}"
    )
    assert [each.command for each in next_for(operation, job(state=JobState.RUNNING))] == ["jobs tail"]
    assert next_for(operation, job(state=JobState.SUCCEEDED)) == []


def test_others_of_its_type_are_shown_where_there_are_others() -> None:
    runs = [attempt(1, "succeeded", usage=used(1_000_000, 41 * 2**20))]
    alone, many = (DistributionBody(count=count, **FIGURES) for count in (1, 200))
    figures: dict[str, Any] = {
        "name": "image.thumbnail",
        "runs": 200,
        "failed": 0,
        "codes": {},
        "last_at": None,
        "cpu_us": None,
        "wall_us": None,
        "allocated_bytes": None,
    }
    shown = click.unstyle(lay_out_job(job(attempts=runs), TypeBody(rss_peak_bytes=many, **figures)))
    assert shown.splitlines()[-1] == "  others of its type: peak memory median 41 MiB, 99 % below 64 MiB"
    assert "others" not in lay_out_job(job(attempts=runs), TypeBody(rss_peak_bytes=alone, **figures))


FIGURES = {
    name: mebibytes * 2**20
    for name, mebibytes in {
        "minimum": 40,
        "p25": 40,
        "p50": 41,
        "p75": 42,
        "p90": 50,
        "p99": 64,
        "maximum": 70,
    }.items()
}
