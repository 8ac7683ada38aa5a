"""Saved servers, and signing in: where a secret may go, where it is looked for, and where it never is."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from tests.cli.conftest import Place
from tests.cli.ground import SECRET, answering, asked, run, said


def saved(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "config.json"


def test_contexts_are_saved_for_their_owner_alone_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROD_SECRET", SECRET)
    run("context", "add", "prod", "--url", "https://ops.example.com/api", "--secret-env", "PROD_SECRET")
    run("context", "add", "home", "--url", "http://localhost:1/api", "--auth", "basic", "--user", "ada")
    assert stat.S_IMODE(saved(tmp_path).stat().st_mode) == 0o600
    assert list(saved(tmp_path).parent.iterdir()) == [saved(tmp_path)]
    assert SECRET not in saved(tmp_path).read_text()
    assert said("context", "show", "--output", "json")["name"] == "prod"
    assert run("context", "use", "home").stdout.startswith("name: home\n")
    listed = said("context", "list", "--output", "json")["contexts"]
    assert [(each["name"], each["current"]) for each in listed] == [("home", True), ("prod", False)]
    assert "* home" in " ".join(run("context", "list").stdout.split())
    run("context", "remove", "home")
    assert json.loads(saved(tmp_path).read_text())["current"] is None
    assert run("context", "use", "pord", status=1).stderr.startswith("not_found: there is no context 'pord'. Did you")
    assert run("context", "show", status=2).stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--url", "http://ops.example.com"),
        ("--url", "ftp://localhost"),
        ("--url", "https://"),
        ("--url", "https://ada:tiger@ops.example.com"),
        ("--url", "https://ops.example.com/?token=tiger"),
        ("--url", "https://ops.example.com/#tiger"),
        ("--url", "http://127.0.0.1.tiger.example"),
        ("--url", "https://[tiger"),
        ("--url", "https://ops.example.com", "--auth", "basic"),
        ("--url", "https://ops.example.com", "--user", "ada"),
        ("--url", "https://ops.example.com", "--secret-env", "tiger tiger"),
    ],
)
def test_an_address_to_which_no_secret_may_go_is_refused_and_not_repeated(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    refused = run("context", "add", "prod", *arguments, status=2)
    assert refused.stderr.startswith("invalid_argument: ")
    assert "tiger" not in refused.stderr
    assert not saved(tmp_path).exists()


@pytest.mark.parametrize("text", ["{", '{"contexts": {"a": {"url": "http://elsewhere.example"}}}', '{"more": 1}'])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    saved(tmp_path).parent.mkdir()
    saved(tmp_path).write_text(text)
    refused = run("jobs", "list", status=2)
    assert "invalid_context" in refused.stderr
    assert asked("context", "list", status=2)["error"]["code"] == "invalid_context"
    assert saved(tmp_path).read_text() == text


def test_a_place_must_be_named_and_only_one() -> None:
    assert "Say where: --app MODULE" in run("jobs", "list", status=2).stderr
    for options in (
        ("--app", "a", "--connection-env", "B", "--application", "c"),
        ("--app", "a", "--context", "b"),
        ("--connection-env", "B"),
        ("--application", "c"),
        ("--context", "a", "--url", "https://b.example"),
        ("--user", "ada"),
        ("--app", "a", "--secret-stdin"),
        ("--context", "unknown"),
    ):
        assert asked("jobs", "list", *options, status=2)["error"]["code"] == "usage_error"


def test_a_secret_is_looked_for_in_order(server_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "signed in to http://127.0.0.1:" in run("login").stdout
    monkeypatch.setenv("RUNWICK_SECRET", "wrong")
    assert run("login").stderr == "", "the context's variable comes first"
    monkeypatch.delenv("SECRET_OF_THE_TEST")
    refused = asked("login", status=5)
    assert refused["error"]["code"] == "unauthenticated"
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    assert asked("login")["result"]["user"] == "ops"
    monkeypatch.setenv("RUNWICK_SECRET", "wrong")
    assert run("jobs", "list", "--secret-stdin", typed=f"{SECRET}\n").stdout == "no such jobs\n"
    monkeypatch.delenv("RUNWICK_SECRET")
    missing = asked("jobs", "list", status=5)["error"]
    assert (missing["code"], "--secret-stdin" in missing["hint"]) == ("credential_missing", True)
    assert run("login", "--secret-stdin", typed="", status=5).stderr.startswith("credential_missing")


def test_the_secret_of_a_context_goes_to_its_own_address_alone(server_place: Place) -> None:
    address = said("context", "show", "--output", "json")["url"]
    assert asked("jobs", "list", "--url", address, status=5)["error"]["code"] == "credential_missing"


def test_a_bearer_token_needs_no_antiforgery(server_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    address = said("context", "show", "--output", "json")["url"]
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    given = ("--payload", "-", "--url", address)
    receipt = asked("dispatch", "order.pack", *given, typed='{"number": 3}')
    assert receipt["result"]["disposition"] == "created"
    [row] = said("audit", "list", "--output", "json", "--url", address)["records"]
    assert (row["actor"], row["actorScheme"]) == ("robot", "bearer")


def test_what_is_not_allowed_has_its_exit_status(server_place: Place) -> None:
    url = said("context", "show", "--output", "json")["url"]
    viewer = ("--url", url, "--user", "viewer", "--secret-stdin")
    run("jobs", "list", *viewer, typed=SECRET)
    refused = asked("audit", "list", *viewer, typed=SECRET, status=5)
    assert (refused["error"]["code"], "Audit.Read" in refused["error"]["message"]) == ("forbidden", True)
    assert run("queues", "pause", "bulk", *viewer, typed=SECRET, status=5).stderr.count("forbidden") == 1


def test_nothing_that_is_said_holds_a_secret(server_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [run(*command).output for command in (("login",), ("doctor",), ("context", "show"), ("jobs", "list"))]
    monkeypatch.setenv("SECRET_OF_THE_TEST", "a-wrong-one")
    outputs += [run("jobs", "list", status=5).output, run("doctor", status=1).output]
    assert not any(secret in each for each in outputs for secret in (SECRET, "a-wrong-one"))


async def _elsewhere(scope: Any, receive: Any, send: Any) -> None:
    await RedirectResponse("https://ops.example.com/v1/jobs")(scope, receive, send)


async def _other(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse("hello", 404)(scope, receive, send)


async def _strange(scope: Any, receive: Any, send: Any) -> None:
    await Response(b'{"jobs": 1}', media_type="application/json")(scope, receive, send)


@pytest.mark.parametrize(
    ("application", "code", "status"),
    [(_elsewhere, "connection_failed", 4), (_other, "connection_failed", 4), (_strange, "version_mismatch", 1)],
)
def test_what_is_no_such_api_is_told(application: Any, code: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    with answering(application) as address:
        assert asked("jobs", "list", "--url", address, status=status)["error"]["code"] == code


def test_a_name_of_dots_leads_nowhere_else(server_place: Place) -> None:
    for name in ("..", ".", "../jobs", "a/b"):
        refused = run("capacity", "set", "resource", name, "3", "--expected-revision", "1", status=1).stderr
        assert refused.startswith("not_found: ")
        assert run("types", "get", name, status=1).stderr.startswith("not_found: ")


def test_a_place_that_is_none_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://ada:tiger@ops.example.com"
    for options in (("--url", url), ("--url", url, "--app", "a")):
        refused = run("--agent", "jobs", "cancel", "17", *options, status=2).stdout
        assert "tiger" not in refused
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    assert asked("jobs", "list", "--url", "https://-\u00fc-.example", status=2)["error"]["code"] == "invalid_argument"


def test_an_address_beside_the_api_is_told(server_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    address = said("context", "show", "--output", "json")["url"]
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    refused = run("login", "--url", f"{address}/v1", status=4)
    assert "without /v1" in refused.stderr


def test_nobody_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_SECRET", SECRET)
    nobody = ("--url", "http://127.0.0.1:9")
    refused = asked("jobs", "list", *nobody, status=4)["error"]
    assert (refused["code"], refused["retryable"]) == ("connection_failed", True)
    change = ("queues", "pause", "own", "--expected-revision", "0", *nobody)
    assert asked(*change, status=4)["error"]["code"] == "connection_failed", "nothing was sent"
