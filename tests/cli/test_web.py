"""``runwick web`` as a process: whom it lets in, what it serves, and how it stops."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from click.testing import CliRunner

from runwick import Runwick
from runwick.cli.main import main
from tests.cli.applications import SOUND
from tests.cli.conftest import WriteApplication

RUNWICK = Path(sys.executable).parent / "runwick"
AUTH = """
from runwick.management.permissions import VIEWER
from runwick.management.web import BasicScheme
from runwick.management.web.basic import passwords

basic = BasicScheme(passwords({"ada": "not-a-secret"}))
word = "basic"


def grants(principal):
    return VIEWER if principal.subject == "ada" else ()
"""


def recalculate(days: int) -> int:
    return days


class Served:
    """One process, and what it said of itself."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [RUNWICK, "web", "--port", "0", *arguments],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "stop: Ctrl-C" in line:
                break
        else:
            raise AssertionError(f"it has ended: {self.said}{self.end()}")
        self.link = self.process.stdout.readline().strip() if "this link" in line else ""
        (self.address,) = re.findall(r"dashboard: (\S+)/ ", self.said)

    def browser(self) -> httpx.Client:
        return httpx.Client(follow_redirects=True, timeout=30, trust_env=False)

    def end(self, number: int = signal.SIGTERM) -> str:
        """What it says on standard error until it has ended with 0."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, err
        return err


@pytest.fixture
def served(write_application: WriteApplication) -> Iterator[Callable[..., Served]]:
    """Serves the application ``SOUND`` on its store, with these arguments."""
    name = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", name]).exit_code == 0
    started: list[Served] = []

    def serve(*arguments: str, **environment: str) -> Served:
        started.append(Served(*(arguments or ("--app", name)), **environment))
        return started[-1]

    yield serve
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def test_the_link_signs_in_one_browser_once(served: Callable[..., Served]) -> None:
    web = served()
    assert web.said.startswith("runwick web ")
    with web.browser() as ours, web.browser() as theirs:
        assert theirs.get(f"{web.address}/").status_code == 401
        assert theirs.get(f"{web.address}/api/v1/jobs").status_code == 401
        page = ours.get(web.link)
        assert (page.status_code, page.url.path) == (200, "/")
        assert "thumbs" in page.text or "Overview" in page.text
        jobs = ours.get(f"{web.address}/api/v1/jobs")
        assert (jobs.status_code, jobs.json()["jobs"]) == (200, [])
        assert theirs.get(web.link).status_code == 403, "it was used up"
        assert theirs.get(f"{web.address}/").status_code == 401
        assert ours.get(web.link).status_code == 403
        assert ours.get(f"{web.address}/").status_code == 200, "the session goes on"
    assert "token" not in " ".join(psutil.Process(web.process.pid).cmdline())
    assert "Traceback" not in web.end()


def test_a_wrong_token_is_nobody_and_uses_nothing_up(served: Callable[..., Served]) -> None:
    web = served()
    with web.browser() as browser:
        assert browser.get(f"{web.address}/sign-in?token=guess").status_code == 403
        assert browser.get(f"{web.address}/sign-in").status_code == 403
        assert browser.head(web.link).status_code == 405
        elsewhere = browser.get(web.link, headers={"Host": "attacker.example"})
        assert elsewhere.status_code == 403, "a name that somebody made lead here"
        assert browser.get(web.link).status_code == 200


def test_health_needs_no_sign_in_and_shows_no_reason(served: Callable[..., Served]) -> None:
    web = served()
    with web.browser() as browser:
        assert browser.get(f"{web.address}/health/live").text == "healthy\n"
        assert browser.get(f"{web.address}/health/ready").text in ("healthy\n", "unhealthy\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well(served: Callable[..., Served], number: int) -> None:
    assert served().end(number) == ""


def test_hosts_own_schemes_and_grants(served: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "ops_of_the_test.py").write_text(AUTH)
    auth = ("--auth", "ops_of_the_test:basic", "--grants", "ops_of_the_test:grants")
    web = served("--app", "application_of_the_test", *auth)
    assert web.link == ""
    with web.browser() as browser:
        assert browser.get(f"{web.address}/api/v1/jobs").status_code == 401
        assert browser.get(f"{web.address}/sign-in").status_code in (401, 404)
        browser.auth = ("ada", "not-a-secret")
        assert browser.get(f"{web.address}/api/v1/jobs").status_code == 200
        assert browser.get(f"{web.address}/api/v1/audit").status_code == 403


@pytest.mark.parametrize(("trust", "status"), [((), 403), (("--trust-proxy", "127.0.0.1"), 200)])
def test_a_proxy_is_believed_only_where_it_is_named(
    served: Callable[..., Served], tmp_path: Path, trust: tuple[str, ...], status: int
) -> None:
    (tmp_path / "ops_of_the_test.py").write_text(AUTH)
    auth = ("--auth", "ops_of_the_test:basic", "--grants", "ops_of_the_test:grants")
    web = served("--app", "application_of_the_test", *auth, *trust)
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.5"}
    with web.browser() as browser:
        answer = browser.get(f"{web.address}/api/v1/jobs", headers=forwarded, auth=("ada", "not-a-secret"))
    assert answer.status_code == status, "a password over plain HTTP is refused"


def test_a_store_and_a_name_are_enough(served: Callable[..., Served], tmp_path: Path) -> None:
    place = ("--connection-env", "STORE_OF_THE_TEST", "--application", "thumbs")
    web = served(*place, STORE_OF_THE_TEST=f"sqlite:///{tmp_path}/thumbs.db")
    assert "· thumbs · sqlite" in web.said
    with web.browser() as browser:
        assert browser.get(web.link).status_code == 200
        assert browser.get(f"{web.address}/api/v1/overview").status_code == 200


def test_below_a_path_of_a_proxy_links_lead_there(served: Callable[..., Served]) -> None:
    web = served("--app", "application_of_the_test", "--root-path", "/ops")
    assert web.address.endswith("/ops")
    straight = web.address.removesuffix("/ops")  # as the proxy asks
    with httpx.Client(timeout=30, trust_env=False) as proxy:
        signed_in = proxy.get(web.link.replace(web.address, straight))
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/ops/")
        assert "Path=/ops;" in signed_in.headers["set-cookie"]
        assert proxy.get(f"{straight}/health/live").text == "healthy\n"


def test_a_name_under_which_nobody_has_used_the_store_is_pointed_out(
    served: Callable[..., Served], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/thumbs.db"
    place = ("--connection-env", "STORE_OF_THE_TEST", "--application")
    note = "note: nothing has been dispatched as thumbs to this store yet"
    assert note in served(*place, "thumbs", STORE_OF_THE_TEST=store).said
    with contextlib.closing(Runwick("thumbs", store=store)) as rw:
        rw.task("stats.recalculate")(recalculate).dispatch(7)
    assert note not in served(*place, "thumbs", STORE_OF_THE_TEST=store).said


def test_what_the_environment_says_of_stores_holds_without_the_application(
    served: Callable[..., Served], empty_database: str
) -> None:
    unsafe = {"STORE_OF_THE_TEST": empty_database, "RUNWICK_ALLOW_UNSAFE_DURABILITY": "true"}
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = off'.encode())
    assert CliRunner().invoke(main, ["migrate", "--connection-env", "STORE_OF_THE_TEST"], env=unsafe).exit_code == 0
    web = served("--connection-env", "STORE_OF_THE_TEST", "--application", "thumbs", **unsafe)
    assert "· thumbs · postgres" in web.said
    with web.browser() as browser:
        assert browser.get(web.link).status_code == 200


REFUSED = {
    "no application": ((), "Give --app, or --connection-env and --application."),
    "two": (("--app", "x", "--connection-env", "X", "--application", "x"), "Give --app, or --connection-env"),
    "a store of whom": (("--connection-env", "X"), "--connection-env and --application go together."),
    "a name twice": (("--app", "x", "--application", "x"), "--connection-env and --application go together."),
    "auth alone": (("--app", "x", "--auth", "a:b"), "--auth and --grants go together"),
    "grants alone": (("--app", "x", "--grants", "a:b"), "--auth and --grants go together"),
    "everybody": (("--app", "x", "--host", "0.0.0.0"), "can be reached from elsewhere, which needs --auth"),
    "everybody by IPv6": (("--app", "x", "--host", "::"), "can be reached from elsewhere, which needs --auth"),
    "a bad path": (("--app", "x", "--root-path", "ops/"), "--root-path begins with a slash"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_usage_is_refused_before_anything_is_loaded(case: str) -> None:
    arguments, sentence = REFUSED[case]
    refused = CliRunner().invoke(main, ["web", *arguments])
    assert refused.exit_code == 2
    assert sentence in refused.output


@pytest.mark.parametrize("missing", ["jinja2", "starlette", "uvicorn"])
def test_a_missing_extra_is_one_error(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    refused = CliRunner().invoke(main, ["web", "--app", "x"])
    assert refused.exit_code == 2
    assert f"runwick web needs {missing}; pip install 'runwick[web]'." in " ".join(refused.output.split())


def refusal(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["web", "--port", "0", "--app", "application_of_the_test", *arguments])


def test_what_is_wrong_with_store_schemes_and_grants_is_told(
    write_application: WriteApplication, tmp_path: Path
) -> None:
    name = write_application(SOUND)
    refused = refusal()
    assert (refused.exit_code, "store_not_installed" in refused.output) == (1, True)
    assert CliRunner().invoke(main, ["migrate", "--app", name]).exit_code == 0
    (tmp_path / "ops_of_the_test.py").write_text(AUTH)
    for auth, grants, sentence in (
        ("ops_of_the_test:word", "ops_of_the_test:grants", "gives str, which is no scheme"),
        ("ops_of_the_test:basic", "ops_of_the_test:word", "give a function from a principal"),
        ("ops_of_the_test:basics", "ops_of_the_test:grants", 'has no attribute "basics". Did you mean "basic"?'),
        ("ops_of_the_test", "ops_of_the_test:grants", "write module:attribute"),
        ("nowhere:basic", "ops_of_the_test:grants", 'no module "nowhere"'),
    ):
        refused = refusal("--auth", auth, "--grants", grants)
        assert refused.exit_code == 2, refused.output
        assert sentence in " ".join(refused.output.split())
    sys.modules.pop("ops_of_the_test")


def test_a_port_that_is_taken_is_told(write_application: WriteApplication) -> None:
    name = write_application(SOUND)
    assert CliRunner().invoke(main, ["migrate", "--app", name]).exit_code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = refusal("--port", port)
    assert refused.exit_code == 2
    assert f"nobody can listen on 127.0.0.1, port {port}" in refused.output
