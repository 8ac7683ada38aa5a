"""Commands at a desk, in each place where there is one: what is found, changed and refused is the same everywhere."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from runwick import JobState
from runwick.cli.executor_text import headline
from runwick.management.permissions import Permission
from tests.cli.conftest import Place
from tests.cli.ground import Pack, asked, run, said, work
from tests.management.counter import only

GONE = "0199c0de-0000-7000-8000-0000000000ff"


def revision(place: Place, job_id: str) -> tuple[str, ...]:
    seen = asked("jobs", "get", job_id, *place.options)["revisions"][f"job:{job_id}"]
    return "--expected-generation", str(seen["generation"]), "--expected-revision", str(seen["revision"])


def test_jobs_are_listed_filtered_and_paged(place: Place) -> None:
    ids = [place.rw.dispatch(Pack(number)).job_id for number in range(3)]
    found = said("jobs", "list", *place.options, "--output", "json")
    assert sorted(each["jobId"] for each in found["jobs"]) == sorted(ids)
    assert found["cursor"] is None
    assert "payload" not in {name.lower() for name in found["jobs"][0]}
    first = asked("jobs", "list", "--limit", "2", "--state", "pending", *place.options)
    assert len(first["result"]["jobs"]) == 2
    argv = first["nextActions"][0]["argv"]
    assert argv[:4] == ["runwick", "--agent", "jobs", "list"]
    rest = asked(*argv[2:])
    seen = [each["jobId"] for page in (first, rest) for each in page["result"]["jobs"]]
    assert sorted(seen) == sorted(ids)
    assert set(first["revisions"]) == {f"job:{each}" for each in seen[:2]}
    assert said("jobs", "list", "--state", "failed", *place.options, "--output", "json")["jobs"] == []
    argv = asked("jobs", "list", "--limit", "1", *place.options)["nextActions"][0]["argv"]
    assert [word for word in argv if word == "--cursor"] == ["--cursor"]
    third = asked(*asked(*argv[2:])["nextActions"][0]["argv"][2:])
    assert (len(third["result"]["jobs"]), third["nextActions"]) == (1, [])
    later = ("--from", "2999-01-01T00:00:00Z", "--queue", "own", "--name", "order.pack")
    assert said("jobs", "list", *later, *place.options, "--output", "json")["jobs"] == []
    assert "order.pack  pending" in run("jobs", "list", *place.options).stdout


def test_a_job_is_shown_alike_in_every_output(place: Place) -> None:
    job_id = place.rw.dispatch(Pack(1, "a secret")).job_id
    body = said("jobs", "get", job_id, *place.options, "--output", "json")
    envelope = asked("jobs", "get", job_id, *place.options)
    assert envelope["result"] == body
    assert (envelope["ok"], envelope["error"], envelope["commandId"]) == (True, None, None)
    assert envelope["revisions"] == {f"job:{job_id}": {"generation": 1, "revision": body["revision"]}}
    shown = run("jobs", "get", job_id, *place.options).stdout
    assert shown.startswith(f"job {job_id}  order.pack  pending  queue own  created ")
    assert "secret" not in shown + json.dumps(envelope)
    why = asked("jobs", "why", job_id, *place.options)["result"]
    assert [each["code"] for each in why["reasons"]] == ["no_pool"]
    assert "No living worker serves its queue." in run("jobs", "why", job_id, *place.options).stdout


def test_a_change_wants_what_was_seen(place: Place) -> None:
    job_id = place.rw.dispatch(Pack(1)).job_id
    missing = asked("jobs", "cancel", job_id, *place.options, status=2)
    assert missing["error"]["code"] == "usage_error"
    assert "--expected-generation and --expected-revision" in missing["error"]["message"]
    read = asked(*missing["nextActions"][0]["argv"][2:])
    assert read["result"]["jobId"] == job_id
    given = revision(place, job_id)
    command_id = str(uuid.uuid4())
    change = ("jobs", "cancel", job_id, *given, "--command-id", command_id, "--reason", "twice", *place.options)
    done = asked(*change)
    assert (done["result"]["state"], done["commandId"]) == ("cancelled", command_id)
    again = asked(*change)
    assert again["result"] == {**done["result"], "replayed": True}
    stale = asked("jobs", "cancel", job_id, *given, *place.options, status=1)
    assert (stale["ok"], stale["result"], stale["error"]["code"]) == (False, None, "stale_revision")
    now = done["result"]["revision"]
    assert stale["error"]["actualRevision"] == now
    assert stale["revisions"] == {f"job:{job_id}": {"generation": 1, "revision": now}}
    assert stale["nextActions"][0]["argv"][:5] == ["runwick", "--agent", "jobs", "get", job_id]
    [row] = said("audit", "list", "--job", job_id, "--action", "cancel", *place.options, "--output", "json")["records"]
    assert (row["reason"], row["commandId"]) == ("twice", command_id)


def test_people_may_leave_the_revision_to_the_command(place: Place) -> None:
    job_id = place.rw.dispatch(Pack(1)).job_id
    cancelled = run("jobs", "cancel", job_id, *place.options)
    assert "used generation 1, revision 1" in cancelled.stderr
    assert cancelled.stdout.startswith(f"job {job_id}  cancelled  generation 1  revision ")
    told = run("jobs", "cancel", job_id, *place.options, status=1).stderr
    assert f"It stands at state cancelled, generation 1, revision {cancelled.stdout.split()[-1]}." in told
    refused = said("jobs", "rerun", job_id, *place.options, "--output", "json", status=1)
    assert refused["error"]["code"] == "invalid_state"
    assert "use retry to let it run again" in refused["error"]["message"]
    assert "pending  generation 2" in run("jobs", "retry", job_id, *place.options).stdout
    assert run("jobs", "cancel", job_id, "--expected-generation", "1", *place.options, status=1).stdout == ""


def test_what_is_not_there(place: Place) -> None:
    for command in (
        ("jobs", "get", GONE),
        ("jobs", "cancel", GONE),
        ("queues", "pause", "nosuch"),
        ("types", "get", "a.b"),
    ):
        refused = run(*command, *place.options, status=1)
        assert (refused.stdout, refused.stderr.partition(":")[0]) == ("", "not_found")
    for wrong in (("jobs", "get", "17"), ("jobs", "list", "--from", "yesterday"), ("jobs", "list", "--limit", "0")):
        assert asked(*wrong, *place.options, status=2)["ok"] is False
    assert said("jobs", "get", GONE, *place.options, "--output", "json", status=1)["error"]["code"] == "not_found"


def test_queues_are_paused_and_resumed(place: Place) -> None:
    place.rw.dispatch(Pack(1))
    [own] = [each for each in said("queues", "list", *place.options, "--output", "json")["queues"] if each["due"]]
    assert (own["queue"], own["due"], own["paused"]) == ("own", 1, False)
    missing = asked("queues", "pause", "own", *place.options, status=2)
    assert missing["nextActions"][0]["argv"][2:4] == ["queues", "list"]
    seen = str(asked("queues", "list", *place.options)["revisions"]["queue:own"]["revision"])
    paused = asked("queues", "pause", "own", "--expected-revision", seen, *place.options)
    assert (paused["result"]["before"], paused["result"]["after"]) == ("open", "paused")
    refused = asked("queues", "pause", "own", "--expected-revision", seen, *place.options, status=1)
    assert refused["error"]["code"] in ("stale_revision", "invalid_state")
    assert "paused" in run("queues", "list", *place.options).stdout
    resumed = run("queues", "resume", "own", *place.options)
    assert (resumed.stdout.split()[:3], "used revision" in resumed.stderr) == (["queue", "own", "open"], True)
    trail = run("audit", "list", "--target-kind", "queue", *place.options).stdout
    assert trail.index("resume") < trail.index("pause")


def test_capacities_are_changed(place: Place) -> None:
    place.rw.dispatch(Pack(7))
    [scope] = said("capacity", "list", "--kind", "resource", *place.options, "--output", "json")["scopes"]
    assert (scope["key"], scope["capacity"]) == ("line/7", 2)
    changed = run("capacity", "set", "resource", "line/7", "5", *place.options)
    assert changed.stdout.startswith("resource line/7  2 → 5  revision ")
    stale = ("capacity", "set", "resource", "line/7", "6", "--expected-revision", str(scope["revision"]))
    assert asked(*stale, *place.options, status=1)["error"]["code"] == "stale_revision"
    assert run("capacity", "set", "resource", "line/8", "6", *place.options, status=1).stderr.startswith("not_found")
    assert "line/7  5" in run("capacity", "list", *place.options).stdout
    assert run("rates", "list", *place.options).stdout == "no rate windows\n"


def test_what_is_private_is_shown_by_reveals_alone(place: Place) -> None:
    good, bad = place.rw.dispatch(Pack(5, "\x1b[2Jpssst")), place.rw.dispatch(Pack(-1, "secret-order\x1b[2J"))
    work(place.rw, good, bad)
    payload = run("jobs", "reveal-payload", good.job_id, "--reason", "ticket 4411", *place.options).stdout
    assert json.loads(payload)["number"] == 5
    assert "\x1b" not in payload
    result = said("jobs", "reveal-result", good.job_id, *place.options, "--output", "json")
    assert (result["json"], result["what"]) == ({"number": 5}, "result")
    shown = run("jobs", "get", bad.job_id, *place.options).stdout
    assert "no_such_order" in shown
    assert "secret-order" not in shown
    assert f"runwick jobs reveal-error {bad.job_id} · runwick jobs retry {bad.job_id}" in shown
    error = run("jobs", "reveal-error", bad.job_id, "--attempt", "1", *place.options).stdout
    assert "there is no order secret-order\\x1b[2J" in error
    assert run("jobs", "reveal-error", bad.job_id, "--attempt", "2", *place.options, status=1).stdout == ""
    assert run("jobs", "reveal-black-box", bad.job_id, *place.options, status=1).stdout == ""
    rows = said("audit", "list", *place.options, "--output", "json")["records"]
    assert [row["action"] for row in rows] == ["reveal_error", "reveal_result", "reveal_payload"]
    assert rows[-1]["reason"] == "ticket 4411"
    figures = run("types", "get", "order.pack", *place.options).stdout
    assert figures.startswith("type order.pack  2 runs  1 failed\n  1 × no_such_order\n")
    assert "order.pack  2     1" in run("types", "list", *place.options).stdout


def test_a_job_is_followed_to_its_end(place: Place) -> None:
    receipt = place.rw.dispatch(Pack(5))
    run("jobs", "cancel", receipt.job_id, *place.options)
    lines = run("--agent", "jobs", "tail", receipt.job_id, *place.options).stdout.splitlines()
    item, end = map(json.loads, lines)
    assert (item["stream"], item["result"]["state"]) == ("item", "cancelled")
    assert (end["stream"], end["result"], end["ok"]) == ("end", None, True)
    assert asked("jobs", "tail", GONE, *place.options, status=1)["stream"] == "end"
    assert "cancelled (cancel_requested)" in run("jobs", "tail", receipt.job_id, *place.options).stdout


def test_events_come_in_order_and_go_on_behind_a_cursor(place: Place) -> None:
    ids = [place.rw.dispatch(Pack(number)).job_id for number in range(3)]
    *items, end = map(json.loads, run("--agent", "events", "tail", *place.options).stdout.splitlines())
    assert [each["result"]["jobId"] for each in items] == ids
    assert {each["stream"] for each in items} == {"item"}
    again = end["nextActions"][0]["argv"]
    assert [each["stream"] for each in map(json.loads, run(*again[1:]).stdout.splitlines())] == ["end"]
    behind = run("events", "tail", "--after", items[0]["result"]["cursor"], "--output", "json", *place.options).stdout
    assert [json.loads(line)["jobId"] for line in behind.splitlines()] == ids[1:]
    assert run("events", "tail", *place.options).stdout.splitlines()[-1].startswith("more: --after ")


def test_figures_workers_and_settings(place: Place) -> None:
    place.rw.dispatch(Pack(1))
    assert said("overview", *place.options, "--output", "json")["due"] == 1
    assert "1 due" in run("overview", *place.options).stdout
    settings = said("settings", *place.options, "--output", "json")
    assert (settings["application"], settings["admission"]) == ("shop", "open")
    assert run("settings", *place.options).stdout.startswith("application: shop\nstore: ")
    assert run("workers", "list", *place.options).stdout == "no workers\n"
    top = asked("top", *place.options)["result"]
    assert (top["overview"]["due"], top["workers"]["workers"]) == (1, [])
    assert "0 of 0 executors busy" in run("top", *place.options).stdout


def test_workers_that_are_not_shown_are_not_counted(server_place: Place) -> None:
    body = asyncio.run(server_place.rw.desk.overview(only(Permission.JOBS_READ)))
    assert body.executors is None
    assert headline(body) == "0 running · 0 due · 0 held by a limit"


def lines(place: Place, count: int) -> list[dict[str, Any]]:
    receipts = [place.rw.dispatch(Pack(number)) for number in range(count)]
    return [{"jobId": each.job_id, "expectedGeneration": 1, "expectedRevision": 1} for each in receipts]


def test_many_are_cancelled_and_what_is_refused_is_told(place: Place) -> None:
    targets = [*lines(place, 2), {"jobId": GONE, "expectedGeneration": 1, "expectedRevision": 1}]
    file = "\n".join(map(json.dumps, targets))
    command_id = str(uuid.uuid4())
    command = ("jobs", "cancel-many", "--file", "-", "--command-id", command_id, *place.options)
    done = asked(*command, typed=file, status=1)
    assert [each["code"] for each in done["result"]["results"]] == [None, None, "not_found"]
    assert (done["ok"], done["error"]["code"]) == (False, "not_found")
    assert "1 of 3 jobs were refused" in done["error"]["message"]
    shown = run(*command, typed=file, status=1)
    assert shown.stdout == f"2 cancelled\n  {GONE}  not_found\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no line"),
        ("{", "line 1"),
        ('{"jobId": 1, "expectedGeneration": 1, "expectedRevision": 1}', "line 1"),
        (f'{{"jobId": "{GONE}", "expectedGeneration": 0, "expectedRevision": 1}}', "line 1"),
        (f'\n{{"jobId": "{GONE}", "expectedGeneration": 1, "expectedRevision": 1, "more": 1}}', "line 2"),
        (f'{{"jobId": "{GONE}", "expectedGeneration": 1, "expectedRevision": 1}}\n' * 2, "line 2"),
    ],
)
def test_a_file_that_is_none_cancels_nothing(sqlite_place: Place, text: str, sentence: str) -> None:
    refused = run("jobs", "cancel-many", "--file", "-", *sqlite_place.options, typed=text, status=2)
    assert sentence in refused.stderr


def test_more_than_a_hundred_are_several_commands_that_can_be_sent_again(sqlite_place: Place) -> None:
    file = "\n".join(map(json.dumps, lines(sqlite_place, 103)))
    command = ("jobs", "cancel-many", "--file", "-", "--command-id", str(uuid.uuid4()), *sqlite_place.options)
    first, second = said(*command, "--output", "json", typed=file), asked(*command, typed=file)["result"]
    assert len(first["results"]) == 103
    assert {each["state"] for each in first["results"]} == {JobState.CANCELLED}
    assert [each["replayed"] for each in second["results"]] == [True] * 103
    assert len({each["commandId"] for each in first["results"]}) == 2
