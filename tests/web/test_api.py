"""What the API does on a real store, and that it tells nobody more than he may know."""

import base64
import uuid
from collections.abc import Sequence
from typing import Any, Final

import httpx
import pytest

from runwick import ControlOutcomeUnknown, ManagementActor, Runwick
from runwick.management.http import api
from runwick.management.http.table import TABLE
from runwick.management.permissions import EVERYTHING, Grant, Permission
from tests.app.running import fail, succeed
from tests.web.ground import GONE, Client, Pack, Ship, Site, bearer, change, error_of

OWN: Final = frozenset({"own"})
OF_OWN: Final = [
    Grant(each, queues=OWN if each.startswith(("Jobs.", "Queues.")) else None) for each in sorted(Permission)
]
"""Everything, for one of the two queues."""


def seen(robot: Client, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = robot.get(f"/v1/jobs/{job_id}").json()
    return job


def expected(job: dict[str, Any]) -> dict[str, Any]:
    return {"expectedGeneration": job["generation"], "expectedRevision": job["revision"]}


class TestReads:
    def test_every_read_answers(self, rw: Runwick, robot: Client) -> None:
        receipt = rw.dispatch(Pack(number=7))
        succeed(rw)
        for route in TABLE:
            if route.method == "GET":
                path = route.path.replace("{job_id}", receipt.job_id).replace("{name}", "order.pack")
                assert robot.get(path).status_code == 200, path

    def test_jobs_are_listed_by_filter_without_payloads(self, rw: Runwick, robot: Client) -> None:
        packed, shipped = rw.dispatch(Pack(number=7)), rw.dispatch(Ship(order="a secret address"))
        page = robot.get("/v1/jobs")
        assert [job["jobId"] for job in page.json()["jobs"]] == [shipped.job_id, packed.job_id]
        assert "secret" not in page.text
        assert [job["jobId"] for job in robot.get("/v1/jobs?queue=own").json()["jobs"]] == [packed.job_id]
        assert [job["jobId"] for job in robot.get("/v1/jobs?name=order.ship").json()["jobs"]] == [shipped.job_id]
        assert robot.get("/v1/jobs?state=failed").json()["jobs"] == []
        assert "secret" not in robot.get(f"/v1/jobs/{shipped.job_id}").text

    def test_a_job_has_its_history(self, rw: Runwick, robot: Client) -> None:
        receipt = rw.dispatch(Pack())
        fail(rw, "no_stock")
        job = seen(robot, receipt.job_id)
        assert (job["state"], job["code"], job["name"]) == ("failed", "no_stock", "order.pack")
        assert [attempt["code"] for attempt in job["attempts"]] == ["no_stock"]
        assert robot.get(f"/v1/jobs/{receipt.job_id}/why").json()["reasons"] == []


class TestControls:
    def test_a_job_is_cancelled_retried_and_run_again(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        for action, state in (("cancel", "cancelled"), ("retry", "pending")):
            body = change(**expected(seen(robot, job_id)), reason=f"{action} it")
            result = robot.post(f"/v1/jobs/{job_id}/{action}", body).json()
            assert (result["succeeded"], result["state"]) == (True, state)
            assert (result["commandId"], result["replayed"]) == (body["commandId"], False)
        succeed(rw)
        assert robot.post(f"/v1/jobs/{job_id}/rerun", change(**expected(seen(robot, job_id)))).status_code == 200
        trail = robot.get(f"/v1/audit?job={job_id}").json()["records"]
        assert [each["action"] for each in trail] == ["rerun", "retry", "cancel"]
        assert [(each["actor"], each["actorScheme"]) for each in trail] == [("robot", "bearer")] * 3
        assert trail[2]["reason"] == "cancel it"

    def test_sent_again_it_answers_as_before_and_leaves_one_trace(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        body = change(**expected(seen(robot, job_id)))
        first, second = (robot.post(f"/v1/jobs/{job_id}/cancel", body).json() for _ in range(2))
        assert second == {**first, "replayed": True}
        assert len(robot.get("/v1/audit").json()["records"]) == 1

    @pytest.mark.parametrize(
        ("more", "code"),
        [({"expectedRevision": 9}, "stale_revision"), ({"expectedGeneration": 2}, "stale_generation")],
    )
    def test_a_stale_view_is_a_conflict_without_effect(
        self, rw: Runwick, robot: Client, more: dict[str, int], code: str
    ) -> None:
        job_id = rw.dispatch(Pack()).job_id
        job = seen(robot, job_id)
        body = change(**{**expected(job), **more})
        response = robot.post(f"/v1/jobs/{job_id}/cancel", body)
        error = error_of(response)
        assert (response.status_code, error["code"], error["commandId"]) == (409, code, body["commandId"])
        assert (error["actualGeneration"], error["actualRevision"]) == (job["generation"], job["revision"])
        assert error["actualState"] == "pending"
        assert seen(robot, job_id) == job
        assert robot.get("/v1/audit").json()["records"] == []

    def test_what_the_state_does_not_allow_is_a_conflict(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        response = robot.post(f"/v1/jobs/{job_id}/rerun", change(**expected(seen(robot, job_id))))
        assert (response.status_code, error_of(response)["code"]) == (409, "invalid_state")
        assert error_of(response)["message"] == "rerun does not go with the job as it stands"

    def test_a_control_that_the_state_does_not_allow_names_the_one_that_it_does(
        self, rw: Runwick, robot: Client
    ) -> None:
        job_id = rw.dispatch(Pack()).job_id
        robot.post(f"/v1/jobs/{job_id}/cancel", change(**expected(seen(robot, job_id))))
        error = error_of(robot.post(f"/v1/jobs/{job_id}/rerun", change(**expected(seen(robot, job_id)))))
        assert (error["code"], error["actualState"], error["actualGeneration"]) == ("invalid_state", "cancelled", 1)
        assert error["message"].endswith("only what succeeded is rerun; use retry to let it run again")
        assert robot.post(f"/v1/jobs/{job_id}/retry", change(**expected(seen(robot, job_id)))).status_code == 200

    def test_hints_fit_whatever_was_asked(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        queue = change(expectedRevision=9)
        used = change(**expected(seen(robot, job_id)))
        robot.post(f"/v1/jobs/{job_id}/cancel", used)
        asked = {
            "Check its id, name or address, and who may see it.": robot.get("/v1/nothing"),
            "Read it again; it has changed since it was read.": robot.post("/v1/queues/own/pause", queue),
            "Mend what the message names, to fit its type.": robot.post(
                "/v1/queues/own/pause", {"expectedRevision": 0}
            ),
            "The id was used for another request; send this one with a new id.": robot.post(
                f"/v1/jobs/{job_id}/retry", used
            ),
        }
        assert {error_of(response)["hint"]: response for response in asked.values()} == asked

    def test_of_many_some_may_be_refused(self, rw: Runwick, robot: Client) -> None:
        jobs = [rw.dispatch(Pack(number=number)).job_id for number in range(2)]
        targets = [
            {"jobId": jobs[0], **expected(seen(robot, jobs[0]))},
            {"jobId": jobs[1], "expectedGeneration": 1, "expectedRevision": 9},
            {"jobId": GONE, "expectedGeneration": 1, "expectedRevision": 1},
        ]
        response = robot.post("/v1/jobs/cancel", change(targets=targets))
        assert response.status_code == 200
        assert [each["code"] for each in response.json()["results"]] == [None, "stale_revision", "not_found"]
        assert [each["jobId"] for each in response.json()["results"]] == [*jobs, GONE]

    def test_more_than_a_hundred_or_one_named_twice_are_refused(self, rw: Runwick, robot: Client) -> None:
        target = {"jobId": GONE, "expectedGeneration": 1, "expectedRevision": 1}
        for targets in ([], [target] * 101, [target] * 2):
            assert robot.post("/v1/jobs/cancel", change(targets=targets)).status_code == 400

    def test_a_lost_answer_is_told_as_unknown_with_the_commands_id(self, site: Site, robot: Client) -> None:
        body = change(expectedGeneration=1, expectedRevision=1)

        async def lost(*given: Any) -> None:
            raise ControlOutcomeUnknown("outcome_unknown", "the answer was lost", body["commandId"])

        site.management.desk.control = lost  # type: ignore[method-assign, assignment]
        response = robot.post(f"/v1/jobs/{GONE}/cancel", body)
        error = error_of(response)
        assert (response.status_code, error["code"], error["commandId"]) == (504, "outcome_unknown", body["commandId"])


class TestReveals:
    def test_a_payload_is_shown_exactly_and_the_trail_says_so(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack(number=12345678901234567890123)).job_id
        response = robot.post(f"/v1/jobs/{job_id}/reveal", change(what="payload", reason="ticket 4411"))
        assert response.json()["json"] == {"number": 12345678901234567890123}
        assert response.headers["cache-control"] == "no-store"
        [record] = robot.get("/v1/audit").json()["records"]
        assert (record["action"], record["jobId"], record["reason"]) == ("reveal_payload", job_id, "ticket 4411")

    def test_each_secret_needs_its_own_permission(self, rw: Runwick, site: Site, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        fail(rw, "no_stock")
        [attempt] = seen(robot, job_id)["attempts"]
        asked = {"payload": None, "result": None, "error": attempt["attemptId"], "black_box": attempt["attemptId"]}
        for permission, allowed in (
            (Permission.JOBS_READ_PAYLOAD, {"payload", "result"}),
            (Permission.JOBS_READ_ERROR, {"error", "black_box"}),
            (Permission.JOBS_READ, set()),
        ):
            site.grants = [Grant(permission)]
            for what, attempt_id in asked.items():
                response = robot.post(f"/v1/jobs/{job_id}/reveal", change(what=what, attemptId=attempt_id))
                assert response.status_code == (200 if what in allowed else 403), (permission, what)
        site.grants = EVERYTHING
        trail = [each["action"] for each in robot.get("/v1/audit").json()["records"]]
        assert trail == ["reveal_black_box", "reveal_error", "reveal_result", "reveal_payload"]

    def test_what_cannot_be_revealed_is_refused(self, rw: Runwick, robot: Client) -> None:
        job_id = rw.dispatch(Pack()).job_id
        for body in (change(what="password"), change(), change(what="error"), change(what="payload", attemptId=7)):
            assert robot.post(f"/v1/jobs/{job_id}/reveal", body).status_code == 400


class TestDispatch:
    def test_a_job_is_created_once(self, rw: Runwick, robot: Client) -> None:
        body = change(name="order.pack", payload={"number": 7}, queue="own", priority="high", tenant="acme")
        first, second = (robot.post("/v1/jobs", body).json() for _ in range(2))
        assert (first["disposition"], first["commandId"]) == ("created", body["commandId"])
        assert second == {**first, "replayed": True}
        job = seen(robot, first["jobId"])
        assert (job["name"], job["priority"], job["tenant"]) == ("order.pack", "high", "acme")
        [record] = robot.get("/v1/audit").json()["records"]
        assert record["action"] == "dispatch"

    @pytest.mark.parametrize(
        ("more", "code"),
        [
            ({"name": "order.none"}, "unknown_job"),
            ({"payload": {"numbre": 7}}, "invalid_payload"),
            ({"payload": [7]}, "invalid_payload"),
            ({"queue": "nowhere"}, "unknown_queue"),
            ({"priority": "urgent"}, "invalid_payload"),
            ({"delayMs": -1}, "invalid_payload"),
        ],
    )
    def test_what_cannot_be_dispatched_is_refused(self, robot: Client, more: dict[str, Any], code: str) -> None:
        response = robot.post("/v1/jobs", change(**{"name": "order.pack", "payload": {}, **more}))
        assert (response.status_code, error_of(response)["code"]) == (400, code)
        assert robot.get("/v1/jobs").json()["jobs"] == []

    def test_a_payload_as_deep_as_may_be_is_read(self, robot: Client) -> None:
        """The envelope around it does not count: it is refused for its type, and not for its depth."""
        deepest = b'{"a":' * 31 + b"{}" + b"}" * 31
        text = b'{"commandId":"%b","name":"order.pack","payload":%b}' % (str(uuid.uuid4()).encode(), deepest)
        assert "unknown field" in error_of(robot.post("/v1/jobs", text))["message"]


class TestLimits:
    def test_a_queue_is_paused_and_resumed(self, rw: Runwick, robot: Client) -> None:
        rw.dispatch(Pack())
        paused = robot.post("/v1/queues/own/pause", change(expectedRevision=0)).json()
        assert (paused["before"], paused["after"], paused["revision"]) == ("open", "paused", 1)
        again = robot.post("/v1/queues/own/pause", change(expectedRevision=0))
        assert (again.status_code, error_of(again)["actualRevision"]) == (409, 1)
        assert robot.post("/v1/queues/own/resume", change(expectedRevision=1)).json()["after"] == "open"

    def test_a_scope_is_addressed_by_a_key_with_a_slash(self, rw: Runwick, robot: Client) -> None:
        rw.dispatch(Pack(number=7))
        succeed(rw)
        [scope] = robot.get("/v1/scopes?kind=resource").json()["scopes"]
        assert (scope["key"], scope["capacity"]) == ("line/7", 2)
        for path, capacity in (("line%2F7", 5), ("line/7", 6)):
            [scope] = robot.get("/v1/scopes?kind=resource").json()["scopes"]
            body = change(capacity=capacity, expectedRevision=scope["revision"])
            response = robot.post(f"/v1/scopes/resource/{path}/capacity", body)
            assert (response.status_code, response.json().get("after")) == (200, str(capacity))

    @pytest.mark.parametrize("path", ["resource/none", "queue/none", "colour/red", "resource/", "job-type/%00"])
    def test_a_scope_that_is_not_there(self, robot: Client, path: str) -> None:
        response = robot.post(f"/v1/scopes/{path}/capacity", change(capacity=1, expectedRevision=1))
        assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


class TestHidden:
    """A job of another queue, or of another tenant, is for its caller as if it had never been."""

    def asked(self, robot: Client, job_id: str) -> list[httpx.Response]:
        command_id = "0199c0de-0000-7000-8000-00000000000a"  # nothing is ever applied under it
        body = {"commandId": command_id, "expectedGeneration": 1, "expectedRevision": 1}
        answers = [robot.get(f"/v1/jobs/{job_id}"), robot.get(f"/v1/jobs/{job_id}/why")]
        answers += [robot.post(f"/v1/jobs/{job_id}/{action}", body) for action in ("cancel", "retry", "rerun", "look")]
        answers += [
            robot.post(f"/v1/jobs/{job_id}/reveal", {"commandId": command_id, "what": what})
            for what in ("payload", "result")
        ]
        many = {"commandId": command_id, "targets": [{"jobId": job_id, "expectedGeneration": 1, "expectedRevision": 1}]}
        return [*answers, *(robot.post(f"/v1/jobs/{action}", many) for action in ("cancel", "retry", "rerun"))]

    def compared(self, robot: Client, hidden: str) -> None:
        for one, other in zip(self.asked(robot, hidden), self.asked(robot, GONE), strict=True):
            assert one.status_code == other.status_code
            assert one.headers == other.headers
            assert one.content.replace(hidden.encode(), GONE.encode()) == other.content
            assert one.status_code == 404 or "results" in one.json()

    @pytest.mark.parametrize("narrowed", ["queues", "tenants"])
    def test_it_is_answered_like_one_that_never_was(
        self, rw: Runwick, site: Site, robot: Client, narrowed: str
    ) -> None:
        hidden = rw.dispatch(Ship(), tenant="acme").job_id
        jobs = [each for each in Permission if each.startswith("Jobs.")]
        narrow = {"queues": OWN} if narrowed == "queues" else {"tenants": frozenset({None, "other"})}
        site.grants = [Grant(each, **narrow) for each in jobs]
        self.compared(robot, hidden)
        site.grants = EVERYTHING
        assert seen(robot, hidden)["revision"] == 1
        assert robot.get("/v1/audit").json()["records"] == []

    def test_lists_leave_it_out_before_they_are_paged(self, rw: Runwick, site: Site, robot: Client) -> None:
        own = {rw.dispatch(Pack(number=number)).job_id for number in range(3) if rw.dispatch(Ship())}
        site.grants = OF_OWN
        walked = set()
        path: str | None = "/v1/jobs?limit=1"
        while path is not None:
            page = robot.get(path).json()
            walked |= {job["jobId"] for job in page["jobs"]}
            path = None if page["cursor"] is None else f"/v1/jobs?limit=1&cursor={page['cursor']}"
        assert walked == own
        assert {each["jobId"] for each in robot.get("/v1/events").json()["events"]} == own
        assert [each["queue"] for each in robot.get("/v1/queues").json()["queues"]] == ["own"]
        assert [each["name"] for each in robot.get("/v1/types").json()["types"]] in ([], ["order.pack"])

    def test_a_hidden_queue_and_type_are_not_there(self, rw: Runwick, site: Site, robot: Client) -> None:
        rw.dispatch(Ship())
        succeed(rw)
        site.grants = OF_OWN
        body = change(expectedRevision=0)
        for action in ("pause", "resume"):
            hidden, missing = (robot.post(f"/v1/queues/{queue}/{action}", body) for queue in ("other", "none"))
            assert (hidden.status_code, hidden.content) == (404, missing.content)
        hidden, missing = robot.get("/v1/types/order.ship"), robot.get("/v1/types/order.none")
        assert (hidden.status_code, hidden.content) == (404, missing.content)

    def test_a_dispatch_into_a_hidden_queue_is_forbidden(self, site: Site, robot: Client) -> None:
        site.grants = OF_OWN
        response = robot.post("/v1/jobs", change(name="order.ship", payload={}))
        assert (response.status_code, error_of(response)["code"]) == (403, "forbidden")


class TestCursors:
    @pytest.fixture
    def cursor(self, rw: Runwick, robot: Client) -> str:
        for number in range(3):
            rw.dispatch(Pack(number=number))
        return str(robot.get("/v1/jobs?queue=own&limit=1").json()["cursor"])

    def status(self, robot: Client, path: str) -> int:
        response = robot.get(path)
        if response.status_code == 400:
            assert error_of(response)["code"] == "invalid_cursor"
        return response.status_code

    def test_it_is_good_for_its_caller_route_and_filter(self, site: Site, robot: Client, cursor: str) -> None:
        other = Client(api(site.management), bearer("other"))
        browser = Client(api(site.management), {"cookie": site.cookie("robot")})
        assert self.status(robot, f"/v1/jobs?queue=own&limit=1&cursor={cursor}") == 200
        assert self.status(robot, f"/v1/jobs?queue=own&limit=2&cursor={cursor}") == 200
        assert self.status(other, f"/v1/jobs?queue=own&cursor={cursor}") == 400
        assert self.status(browser, f"/v1/jobs?queue=own&cursor={cursor}") == 400
        for path in ("jobs?", "jobs?queue=other&", "jobs?queue=own&state=failed&", "scopes?", "audit?"):
            assert self.status(robot, f"/v1/{path}cursor={cursor}") == 400
        assert self.status(robot, f"/v1/events?after={cursor}") == 400

    def test_it_ends_after_an_hour(self, site: Site, robot: Client, cursor: str) -> None:
        site.clock.advance_ms(3_600_000)
        assert self.status(robot, f"/v1/jobs?queue=own&cursor={cursor}") == 400

    def test_one_of_events_is_kept_over_a_release_and_ends_too(self, rw: Runwick, site: Site, robot: Client) -> None:
        rw.dispatch(Pack(number=1))
        kept = robot.get("/v1/events").json()["cursor"]
        site.clock.advance_ms(29 * 86_400_000)
        assert self.status(robot, f"/v1/events?after={kept}") == 200
        site.clock.advance_ms(86_400_000)
        assert self.status(robot, f"/v1/events?after={kept}") == 400

    def test_no_flipped_bit_goes_through(self, robot: Client, cursor: str) -> None:
        raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        for byte in range(len(raw)):
            raw[byte] ^= 1 << byte % 8
            flipped = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
            assert self.status(robot, f"/v1/jobs?queue=own&cursor={flipped}") == 400
            raw[byte] ^= 1 << byte % 8

    def test_events_go_on_behind_any_of_them(self, rw: Runwick, robot: Client, cursor: str) -> None:
        page = robot.get("/v1/events").json()
        assert len(page["events"]) == 3
        for place, event in enumerate(page["events"]):
            rest = robot.get(f"/v1/events?after={event['cursor']}").json()["events"]
            assert [each["jobId"] for each in rest] == [each["jobId"] for each in page["events"][place + 1 :]]

    def test_every_list_goes_on_to_its_end(self, rw: Runwick, robot: Client, cursor: str) -> None:
        while _claims(rw):
            pass
        for number, job in enumerate(robot.get("/v1/jobs").json()["jobs"]):
            change_id = uuid.UUID(int=number + 1)
            actor = ManagementActor("ops", "ops", "service")
            rw.controls.rerun(rw.get(job["jobId"]).target, actor, command_id=change_id)
        of_scopes = robot.get("/v1/scopes?limit=1").json()["cursor"]
        assert (
            self.status(robot, f"/v1/rates?cursor={of_scopes}") == 400
        )  # asked in the same words, but of another list
        for path, members in (("jobs", "jobs"), ("scopes", "scopes"), ("audit", "records")):
            whole = robot.get(f"/v1/{path}").json()[members]
            assert len(whole) >= 3
            assert _walked(robot, f"/v1/{path}?limit=1", members) == whole


def _claims(rw: Runwick) -> bool:
    try:
        succeed(rw)
    except ValueError:  # nothing was claimed
        return False
    return True


def _walked(robot: Client, path: str, members: str) -> Sequence[Any]:
    found, cursor = [], ""
    while True:
        page = robot.get(path + cursor).json()
        found += page[members]
        if page["cursor"] is None:
            return found
        cursor = f"&cursor={page['cursor']}"
