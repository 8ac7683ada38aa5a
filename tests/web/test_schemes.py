"""How callers prove who they are, and that nothing else does."""

import asyncio
import logging
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from runwick import ConfigurationError, Runwick
from runwick.management.http import api
from runwick.management.permissions import EVERYTHING
from runwick.management.web import BasicScheme, BearerScheme, Management, OneTimeLink, SessionScheme
from runwick.management.web.basic import passwords
from runwick.management.web.refusals import Refusal
from runwick.management.web.sealing import Seal
from tests.ambient import FakeClock
from tests.web.ground import KEY, Client, Site, basic, bearer, error_of

WHO = "/v1/antiforgery"
"""Whoever is signed in may ask for it."""


def client(site: Site, **options: Any) -> Client:
    return Client(api(site.management), **options)


class TestManagement:
    def test_schemes_and_grants_are_required_and_all_that_is_wrong_is_said(self, rw: Runwick) -> None:
        with pytest.raises(ConfigurationError) as refused:
            Management(rw.desk, schemes=[], grants=None, signing_key=b"short")  # type: ignore[arg-type]
        assert [problem.setting for problem in refused.value.problems] == ["schemes", "grants", "signing_key"]
        assert {problem.code for problem in refused.value.problems} == {"invalid_management"}

    def test_two_schemes_do_not_share_a_name(self, rw: Runwick) -> None:
        with pytest.raises(ConfigurationError, match="share a name"):
            Management(rw.desk, schemes=[SessionScheme(), SessionScheme()], grants=lambda who: EVERYTHING)

    def test_machine_clients_come_by_bearer_tokens_alone(self, site: Site) -> None:
        with pytest.raises(ConfigurationError) as refused:
            api(site.management, for_machine_clients=True)
        assert [(problem.code, problem.setting) for problem in refused.value.problems] == [
            ("scheme_not_allowed", "session"),
            ("scheme_not_allowed", "basic"),
        ]

    def test_without_proof_nothing_is_served_and_no_redirect_is_sent(self, site: Site) -> None:
        for path in (WHO, "/v1/jobs", "/v1/openapi.json"):
            response = client(site).get(path)
            assert (response.status_code, error_of(response)["code"]) == (401, "unauthenticated")
            assert response.headers["www-authenticate"] == (
                'Basic realm="Runwick", charset="UTF-8", Bearer realm="Runwick"'
            )

    def test_grants_may_be_asked_asynchronously_and_are_asked_each_time(self, rw: Runwick) -> None:
        asked = []

        async def grants(principal: Any) -> Any:
            asked.append((principal.subject, principal.claims))
            return EVERYTHING

        scheme = BearerScheme(Site(rw).management.schemes[2]._verify)  # type: ignore[attr-defined]
        robot = Client(api(Management(rw.desk, schemes=[scheme], grants=grants)), bearer())
        assert [robot.get("/v1/jobs").status_code for _ in range(2)] == [200, 200]
        assert asked == [("robot", {})] * 2


class TestBasic:
    def test_the_right_password_signs_in(self, site: Site) -> None:
        assert client(site).get(WHO, headers=basic()).status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            basic(password="wrong"),
            basic("nobody", "correct horse"),
            basic("OPS", "correct horse"),
            {"authorization": "Basic"},
            {"authorization": "Basic ####"},
            {"authorization": "Basic b3Bz"},
            {"authorization": "Basic /////w=="},
            basic("o\x07ps", "x"),
            basic("x" * 300, "x"),
        ],
    )
    def test_all_else_is_refused_with_the_same_bytes(self, site: Site, headers: dict[str, str]) -> None:
        given, wrong = (client(site).get(WHO, headers=each) for each in (headers, basic(password="never right")))
        assert (given.status_code, given.content, given.headers) == (401, wrong.content, wrong.headers)
        assert error_of(given)["message"] == "user or password is wrong"

    def test_who_gives_nothing_is_asked_to_sign_in(self, site: Site) -> None:
        assert error_of(client(site).get(WHO))["message"] == "sign in first"
        for authorization in ("Bearer nobody's", "Digest x"):
            refused = client(site).get(WHO, headers={"authorization": authorization})
            assert error_of(refused)["message"] == "these credentials are not valid here"

    def test_no_password_goes_over_plain_http(self, site: Site) -> None:
        plain = client(site, scheme="http")
        response = plain.get(WHO, headers=basic())
        assert (response.status_code, error_of(response)["code"]) == (403, "https_required")
        assert "Basic" not in plain.get(WHO).headers["www-authenticate"]

    def test_this_machine_itself_is_trusted_and_what_is_passed_on_is_not(self, site: Site) -> None:
        own = client(site, scheme="http", host="localhost:8000", source="127.0.0.1")
        assert own.get(WHO, headers=basic()).status_code == 200
        for header, value in (("x-forwarded-for", "192.0.2.9"), ("x-forwarded-proto", "https"), ("via", "1.1 proxy")):
            assert own.get(WHO, headers={**basic(), header: value}).status_code == 403
        for host, source in (("evil.example", "127.0.0.1"), ("localhost", "192.0.2.7"), ("[::1]:80", "2001:db8::1")):
            other = client(site, scheme="http", host=host, source=source)
            assert other.get(WHO, headers=basic()).status_code == 403
        for host, source in (("[::1]:8000", "::1"), ("127.0.0.1", "::ffff:127.0.0.1")):
            other = client(site, scheme="http", host=host, source=source)
            assert other.get(WHO, headers=basic()).status_code == 200

    def test_guessing_ends_after_ten_failures_also_with_the_right_password(self, site: Site) -> None:
        guesser = client(site)
        for _ in range(10):
            assert guesser.get(WHO, headers=basic(password="wrong")).status_code == 401
        refused = guesser.get(WHO, headers=basic())
        assert (refused.status_code, error_of(refused)["code"]) == (429, "rate_limited")
        assert refused.headers["retry-after"] == "60"
        site.clock.advance_ms(60_000)
        assert guesser.get(WHO, headers=basic()).status_code == 200

    def test_neither_case_nor_blanks_nor_success_give_new_tries(self, site: Site) -> None:
        guesser = client(site)
        for user in ("ops", "OPS", " ops", "o p s", "ｏｐｓ"):
            assert guesser.get(WHO, headers=basic(user, "wrong")).status_code == 401
            assert guesser.get(WHO, headers=basic()).status_code == 200
            assert guesser.get(WHO, headers=basic(user, "wrong")).status_code == 401
        assert guesser.get(WHO, headers=basic()).status_code == 429

    @pytest.mark.parametrize("user", ["o\u00adps", "ops\u200b", "\u2060ops", "óps", "OP\u017f", "o\u034fps", "ops\t"])
    def test_nor_does_what_nobody_sees_in_a_name(self, site: Site, user: str) -> None:
        guesser = client(site)
        for tried in ("ops", user) * 5:
            assert guesser.get(WHO, headers=basic(tried, "wrong")).status_code == 401
        assert guesser.get(WHO, headers=basic()).status_code == 429

    def test_failures_count_for_the_source_and_the_user(self, site: Site) -> None:
        for _ in range(10):
            client(site, source="2001:db8::1").get(WHO, headers=basic(password="wrong"))
        assert client(site, source="2001:db8::2").get(WHO, headers=basic()).status_code == 429  # the same network
        assert client(site, source="2001:db8:0:1::1").get(WHO, headers=basic()).status_code == 200
        assert client(site, source="2001:db8::1").get(WHO, headers=basic("other")).status_code == 200

    def test_tries_side_by_side_are_counted_and_users_who_are_right_are_not(self, rw: Runwick) -> None:
        async def slow(user: str, password: str) -> bool:
            await asyncio.sleep(0)
            return password == "right"

        scheme = BasicScheme(slow, clock=FakeClock())
        app = api(Management(rw.desk, schemes=[scheme], grants=lambda who: EVERYTHING))

        async def statuses(password: str) -> list[int]:
            asker = Client(app, basic("ops", password))
            return [
                each.status_code for each in await asyncio.gather(*(asker.ask_async("GET", WHO) for _ in range(16)))
            ]

        assert set(asyncio.run(statuses("right"))) == {200}
        assert sorted(asyncio.run(statuses("wrong"))) == [401] * 10 + [429] * 6

    def test_a_failure_is_logged_without_address_user_or_password(
        self, site: Site, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING, logger="runwick")
        client(site).get(WHO, headers=basic("mallory", "hunter2"))
        [record] = caplog.records
        assert record.event_id == 1401  # type: ignore[attr-defined]
        for secret in ("mallory", "hunter2", "192.0.2"):
            assert secret not in record.getMessage()

    def test_passwords_are_compared_whole(self) -> None:
        verify = passwords({"a": "bc", "": "x"})

        async def is_good(user: str, password: str) -> bool:
            return await verify(user, password)

        for user, password, good in (("a", "bc", True), ("ab", "c", False), ("a", "b", False), ("", "x", True)):
            assert asyncio.run(is_good(user, password)) is good
        for empty in ({}, {"ops": ""}):
            with pytest.raises(ValueError, match="not empty"):
                passwords(empty)


class TestBearer:
    @pytest.mark.parametrize(
        "header", ["Bearer nobody's", "Bearer", "bearer ", "token-of-robot", "Basic token-of-robot"]
    )
    def test_only_a_known_token_signs_in(self, site: Site, header: str) -> None:
        assert client(site).get(WHO, headers=bearer()).status_code == 200
        assert client(site).get(WHO, headers={"authorization": header}).status_code == 401
        assert client(site).get(f"{WHO}?access_token=token-of-robot").status_code == 401


class TestSessions:
    def test_a_cookie_signs_in_and_a_changed_one_does_not(self, site: Site) -> None:
        cookie = site.cookie()
        assert client(site).get(WHO, headers={"cookie": cookie}).status_code == 200
        name, _, value = cookie.partition("=")
        for changed in (value[:-1], value + "A", value.swapcase(), "", "x"):
            assert client(site).get(WHO, headers={"cookie": f"{name}={changed}"}).status_code == 401

    def test_the_cookie_is_for_this_site_alone(self) -> None:
        def set_cookie(**scope: Any) -> str:
            response = Response()
            SessionScheme(KEY).sign_in(Request({"type": "http", "headers": [], **scope}), response, "ops")
            return response.headers["set-cookie"].partition("; ")[2]

        assert set_cookie(scheme="https", root_path="/ops") == (
            "HttpOnly; Max-Age=43200; Path=/ops; SameSite=strict; Secure"
        )
        assert set_cookie(scheme="http", root_path="") == "HttpOnly; Max-Age=43200; Path=/; SameSite=strict"

    def test_a_session_ends_by_time_and_by_signing_out(self, site: Site) -> None:
        first, second = site.cookie(), site.cookie()
        assert first != second
        response = Response()
        headers = [(b"cookie", first.encode())]
        site.session.sign_out(Request({"type": "http", "headers": headers, "root_path": ""}), response)
        assert "Max-Age=0" in response.headers["set-cookie"]
        assert client(site).get(WHO, headers={"cookie": first}).status_code == 401
        assert client(site).get(WHO, headers={"cookie": second}).status_code == 200
        site.clock.advance_ms(12 * 3_600_000)
        assert client(site).get(WHO, headers={"cookie": second}).status_code == 401

    def test_a_process_with_the_same_key_knows_it_and_another_does_not(self, site: Site) -> None:
        request = Request({"type": "http", "headers": [(b"cookie", site.cookie().encode())]})
        same, other = SessionScheme(KEY, clock=site.clock), SessionScheme(clock=site.clock)
        found = asyncio.run(same.authenticate(request))
        assert found is not None
        assert (found.subject, found.is_browser) == ("ops", True)
        assert asyncio.run(other.authenticate(request)) is None

    def test_what_another_release_kept_is_no_session(self, site: Site) -> None:
        value = Seal(KEY, "session", site.clock, 60).close(b'["id"]', b"session runwick_session")
        assert client(site).get(WHO, headers={"cookie": f"runwick_session={value}"}).status_code == 401


class TestOneTimeLink:
    def request(self, target: str, source: str = "127.0.0.1", host: bytes = b"localhost:8000") -> Request:
        query = target.partition("?")[2].encode()
        scope = {"type": "http", "scheme": "http", "method": "GET", "query_string": query, "root_path": ""}
        return Request({**scope, "headers": [(b"host", host)], "client": (source, 1)})

    def refused(self, link: OneTimeLink, request: Request) -> bool:
        try:
            asyncio.run(link.open(request))
        except Refusal as refusal:
            return (refusal.status, refusal.code) == (403, "sign_in_failed")
        return False

    def test_it_signs_in_once(self) -> None:
        link = OneTimeLink("ada", clock=FakeClock())
        target = link.issue()
        response = asyncio.run(link.open(self.request(target)))
        assert (response.status_code, response.headers["location"]) == (303, "/")
        cookie = response.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        session = Request({"type": "http", "headers": [(b"cookie", cookie.partition(";")[0].encode())]})
        who = asyncio.run(link.scheme.authenticate(session))
        assert who is not None
        assert (who.subject, who.scheme, link.grants(who)) == ("ada", "one_time_link", EVERYTHING)
        assert self.refused(link, self.request(target))

    def test_it_ends_after_ten_minutes_and_with_the_next_one(self) -> None:
        clock = FakeClock()
        link = OneTimeLink("ada", clock=clock)
        first, second = link.issue(), link.issue()
        assert self.refused(link, self.request(first))
        clock.advance_ms(600_000)
        assert self.refused(link, self.request(second))

    @pytest.mark.parametrize(("source", "host"), [("192.0.2.7", b"localhost"), ("127.0.0.1", b"rebound.example")])
    def test_it_is_for_this_machine(self, source: str, host: bytes) -> None:
        link = OneTimeLink("ada", clock=FakeClock())
        target = link.issue()
        assert self.refused(link, self.request(target, source, host))
        assert not self.refused(link, self.request(target))  # and is not used up by that

    def test_without_a_link_no_token_is_good(self) -> None:
        link = OneTimeLink("ada", clock=FakeClock())
        for target in ("/sign-in", "/sign-in?token=", "/sign-in?token=é"):
            assert self.refused(link, self.request(target))
