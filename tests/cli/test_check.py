"""``runwick check``: every problem at once, or a calm summary; it creates nothing."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from runwick.cli.main import main
from tests.cli.applications import BROKEN, SOUND
from tests.cli.conftest import WriteApplication


def test_every_problem_of_configuration_environment_and_store_at_once(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("RUNWICK_RENEWAL_JITTER", "3")
    ran = CliRunner().invoke(main, ["check", "--app", write_application(BROKEN)])
    assert (ran.exit_code, ran.stdout) == (2, "")
    headline, *entries = ran.stderr.splitlines()
    assert headline == "Runwick cannot start: 5 problems."
    assert [(entry[:23].strip(), entry[23:]) for entry in entries[:4]] == [
        ("invalid_policy", 'job "image.thumbnail": max_executions (0) must be ≥ 1. Raise it to 1 or more.'),
        (
            "invalid_pool",
            'pool "main" subscribes to queue "imgaes", which no job uses and nothing declares. Did you mean "images"?',
        ),
        (
            "invalid_timing",
            "lease_duration: V-04: renewal_interval + renewal_jitter + 2 × control_request_timeout + "
            "control_retry_max_backoff + scheduler_allowance (31000 ms) must be < lease_duration − "
            "lease_safety_margin (20000 ms). Raise lease_duration to more than 41 s, or lower renewal_interval.",
        ),
        (
            "invalid_timing",
            "RUNWICK_RENEWAL_JITTER: expected a duration such as 250ms, 15s, 2min or 24h "
            "(one whole number, one unit), got '3'.",
        ),
    ]
    assert entries[4].startswith(f"  store_not_installed  store: {tmp_path}/thumbs.db ")
    assert not (tmp_path / "thumbs.db").exists()


def test_a_store_that_is_not_there_is_a_problem_with_its_absolute_path(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    ran = CliRunner().invoke(main, ["check", "--app", write_application(SOUND)])
    assert ran.exit_code == 2
    assert ran.stderr.startswith("Runwick cannot start: 1 problem.\n  store_not_installed  store: ")
    assert f"{tmp_path}/thumbs.db" in ran.stderr
    assert not (tmp_path / "thumbs.db").exists()


def test_a_summary_when_nothing_is_wrong(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("RUNWICK_LEASE_DURATION", "90s")
    app = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    ran = CliRunner().invoke(main, ["check", "--app", f"{app}:rw"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    notes = [line for line in lines if line.startswith("  notes ")]
    assert [line for line in lines if line not in notes] == [
        "Nothing is wrong.",
        "  application  thumbs",
        f"  store        sqlite {tmp_path}/thumbs.db (wal, synchronous=full)",
        "  pools        main: every queue; 4 at once, or one per executor",
        "  queues       bulk, default, images",
        "  jobs         image.report (version 2): queue default, medium, 1 execution; no handler here",
        "               image.thumbnail: queue images, high, 5 executions",
        "  timings      lease 90s, renewed every 15s; usable for 80 s after a renewal; 10s to stop, 10s to clean up",
        "  executors    memory limit none; recycled never; oom_score_adj 500; allocations recorded",
    ]


EXECUTORS = {
    "RUNWICK_MEMORY_SOFT": "256MiB",
    "RUNWICK_MEMORY_HARD": "2GiB",
    "RUNWICK_RECYCLE_ATTEMPTS": "5000",
    "RUNWICK_RECYCLE_AGE": "12h",
    "RUNWICK_OOM_SCORE_ADJ": "0",
    "RUNWICK_NICE": "10",
    "RUNWICK_PIN": "true",
    "RUNWICK_RECORD_ALLOCATIONS": "false",
    "RUNWICK_COMPILED_PART": "false",
    "COLUMNS": "300",
}


def test_how_executors_are_kept_is_shown(write_application: WriteApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in EXECUTORS.items():
        monkeypatch.setenv(name, value)
    app = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    ran = CliRunner().invoke(main, ["check", "--app", app])
    assert (
        "  executors    memory limit soft 256MiB, hard 2GiB; recycled after 5,000 attempts or after 12h; "
        "oom_score_adj 0; nice 10; each on one core; allocations not recorded; without the compiled part\n"
    ) in ran.stdout


def test_what_is_wrong_with_executors_is_a_problem(
    write_application: WriteApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**EXECUTORS, "RUNWICK_MEMORY_SOFT": "2GiB"}.items():
        monkeypatch.setenv(name, value)
    ran = CliRunner().invoke(main, ["check", "--app", write_application(SOUND)])
    assert ran.exit_code == 2
    assert "memory_soft (2GiB) must be < memory_hard (2GiB)." in ran.stderr


def test_several_pools_are_shown_with_their_sizes(
    write_application: WriteApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    app = write_application(
        SOUND + "\nrw.pool('main', concurrency=8)\nrw.pool('bulk', queues=('bulk', 'images'), concurrency=2)\n"
    )
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    ran = CliRunner().invoke(main, ["check", "--app", app])
    assert "  pools        main: every queue; 8 at once, or on 8 executors\n" in ran.stdout
    assert "               bulk: bulk, images; 2 at once, or on 2 executors\n" in ran.stdout


def test_the_store_of_the_environment_wins(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("RUNWICK_STORE", "sqlite:///elsewhere.db")
    ran = CliRunner().invoke(main, ["check", "--app", write_application(SOUND)])
    assert str(tmp_path / "elsewhere.db") in ran.stderr


def test_another_directory_comes_first_on_the_path(
    write_application: WriteApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = write_application(SOUND)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    missing = CliRunner().invoke(main, ["check", "--app", app])
    assert (missing.exit_code, "invalid_application" in missing.stderr) == (2, True)
    found = CliRunner().invoke(main, ["check", "--app", app, "--app-dir", os.pardir])
    assert "store_not_installed" in found.stderr


def test_an_import_that_fails_is_a_problem(write_application: WriteApplication) -> None:
    ran = CliRunner().invoke(main, ["check", "--app", write_application("1 / 0\n")])
    assert ran.exit_code == 2
    assert "import_failed" in ran.stderr
    assert "ZeroDivisionError" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("has_handler", [True, False])
def test_middleware_that_nobody_registered_is_a_problem_where_the_job_has_a_handler(
    has_handler: bool, write_application: WriteApplication
) -> None:
    declared = SOUND.replace('queue="images",', 'queue="images", middleware=("nosuch",),')
    app = write_application(declared if has_handler else declared.partition("@rw.handler")[0])
    assert CliRunner().invoke(main, ["migrate", "--app", app]).exit_code == 0
    ran = CliRunner().invoke(main, ["check", "--app", app])
    assert (ran.exit_code, "unknown_middleware_alias" in ran.stderr) == ((2, True) if has_handler else (0, False))
