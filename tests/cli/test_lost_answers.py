"""What becomes of a change whose answer is lost on its way: sent again under the same id, and honest in the end."""

import itertools
import json
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from runwick import Runwick
from runwick.cli import jobs, jobs_changing, remote_link
from runwick.contracts.controls import ManagementActor
from runwick.management.http import api
from runwick.management.permissions import EVERYTHING
from runwick.management.web import BearerScheme, Management, Principal
from tests.cli.ground import RUNWICK, SECRET, Pack, answering, asked, run, said, shop


class Loses:
    """An API whose answers to the first posts are lost after they were done.

    Args:
        application: the API.
        how: the status that is answered instead, or 0 for a connection that breaks.
        times: how many of them.
        before: the post is lost before it is done.
    """

    def __init__(self, application: ASGIApp, how: int, times: int, *, before: bool = False) -> None:
        self._application = application
        self._how = how
        self._times = times
        self._before = before
        self.posts: list[dict[str, Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self._application(scope, receive, send)
            return
        body = b""
        while (message := await receive()).get("more_body"):
            body += message["body"]
        body += message["body"]
        self.posts.append(json.loads(body))

        async def once() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        is_lost = len(self.posts) <= self._times

        async def unheard(message: Any) -> None:
            """The answer goes nowhere."""

        if not (is_lost and self._before):
            await self._application(scope, once, unheard if is_lost else send)
        if is_lost and self._how:
            await Response(status_code=self._how)(scope, receive, send)
        elif is_lost:
            await _break_off(send)


async def _break_off(send: Send) -> None:
    """Begin an answer that has no end: the server closes the connection."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})


async def _robot(token: str) -> Principal | None:
    return Principal(subject="robot", display="Robot", scheme="bearer", is_browser=False) if token == SECRET else None


@pytest.fixture
def rw(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runwick]:
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    monkeypatch.setattr(remote_link, "PAUSES_S", (0.01, 0.01, 0.01))
    rw = shop(f"sqlite:///{tmp_path}/shop.db")
    rw.migrate()
    yield rw
    rw.close()


def loses(rw: Runwick, how: int, times: int, *, before: bool = False) -> Loses:
    management = Management(rw.desk, schemes=[BearerScheme(_robot)], grants=lambda principal: EVERYTHING)
    return Loses(api(management), how, times, before=before)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("how", [0, 500, 502, 504])
def test_it_is_sent_again_and_done_once(rw: Runwick, how: int, before: bool) -> None:
    job_id = rw.dispatch(Pack(1)).job_id
    with answering(losing := loses(rw, how, 2, before=before)) as address:
        done = asked(
            *("jobs", "cancel", job_id, "--expected-generation", "1", "--expected-revision", "1", "--url", address)
        )
        assert (done["result"]["state"], done["result"]["replayed"]) == ("cancelled", not before)
        assert [each["commandId"] for each in losing.posts] == [done["commandId"]] * 3
        [row] = said("audit", "list", "--output", "json", "--url", address)["records"]
    assert row["commandId"] == done["commandId"]


def test_what_stays_unknown_says_how_to_learn_it(rw: Runwick) -> None:
    rw.dispatch(Pack(1))
    command_id = str(uuid.uuid4())
    with answering(losing := loses(rw, 504, 4)) as address:
        pause = ("queues", "pause", "own", "--expected-revision", "0", "--url", address)
        unknown = asked(*pause, "--command-id", command_id, "--reason", "a b", status=3)
        assert (unknown["error"]["code"], unknown["commandId"]) == ("outcome_unknown", command_id)
        assert len(losing.posts) == 4
        again = unknown["nextActions"][0]["argv"]
        assert asked(*again[2:])["result"]["replayed"] is True
    with answering(loses(rw, 504, 4)) as address:
        said_to_people = run("queues", "resume", "own", "--expected-revision", "1", "--url", address, status=3).stderr
    assert "Send it again with --command-id " in said_to_people


def test_a_refusal_after_a_lost_answer_is_no_answer(rw: Runwick) -> None:
    """That the server has no time now does not say what became of the first."""
    rw.dispatch(Pack(1))

    class Busy(Loses):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            self._how = 503 if self.posts else 504
            await super().__call__(scope, receive, send)

    management = Management(rw.desk, schemes=[BearerScheme(_robot)], grants=lambda principal: EVERYTHING)
    with answering(Busy(api(management), 504, 4)) as address:
        pause = ("queues", "pause", "own", "--expected-revision", "0", "--url", address)
        assert asked(*pause, status=3)["error"]["code"] == "outcome_unknown"


def test_a_read_whose_answer_is_lost_may_be_read_again(rw: Runwick) -> None:
    async def closes(scope: Scope, receive: Receive, send: Send) -> None:
        await _break_off(send)

    with answering(closes) as address:
        assert asked("jobs", "list", "--url", address, status=4)["error"]["code"] == "connection_failed"


def test_many_wait_for_a_server_that_has_no_time(rw: Runwick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_changing, "BUSY_S", 0.01)
    ids = [rw.dispatch(Pack(number)).job_id for number in range(3)]
    file = "\n".join(f'{{"jobId": "{each}", "expectedGeneration": 1, "expectedRevision": 1}}' for each in ids)
    with answering(losing := loses(rw, 429, 2, before=True)) as address:
        done = asked("jobs", "cancel-many", "--file", "-", "--url", address, typed=file)
    assert [each["state"] for each in done["result"]["results"]] == ["cancelled"] * 3
    assert [each["commandId"] for each in losing.posts] == [done["commandId"]] * 3


def test_ctrl_c_in_a_change_tells_that_nobody_knows(rw: Runwick) -> None:
    is_asked = threading.Event()

    async def ponders(scope: Scope, receive: Receive, send: Send) -> None:
        is_asked.set()
        while (await receive())["type"] != "http.disconnect":
            pass

    change = ("queues", "pause", "own", "--expected-revision", "0", "--url")
    with answering(ponders) as address:
        command = [str(RUNWICK), "--agent", *change, address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert is_asked.wait(timeout=30)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
    told = json.loads(out)
    assert (process.returncode, told["error"]["code"], "Traceback" in err) == (3, "outcome_unknown", False)
    assert told["nextActions"][0]["argv"][-3:] == [told["commandId"], "--url", address]


def test_following_goes_on_when_the_server_is_away_for_a_while(rw: Runwick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LOOK_EVERY_S", 0.01)
    job_id = rw.dispatch(Pack(1)).job_id
    management = Management(rw.desk, schemes=[BearerScheme(_robot)], grants=lambda principal: EVERYTHING)
    served, count = api(management), itertools.count()

    async def away(scope: Scope, receive: Receive, send: Send) -> None:
        if (asked_before := next(count)) in (1, 2):
            await _break_off(send)
            return
        if asked_before == 3:
            actor = ManagementActor("ops", "Ops", "service")
            await rw.controls.cancel_async((await rw.get_async(job_id)).target, actor)
        await served(scope, receive, send)

    with answering(away) as address:
        lines = run("jobs", "tail", job_id, "--url", address).stdout.splitlines()
    assert "pending" in lines[0]
    assert "cancelled" in lines[1]
