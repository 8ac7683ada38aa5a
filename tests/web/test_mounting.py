"""The API works wherever it is mounted, and everything together as one site."""

import subprocess
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from runwick import Runwick
from runwick.management.http import api
from runwick.management.web import BearerScheme, Management, OneTimeLink
from runwick.management.web.site import site as whole_site
from tests.ambient import FakeClock
from tests.web.ground import Client, Pack, Site, _bearer, bearer, change


async def home(request: object) -> Response:
    return PlainTextResponse("home")


def test_under_a_prefix_of_starlette(rw: Runwick, site: Site) -> None:
    host = Starlette(routes=[Route("/", home), Mount("/ops/runwick/api", api(site.management))])
    robot = Client(host, bearer())
    rw.dispatch(Pack())
    assert len(robot.get("/ops/runwick/api/v1/jobs").json()["jobs"]) == 1
    shown = robot.get("/ops/runwick/api/v1/openapi.json").json()
    assert shown["servers"] == [{"url": "/ops/runwick/api"}]
    assert robot.post("/ops/runwick/api/v1/queues/own/pause", change(expectedRevision=0)).status_code == 200
    assert robot.get("/ops/runwick/api/v1/jobs/").status_code == 404
    assert robot.get("/").text == "home"


def test_under_a_prefix_of_whoever_dispatches_by_path(site: Site) -> None:
    """As the asgi.py of a Django project does: the prefix is in the path and in the root path."""

    async def host(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["path"].startswith("/runwick/")
        await api(site.management)({**scope, "root_path": "/runwick"}, receive, send)

    assert Client(host, bearer()).get("/runwick/v1/queues").status_code == 200


def test_for_machine_clients(rw: Runwick, site: Site) -> None:
    management = Management(rw.desk, schemes=[BearerScheme(_bearer)], grants=lambda who: site.grants)
    robot = Client(api(management, for_machine_clients=True), bearer())
    assert robot.post("/v1/queues/own/pause", change(expectedRevision=0)).status_code == 404


class TestSite:
    @pytest.fixture
    def link(self) -> OneTimeLink:
        return OneTimeLink("ada", clock=FakeClock())

    @pytest.fixture
    def app(self, rw: Runwick, link: OneTimeLink) -> ASGIApp:
        management = Management(rw.desk, schemes=[link.scheme], grants=link.grants)
        health = Starlette(routes=[Route("/live", home)])
        return whole_site(management, health=health, link=link)

    @pytest.mark.parametrize("prefix", ["", "/tools"])
    def test_the_link_opens_pages_and_api(self, app: ASGIApp, link: OneTimeLink, prefix: str) -> None:
        host = Starlette(routes=[Mount(prefix, app)]) if prefix else app
        browser = Client(host, scheme="http", host="localhost:8000", source="127.0.0.1")
        assert browser.get(f"{prefix}/api/v1/jobs").status_code == 401
        assert browser.get(f"{prefix}/").status_code == 401
        target = prefix + link.issue()
        assert browser.ask("HEAD", target).status_code == 405  # whoever only looks does not use it up
        opened = browser.get(target)
        assert (opened.status_code, opened.headers["location"]) == (303, f"{prefix}/")
        assert f"Path={prefix or '/'}; SameSite=strict" in opened.headers["set-cookie"]
        assert opened.headers["cache-control"] == "no-store"
        browser.headers["cookie"] = opened.headers["set-cookie"].partition(";")[0]
        assert browser.get(f"{prefix}/api/v1/jobs").status_code == 200
        page = browser.get(f"{prefix}/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        again = browser.get(target)
        assert (again.status_code, again.headers["content-type"]) == (403, "text/plain; charset=utf-8")
        assert link.issue().partition("=")[2] not in again.text

    def test_health_needs_no_sign_in(self, app: ASGIApp) -> None:
        assert Client(app).get("/health/live").text == "home"

    @pytest.mark.parametrize("path", ["/types/%0Aa", "/%0D%0A", "/api", "/api/%0A", "/types/%00"])
    def test_a_path_that_leads_nowhere_is_refused_as_every_other(self, site: Site, path: str) -> None:
        answer = Client(whole_site(site.management), bearer()).get(path)
        assert answer.status_code == 404
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")

    def test_without_a_link_there_is_no_door(self, site: Site) -> None:
        assert Client(whole_site(site.management), bearer()).get("/sign-in?token=x").status_code == 404


def test_the_library_loads_without_the_web_parts_and_says_which_extra_they_need(tmp_path: Path) -> None:
    (tmp_path / "starlette.py").write_text("raise ImportError")
    script = (
        "import sys, runwick, runwick.management.permissions; runwick.Runwick; assert 'starlette' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    script = "import runwick.management.http"
    missing = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": f"{tmp_path}:."}, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 1
    assert "[extra_missing] runwick[web]: the web parts need Starlette; pip install 'runwick[web]'" in missing.stderr
