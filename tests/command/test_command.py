import datetime
import json
import math
import os
import signal
from typing import Any

import pytest

from runwick_supervisor.cores import usable_cores
from tests.command.conftest import APPLICATION, Place, family_of, line_of, summary_of, terminate, wait_for


def test_until_empty_runs_what_is_there_and_says_what_is_left(place: Place, errands: Any) -> None:
    import datetime

    receipts = [errands.rw.dispatch(errands.Run(what)) for what in ("letter", "stumble")]
    errands.rw.dispatch(errands.Run(), not_before=datetime.timedelta(hours=1))
    status, out, err = place.run("errands", "--until-empty", "--log-format", "json")
    assert (status, err) == (0, "")
    (stumble,) = [event for event in map(json.loads, out.splitlines()) if event["event"] == "attempt_ended"]
    assert stumble["text"].endswith("execution 1 of 2: failed (handler_failed), now retrying")
    assert (stumble["job_id"], stumble["state"]) == (receipts[1].job_id, "retrying")
    summary = summary_of(out)
    assert (summary["succeeded"], summary["retried"], summary["failed"]) == (2, 1, 0)
    assert summary["left"] == {"later": 1, "undecodable": 0, "paused": 0}
    assert [errands.rw.get(receipt).result(str) for receipt in receipts] == ["letter", "stumble"]
    (usage,) = [attempt.usage for attempt in errands.rw.get(receipts[0]).attempts]
    assert usage.cpu_us > 0
    assert usage.rss_peak_bytes > usage.rss_end_bytes / 2 > 0
    assert usage.wall_us >= 0


def test_a_job_that_ends_failed_is_told_by_the_exit_status(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run("fail"))
    status, out, _ = place.run("errands", "--until-empty", "--log-format", "json")
    assert (status, summary_of(out)["failed"]) == (1, 1)
    assert errands.rw.get(receipt).code == "no_such_errand"


def test_jobs_that_nobody_here_can_decode_are_left_and_counted(place: Place, errands: Any) -> None:
    errands.rw.dispatch(errands.Other())
    place.write(APPLICATION.replace("@rw.handler\ndef other", "def other"))
    status, out, _ = place.run("errands", "--until-empty", "--log-format", "json")
    assert (status, summary_of(out)["left"]) == (0, {"later": 0, "undecodable": 1, "paused": 0})


def test_queues_of_the_command_line_are_the_only_ones_served(place: Place, errands: Any) -> None:
    run, other = errands.rw.dispatch(errands.Run()), errands.rw.dispatch(errands.Other())
    status, _, _ = place.run("errands:rw", "--until-empty", "--queues", "others")
    assert status == 0
    assert (errands.rw.get(run).state, errands.rw.get(other).state) == ("pending", "succeeded")


def test_usage_can_be_turned_off(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run())
    status, out, _ = place.run("errands", "--until-empty", RUNWICK_RECORD_RESOURCE_USAGE="false")
    assert (status, "accounting: off" in out) == (0, True)
    (attempt,) = errands.rw.get(receipt).attempts
    assert attempt.usage is None


def test_check_starts_nothing(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run())
    status, out, _ = place.run("errands", "--check", "--executors", "3")
    assert status == 0
    assert "→ 3 executors" in out
    assert out.endswith("nothing is wrong, and nothing was started\n")
    assert "ready" not in out
    assert errands.rw.get(receipt).state == "pending"


def test_the_command_line_wins_over_the_environment(place: Place, errands: Any) -> None:
    _, out, _ = place.run("errands", "--check", "--executors", "3", RUNWICK_EXECUTORS="5")
    assert "→ 3 executors" in out
    _, out, _ = place.run("errands", "--check", RUNWICK_EXECUTORS="5")
    assert "→ 5 executors" in out
    _, out, _ = place.run("errands", "--check", "--executors-per-core", "1.4", RUNWICK_EXECUTORS="50")
    assert f"→ {math.ceil(1.4 * usable_cores())} executors" in out


def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_written(place: Place) -> None:
    place.write(APPLICATION)
    status, out, err = place.run(
        "errands", "--queues", "erands", RUNWICK_LEASE_DURATION="30s", RUNWICK_LEASE_SAFETY_MARGN="1s"
    )
    assert (status, out) == (2, "")
    assert err.startswith("Runwick cannot start: 4 problems.\n")
    for piece in ("invalid_timing", "V-04", "unknown_setting", "RUNWICK_LEASE_SAFETY_MARGIN", "invalid_pool", "erands"):
        assert piece in err
    assert "store_not_installed" in err
    assert str(place.folder / "errands.db") in err
    assert not (place.folder / "errands.db").exists()


def test_named_queues_hide_nothing_that_is_wrong_with_the_pool(place: Place, errands: Any) -> None:
    too_many = ("errands", "--check", "--executors", "3", "--queues", "others")
    status, _, err = place.run(*too_many, RUNWICK_MAX_OUTSTANDING_ATTEMPTS="2")
    assert (status, "pool_budget_exceeded" in err) == (2, True)
    status, _, err = place.run("errands", "--until-empty", "--queues", ",")
    assert (status, "names no queue" in err) == (2, True)


def test_an_application_that_declares_nothing_to_run_is_refused(place: Place) -> None:
    place.write('from runwick import Runwick\nrw = Runwick("empty", store="sqlite:///empty.db")\n')
    status, _, err = place.run("errands")
    assert (status, "missing_handler" in err) == (2, True)


def test_a_failing_import_is_one_problem_with_its_place(place: Place) -> None:
    place.write("import nothing_like_it\n")
    status, _, err = place.run("errands")
    assert status == 2
    assert "import_failed" in err
    assert "nothing_like_it" in err


def test_another_directory_can_come_first_on_the_path(place: Place, errands: Any) -> None:
    (place.folder / "elsewhere").mkdir()
    status, _, err = place.run("errands", "--check", "--app-dir", "elsewhere")
    assert (status, "invalid_application" in err) == (2, True)


def test_term_drains_and_gives_back_what_has_not_begun(place: Place, errands: Any) -> None:
    gate = place.folder / "gate"
    held = errands.rw.dispatch(errands.Run("hold", str(gate)))
    supervisor = place.command("errands", "--executors", "1")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")
    waiting = errands.rw.dispatch(errands.Run("later"))
    # To the whole group, as a terminal or a container does it: executors must not end early.
    os.killpg(supervisor.pid, signal.SIGTERM)
    wait_for(lambda: "stopping: 1 running" in line_of(supervisor), "the drain")
    gate.touch()
    assert supervisor.wait(30) == 0
    assert (errands.rw.get(held).state, errands.rw.get(waiting).state) == ("succeeded", "pending")


def test_a_second_signal_kills_and_the_job_need_not_wait(place: Place, errands: Any) -> None:
    held = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    supervisor = place.command("errands", "--executors", "1")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")
    terminate(supervisor)
    wait_for(lambda: "stopping: 1 running" in line_of(supervisor), "the drain")
    terminate(supervisor, signal.SIGINT)
    assert supervisor.wait(30) == 0
    view = errands.rw.get(held)
    assert (view.state, [attempt.outcome for attempt in view.attempts]) == ("retrying", ["interrupted"])


def test_titles_say_what_each_process_does_and_no_store(place: Place, errands: Any) -> None:
    errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    supervisor = place.command("errands", "--executors", "1")
    wait_for((place.folder / "gate.started").exists, "the handler to begin")
    wait_for(lambda: "runwick executor 1 errands: errands.run" in family_of(supervisor), "the executor's title")
    assert "runwick zygote errands" in family_of(supervisor)
    assert not any("errands.db" in title for title in family_of(supervisor))
    (place.folder / "gate").touch()


def test_when_nobody_reads_what_it_says_the_work_goes_on(place: Place, errands: Any) -> None:
    supervisor = place.command("errands", "--executors", "1", "--progress-interval", "50ms")
    assert line_of(supervisor).startswith("runwick-supervise ")
    assert supervisor.stdout is not None
    supervisor.stdout.close()
    receipt = errands.rw.dispatch(errands.Run("stumble"))
    assert errands.rw.wait(receipt, timeout=datetime.timedelta(seconds=20)).state == "succeeded"
    terminate(supervisor)
    assert supervisor.stderr is not None
    assert (supervisor.stderr.read(), supervisor.wait(timeout=30)) == ("", 0)


def test_progress_counts_what_still_runs(place: Place, errands: Any) -> None:
    receipt = errands.rw.dispatch(errands.Run("hold", str(place.folder / "gate")))
    place.write(APPLICATION.replace("time.sleep(0.005)", "pass"))
    supervisor = place.command("errands", "--executors", "1", "--progress-interval", "300ms", "--log-format", "json")
    told: dict[str, Any] = {}
    while not (told.get("event") == "progress" and told["share_in_handlers"] > 0):
        told = json.loads(line_of(supervisor))
    assert (told["done"], told["running"]) == (0, 1)
    (place.folder / "gate").touch()
    terminate(supervisor)
    out, _ = supervisor.communicate(timeout=30)
    summary = summary_of(out)
    (attempt,) = errands.rw.get(receipt).attempts
    spent_us = attempt.usage.cpu_us + attempt.usage.cpu_children_us
    assert summary["handler_cpu_s"] == pytest.approx(spent_us / 1e6, abs=0.02), "counted once"
