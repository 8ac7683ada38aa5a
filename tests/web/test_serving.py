"""What every request meets, whatever it asks for."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
import pytest
from starlette.responses import Response

from runwick import Runwick
from runwick.contracts.errors import StoreRevisionMismatch, StoreUnavailable
from runwick.management.http import api
from runwick.management.http.face import JsonFace
from runwick.management.http.table import TABLE
from runwick.management.permissions import Grant, Permission
from runwick.management.web.calls import Call
from runwick.management.web.routes import Access, Kind, Route, Table
from runwick.management.web.serving import serve
from tests.web.ground import GONE, Client, Pack, Site, bearer, change, error_of


async def nothing(call: Call) -> Response:
    return Response(b"nothing")


class TestTable:
    @pytest.mark.parametrize("rule", [None, (), frozenset(), "Jobs.Read "])
    def test_a_route_without_a_rule_cannot_be_written(self, rule: Any) -> None:
        with pytest.raises(ValueError, match="GET /v1/all has no rule"):
            Route(method="GET", path="/v1/all", needs=rule, handler=nothing)
        with pytest.raises(TypeError, match="needs"):
            Route(method="GET", path="/v1/all", handler=nothing)  # type: ignore[call-arg]

    def test_reads_are_get_and_nothing_else_is_open(self) -> None:
        with pytest.raises(ValueError, match="reads are GET"):
            Route(method="GET", path="/", needs=Permission.JOBS_CANCEL, handler=nothing, kind=Kind.CHANGE)
        with pytest.raises(ValueError, match="reads are GET"):
            Route(method="POST", path="/", needs=Permission.JOBS_READ, handler=nothing)
        with pytest.raises(ValueError, match="only reads can be"):
            Route(method="POST", path="/", needs=Access.OPEN, handler=nothing, kind=Kind.CHANGE)

    def test_one_way_in_has_one_row(self) -> None:
        row = Route(method="GET", path="/", needs=Access.OPEN, handler=nothing)
        with pytest.raises(ValueError, match="GET / has two rows"):
            Table([row, msgspec.structs.replace(row, needs=Access.SIGNED_IN)])

    def test_nothing_of_the_api_is_open(self) -> None:
        assert [row.path for row in TABLE if row.needs is Access.OPEN] == []

    def test_the_rule_is_kept_before_the_handler_is_asked(self, site: Site) -> None:
        reached = []

        async def unguarded(call: Call) -> Response:
            reached.append(call.principal.subject)
            return Response()

        some = frozenset({Permission.JOBS_READ_PAYLOAD, Permission.JOBS_READ_ERROR})
        rows = [
            Route(method="GET", path="/one", needs=Permission.AUDIT_READ, handler=unguarded),
            Route(method="POST", path="/some", needs=some, kind=Kind.REVEAL, handler=unguarded),
        ]
        robot = Client(serve(Table(rows), site.management, JsonFace()), bearer())
        site.grants = [Grant(each) for each in Permission if each not in {*some, Permission.AUDIT_READ}]
        assert [robot.get("/one").status_code, robot.post("/some").status_code, reached] == [403, 403, []]
        site.grants = [Grant(Permission.AUDIT_READ), Grant(Permission.JOBS_READ_ERROR)]
        assert [robot.get("/one").status_code, robot.post("/some").status_code, len(reached)] == [200, 200, 2]

    def test_what_is_open_needs_no_sign_in_and_grants_nothing(self, site: Site) -> None:
        async def granted(call: Call) -> Response:
            return Response(repr(sorted(call.caller.allowed.permissions)))

        table = Table([Route(method="GET", path="/logo", needs=Access.OPEN, handler=granted)])
        response = Client(serve(table, site.management, JsonFace())).get("/logo")
        assert (response.status_code, response.text) == (200, "[]")


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/v1",
            "/v1/",
            "/v1/jobs/",
            "/v1//jobs",
            "/v2/jobs",
            "/v1/queues/%2F",
            "/v1/jobs/%00",
            "/v1/jobs/not-an-id",
            f"/v1/jobs/{GONE}/",
            "/v1/jobs/%C0%AE",
            "/v1/types/order.none",
            '/v1/types/"><svg onload=alert(1)>',
        ],
    )
    def test_what_is_not_there_is_told_in_one_way(self, robot: Client, path: str) -> None:
        response = robot.get(path)
        assert response.status_code == 404
        assert response.content == robot.get(f"/v1/jobs/{GONE}").content
        assert error_of(response)["code"] == "not_found"

    @pytest.mark.parametrize("queue", ["%2F", "a%2Fb", "%00", "é", "..", "%2e%2e", "own%20", "<svg onload=alert(1)>"])
    def test_a_queue_that_cannot_be_is_not_there(self, robot: Client, queue: str) -> None:
        response = robot.post(f"/v1/queues/{queue}/pause", change(expectedRevision=0))
        assert response.status_code == 404

    def test_other_methods_are_refused_with_those_that_are_taken(self, robot: Client) -> None:
        for path, methods in TABLE.by_path.items():
            allowed = {*methods, *(["HEAD"] if "GET" in methods else [])}
            for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} - allowed:
                response = robot.ask(method, path.replace("{key:path}", "a").replace("{", "").replace("}", ""))
                assert response.status_code == 405, (method, path)
                assert set(response.headers["allow"].split(", ")) == allowed
                assert method == "HEAD" or error_of(response)["code"] == "method_not_allowed"

    def test_head_is_get_without_a_body(self, robot: Client) -> None:
        got, head = robot.get("/v1/queues"), robot.ask("HEAD", "/v1/queues")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))


class TestHeaders:
    def test_every_answer_is_sealed_off(self, site: Site, robot: Client) -> None:
        for response in (
            robot.get("/v1/jobs"),
            robot.get("/nowhere"),
            robot.ask("PUT", "/v1/jobs"),
            robot.post("/v1/jobs", b"{"),
            Client(api(site.management)).get("/v1/jobs"),
        ):
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["x-frame-options"] == "DENY"
            assert response.headers["referrer-policy"] == "no-referrer"
            assert response.headers["content-type"] == "application/json"
            assert not [name for name in response.headers if name.startswith("access-control-")]

    def test_there_are_no_more_than_somebody_could_mean(self, robot: Client) -> None:
        assert robot.get("/v1/jobs", headers={f"x-{number}": "" for number in range(90)}).status_code == 200
        assert robot.get("/v1/jobs", headers={f"x-{number}": "" for number in range(100)}).status_code == 400


class TestQueries:
    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("/v1/jobs?stat=failed", "there is no parameter 'stat'"),
            ("/v1/queues?state=failed", "there is no parameter 'state'; there are: none"),
            ("/v1/jobs?queue=a&queue=a", "the parameter queue is given twice"),
            ("/v1/jobs?queue=", "the parameter queue:"),
            ("/v1/jobs?queue=%00", "holds a control character"),
            ("/v1/jobs?state=<script>", "the parameter state[0]: invalid enum value"),
            ("/v1/jobs?state=failed&state=", "the parameter state[1]: invalid enum value"),
            ("/v1/jobs?limit=0", "the parameter limit: expected `int` >= 1"),
            ("/v1/jobs?limit=101", "the parameter limit: expected `int` <= 100"),
            ("/v1/jobs?limit=1e9", "the parameter limit:"),
            (f"/v1/jobs?limit={'9' * 5000}", "the parameter limit:"),
            ("/v1/jobs?from=2026-01-01T00:00:00", "the parameter from:"),
            ("/v1/jobs?until=yesterday", "the parameter until:"),
            (f"/v1/jobs?queue={'q' * 257}", "the parameter queue:"),
            ("/v1/scopes?kind=everything", "the parameter kind:"),
            ("/v1/scopes?kind=null", "the parameter kind:"),
            ("/v1/jobs?until=null", "the parameter until:"),
            ("/v1/jobs?until=0.5", "the parameter until:"),
            ("/v1/audit?job=7", "the parameter job:"),
            ("/v1/jobs?cursor=7", "the cursor is too old"),
        ],
    )
    def test_what_does_not_fit_is_refused_by_name(self, robot: Client, path: str, said: str) -> None:
        response = robot.get(path)
        assert response.status_code == 400
        assert said in error_of(response)["message"]

    def test_what_fits_is_read(self, rw: Runwick, robot: Client) -> None:
        rw.dispatch(Pack())
        times = "from=2026-01-01T00:00:00Z&until=9999-12-31T23:59:59.999%2B00:00"
        response = robot.get(f"/v1/jobs?state=failed&state=cancelled&queue=own&name=a&tenant=t&code=c&limit=1&{times}")
        assert response.status_code == 200
        assert response.json()["jobs"] == []
        assert robot.get("/v1/jobs?queue=null").json()["jobs"] == []  # a queue of that name, and not any
        assert robot.get("/v1/jobs?from=0001-01-01T00:00:00%2B23:59").status_code == 200

    def test_numbers_and_lists_that_may_be_left_out(self, site: Site) -> None:
        class Asked(msgspec.Struct):
            number: Annotated[int, msgspec.Meta(ge=1)] | None = None
            words: tuple[str, ...] | None = None

        async def told(call: Call) -> Asked:
            asked: Asked = call.query
            return asked

        row = Route(method="GET", path="/asked", needs=Access.SIGNED_IN, handler=told, query=Asked)
        robot = Client(serve(Table([row]), site.management, JsonFace()), bearer())
        assert robot.get("/asked").json() == {"number": None, "words": None}
        assert robot.get("/asked?number=7&words=null&words=a").json() == {"number": 7, "words": ["null", "a"]}
        for wrong in ("null", "0", "7.5", "seven"):
            assert robot.get(f"/asked?number={wrong}").status_code == 400


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b"", "the text is not JSON"),
            (b"[]", "expected `object`, got `array`"),
            (b"null", "expected `object`, got `null`"),
            (b"{", "the text is not JSON"),
            (b'{"commandId": "x"}', "$.commandId: invalid UUID"),
            (b"{}", "object missing required field `commandId`"),
            (b'{"a": 1, "a": 2}', "the member 'a' is given twice"),
            (b'{"expectedRevision": 1e400}', "JSON has no number inf"),
            (b'{"expectedRevision": NaN}', "JSON has no number NaN"),
            (b"[" * 100_000, "nest"),
            (b'{"a":' * 40 + b"1" + b"}" * 40, "may nest 32 levels"),
            (b'{"a": "\\u0000"}', "NUL"),
            (b'{"a": "\\ud800"}', "surrogate"),
            (b'{"a": "\xc0\xae"}', "not UTF-8"),
            (b"\xef\xbb\xbf{}", "the text is not JSON"),
            (b'{"a": ' + b"9" * 5_000 + b"}", "digit"),
        ],
    )
    def test_what_is_no_such_object_is_refused(self, robot: Client, body: bytes, said: str) -> None:
        response = robot.post("/v1/queues/own/pause", body)
        assert response.status_code == 400
        assert said in error_of(response)["message"]

    @pytest.mark.parametrize("member", ["force", "actor", "expected_revision", "__proto__", "commandid"])
    def test_an_unknown_member_is_refused_by_name(self, robot: Client, member: str) -> None:
        response = robot.post("/v1/queues/own/pause", change(expectedRevision=0, **{member: 1}))
        assert response.status_code == 400
        assert f"unknown field `{member}`" in error_of(response)["message"]

    @pytest.mark.parametrize("revision", [-1, 2**31, 1.5, True, "0", None])
    def test_numbers_are_whole_and_within_bounds(self, robot: Client, revision: object) -> None:
        assert robot.post("/v1/queues/own/pause", change(expectedRevision=revision)).status_code == 400

    @pytest.mark.parametrize("reason", ["", " ", "x" * 1_001, "bell\x07", 7])
    def test_a_reason_is_text_that_people_can_read(self, robot: Client, reason: object) -> None:
        assert robot.post("/v1/queues/own/pause", change(expectedRevision=0, reason=reason)).status_code == 400

    def test_a_body_may_have_a_mebibyte(self, robot: Client) -> None:
        for size, said in ((1024 * 1024, "not JSON"), (1024 * 1024 + 1, "a body may have 1,048,576 bytes")):
            response = robot.post("/v1/queues/own/pause", b"x" * size)
            assert response.status_code == 400
            assert said in error_of(response)["message"]

    def test_one_that_says_nothing_of_its_size_is_stopped_on_the_way(self, site: Site) -> None:
        sent = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal sent
            while True:
                sent += 65_536
                yield b" " * 65_536

        response = Client(api(site.management), bearer()).ask(
            "POST", "/v1/queues/own/pause", content=endless(), headers={"content-type": "application/json"}
        )
        assert error_of(response)["code"] == "payload_too_large"
        assert sent < 2 * 1024 * 1024

    def test_an_encoded_one_is_not_unpacked(self, robot: Client) -> None:
        response = robot.post("/v1/queues/own/pause", b"\x1f\x8b", headers={"content-encoding": "gzip"})
        assert (response.status_code, "encoded" in error_of(response)["message"]) == (400, True)

    def test_one_that_dribbles_in_is_not_waited_for_and_keeps_nobody_out(self, site: Site) -> None:
        app = serve(TABLE, site.management, JsonFace(), arrival_s=1.0)
        robot = Client(app, bearer())
        dribbling: list[int] = []

        async def dribble() -> AsyncIterator[bytes]:
            dribbling.append(1)
            for _ in itertools.count():
                yield b" "
                await asyncio.sleep(0.01)

        async def scene() -> list[int]:
            headers = {"content-type": "application/json"}
            slow = [
                asyncio.ensure_future(
                    robot.ask_async("POST", "/v1/queues/own/pause", content=dribble(), headers=headers)
                )
                for _ in range(site.management.limits.active_requests + 1)
            ]
            while len(dribbling) < len(slow):
                await asyncio.sleep(0.001)
            served = await robot.ask_async("GET", "/v1/queues")
            assert not any(each.done() for each in slow)
            return [served.status_code, *[(await each).status_code for each in slow]]

        assert asyncio.run(scene()) == [200] + [408] * 17


class TestFailures:
    """What goes wrong behind the face."""

    def failing(self, rw: Runwick, error: Exception) -> Client:
        site = Site(rw)

        async def fail(*given: Any) -> None:
            raise error

        for name in ("jobs", "queues"):
            setattr(site.management.desk, name, fail)
        return Client(api(site.management), bearer())

    def test_nobody_is_shown_a_traceback_and_the_log_has_it(
        self, rw: Runwick, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR, logger="runwick")
        response = self.failing(rw, ZeroDivisionError("postgresql://user:secret@db/shop")).get("/v1/jobs")
        error = error_of(response)
        assert (response.status_code, error["code"]) == (500, "internal_error")
        for private in ("secret", "ZeroDivision", "Traceback", ".py"):
            assert private not in response.text
        [record] = caplog.records
        assert error["incident"] in record.getMessage()
        assert record.event_id == 1402  # type: ignore[attr-defined]
        assert record.exc_info is not None

    @pytest.mark.parametrize(
        "error",
        [
            StoreUnavailable("store_unavailable", "postgresql://user:secret@db/shop does not answer"),
            StoreRevisionMismatch("store_revision_mismatch", "/var/lib/secret.db is at 7"),
        ],
    )
    def test_a_stores_own_words_stay_in_the_log(
        self, rw: Runwick, error: Exception, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR, logger="runwick")
        response = self.failing(rw, error).get("/v1/queues")
        told = error_of(response)
        assert (response.status_code, told["code"]) == (503, error.code)  # type: ignore[attr-defined]
        assert "secret" not in response.text
        assert told["incident"] in caplog.text
        assert "secret" in caplog.text
        # While a store is away, each request in turn is refused for it.
        assert ("Traceback" in caplog.text) is not isinstance(error, StoreUnavailable)
        assert isinstance(error, StoreUnavailable) is (len(caplog.text.splitlines()) == 1)

    def test_a_scheme_that_fails_lets_nobody_in(self, rw: Runwick, caplog: pytest.LogCaptureFixture) -> None:
        site = Site(rw)
        site.grants = 7  # type: ignore[assignment]
        response = Client(api(site.management), bearer()).get("/v1/jobs")
        assert (response.status_code, error_of(response)["code"]) == (500, "internal_error")
        assert "incident" in caplog.text
