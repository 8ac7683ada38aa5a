"""What a signed-in browser posts must be meant by its user."""

from typing import Any

import pytest

from runwick import Runwick
from runwick.contracts.errors import ConfigurationError
from runwick.management.http import api
from tests.web.ground import Client, Site, basic, bearer, change, error_of

PAUSE = "/v1/queues/own/pause"
HEADER = "X-Runwick-Antiforgery"


def body() -> dict[str, Any]:
    return change(expectedRevision=0)


def token(asker: Client) -> str:
    answer = asker.get("/v1/antiforgery").json()
    assert answer["headerName"] == HEADER
    text: str = answer["token"]
    return text


def status(asker: Client, **headers: str) -> int:
    """Of a pause of a queue that no worker has registered: 404 is all the way through."""
    response = asker.post(PAUSE, body(), headers=headers)
    if response.status_code == 403:
        assert error_of(response)["code"] == "antiforgery_failed"
    return response.status_code


@pytest.fixture
def browser(site: Site) -> Client:
    return Client(api(site.management), {"cookie": site.cookie()})


def test_only_the_own_token_goes_through(site: Site, browser: Client) -> None:
    app = api(site.management)
    other_session, other_user = Client(app, {"cookie": site.cookie()}), Client(app, {"cookie": site.cookie("eve")})
    assert status(browser) == 403
    assert status(browser, **{HEADER: ""}) == 403
    assert status(browser, **{HEADER: "x" * 40}) == 403
    assert status(browser, **{HEADER: token(other_session)}) == 403
    assert status(browser, **{HEADER: token(other_user)}) == 403
    assert status(browser, **{HEADER: token(Client(app, basic()))}) == 403
    assert status(browser, **{HEADER: token(browser)}) == 404


def test_basic_clients_need_it_and_machine_clients_do_not(site: Site) -> None:
    app = api(site.management)
    user = Client(app, basic())
    assert status(user) == 403
    assert status(user, **{HEADER: token(Client(app, basic("other")))}) == 403
    assert status(user, **{HEADER: token(user)}) == 404
    assert status(Client(app, bearer())) == 404


def test_a_token_ends_after_twelve_hours(site: Site) -> None:
    user = Client(api(site.management), basic())
    old = token(user)
    site.clock.advance_ms(12 * 3_600_000)
    assert status(user, **{HEADER: old}) == 403


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "https://ops.example.com.evil.example"},
        {"origin": "https://ops.example.com:8443"},
        {"origin": "http://ops.example.com"},
        {"origin": "https://ops.example.com https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "https://ops.example.com"},
    ],
)
def test_a_foreign_page_is_refused_even_with_the_token(browser: Client, said: dict[str, str]) -> None:
    assert status(browser, **{HEADER: token(browser)}, **said) == 403


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "https://ops.example.com"},
        {"origin": "https://OPS.example.com:443", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
)
def test_our_own_pages_are_not(browser: Client, said: dict[str, str]) -> None:
    assert status(browser, **{HEADER: token(browser)}, **said) == 404


def test_behind_a_proxy_the_page_may_have_come_over_tls_and_from_a_name_that_the_host_gives(rw: Runwick) -> None:
    site = Site(rw, origins=["https://ops.example.net"])
    browser = Client(api(site.management), {"cookie": site.cookie()}, scheme="http")
    for origin, expected in (
        ("https://ops.example.com", 404),
        ("http://ops.example.com", 404),
        ("https://ops.example.net", 404),
        ("http://ops.example.net", 403),
        ("https://evil.example", 403),
    ):
        assert status(browser, **{HEADER: token(browser), "origin": origin}) == expected


@pytest.mark.parametrize("host", ["ops.example.com", "[", "ops.example.com:99999"])
def test_an_origin_that_is_none_equals_no_other_that_is_none(site: Site, host: str) -> None:
    browser = Client(api(site.management), {"cookie": site.cookie(), "host": host})
    assert status(browser, **{HEADER: token(browser), "origin": "null"}) == 403


@pytest.mark.parametrize(
    "origins", [["*"], ["null"], ["ops.example.net"], ["https://a.example", ""], "https://a.example"]
)
def test_origins_that_are_none_are_refused_at_once(rw: Runwick, origins: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="give a list of origins"):
        Site(rw, origins=origins)


def test_a_foreign_page_reads_nothing(browser: Client) -> None:
    """It may have the browser fetch a token, but no header lets it see one."""
    response = browser.get("/v1/antiforgery", headers={"origin": "https://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control-")]
    assert response.headers["cross-origin-resource-policy"] == "same-origin"
    preflight = browser.ask("OPTIONS", PAUSE, headers={"origin": "https://evil.example"})
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control-")]


def test_no_form_of_a_foreign_page_is_read(site: Site) -> None:
    """The three types that a form can post without asking first."""
    robot = Client(api(site.management), bearer())
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = robot.post(PAUSE, body(), headers={"content-type": media_type})
        assert (response.status_code, error_of(response)["code"]) == (400, "invalid_argument")


@pytest.mark.parametrize("override", ["x-http-method-override", "x-http-method", "x-method-override"])
def test_a_get_changes_nothing_whatever_it_says(browser: Client, override: str) -> None:
    response = browser.get(f"{PAUSE}?_method=POST", headers={override: "POST", HEADER: token(browser)})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
