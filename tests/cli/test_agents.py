"""What agents and programs rely on: one envelope a command, ``describe``, and that no failure breaks the form."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from runwick.cli.answers import Envelope
from runwick.cli.capacity import KINDS
from runwick.cli.commands import AnsweringCommand, DeskCommand
from runwick.cli.describe import leaves
from runwick.cli.described import result_type
from runwick.cli.failures import EXIT_STATUSES
from runwick.cli.jobs import STATES
from runwick.cli.main import main
from runwick.contracts.codes import CODES
from runwick.contracts.limits import LimitKind
from runwick.contracts.states import JobState, Priority
from runwick.management.permissions import Permission
from runwick.version import __version__
from tests.cli.conftest import Place
from tests.cli.ground import RUNWICK, Pack, asked, run, said

COMMANDS = dict(leaves(main, click.Context(main)))
ANSWERING = {name: each for name, each in COMMANDS.items() if isinstance(each, AnsweringCommand)}
PROMISED = {
    *(f"jobs {verb}" for verb in ("list", "get", "tail", "why", "cancel", "retry", "rerun", "cancel-many", "stack")),
    *(f"jobs reveal-{what}" for what in ("payload", "result", "error", "black-box")),
    *(f"queues {verb}" for verb in ("list", "pause", "resume")),
    *(f"context {verb}" for verb in ("add", "use", "list", "show", "remove")),
    *(f"store {verb}" for verb in ("status", "admission", "activate-capability", "reidentify")),
    *("capacity list", "capacity set", "rates list", "types list", "types get", "workers list", "events tail"),
    *("audit list", "dispatch", "settings", "overview", "doctor", "top", "login", "migrate", "describe", "version"),
    *("check", "health", "web", "worker", "completion"),
}
LONG_RUNNING = {"web", "worker"}


@pytest.fixture(scope="module")
def described() -> Any:
    return asked("describe")["result"]


def test_describe_names_every_command(described: Any) -> None:
    assert {each["name"] for each in described["commands"]} == set(COMMANDS) == PROMISED
    assert {each["name"] for each in described["commands"] if not each["hasAgentMode"]} == LONG_RUNNING


@pytest.mark.parametrize("name", COMMANDS)
def test_describe_tells_a_command_as_it_is(name: str, described: Any) -> None:
    [told] = [each for each in described["commands"] if each["name"] == name]
    command = COMMANDS[name]
    flags = {flag for each in command.params if isinstance(each, click.Option) for flag in each.opts}
    assert {flag for each in told["options"] for flag in each["flags"]} == flags
    assert [each["name"] for each in told["arguments"]] == [
        each.name for each in command.params if isinstance(each, click.Argument)
    ]
    if isinstance(command, DeskCommand):
        assert told["permission"] in set(Permission)
        assert told["changes"] is ("--command-id" in flags) is ("--reason" in flags)
        required = {flag for each in told["options"] if each.get("isRequiredByAgents") for flag in each["flags"]}
        assert {each for each in flags if each.startswith("--expected")} <= required
    if isinstance(command, AnsweringCommand):
        assert issubclass(result_type(command.result), msgspec.Struct)
        assert told["result"]["$ref"].startswith("#/components/")
        assert told["result"]["$ref"].removeprefix("#/components/") in described["components"]


def test_describe_tells_codes_and_exit_statuses(described: Any) -> None:
    assert {each["code"]: each["hint"] for each in described["errors"]} == {
        code: row.hint for code, row in CODES.items()
    }
    assert set(described["exitCodes"]) == {"0", "1", "2", "3", "4", "5"} == {str(each) for each in EXIT_STATUSES}
    assert described["envelope"] == {"$ref": "#/components/Envelope"}
    assert set(described["components"]["Envelope"]["properties"]) == set(asked("version")) | {"stream"}


def test_what_options_take_is_what_there_is() -> None:
    assert tuple(JobState) == STATES
    assert tuple(LimitKind) == KINDS
    [priority] = [each for each in COMMANDS["dispatch"].params if each.name == "priority"]
    assert isinstance(priority.type, click.Choice)
    assert tuple(priority.type.choices) == tuple(Priority)


def test_an_envelope_is_one(sqlite_place: Place) -> None:
    sqlite_place.rw.dispatch(Pack(1))
    envelope = run("jobs", "list", *sqlite_place.options, "--agent").stdout
    read = msgspec.json.decode(envelope, type=Envelope)
    assert (read.command, read.ok, read.cli.version, read.schema_version) == ("jobs list", True, __version__, 1)
    assert envelope.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("nosuch",),
        ("jobs", "nosuch"),
        ("jobs", "get"),
        ("jobs", "list", "--nosuch"),
        ("jobs", "list", "--state", "nosuch"),
        ("version", "--output", "json"),
        ("store", "status"),
        ("migrate", "--connection-env", "NOT_SET"),
        ("worker", "--app", "nosuch"),
        ("check", "--app", "nosuch"),
        ("jobs", "list", "--app", "nosuch"),
        ("jobs", "cancel", "17", "--app", "nosuch"),
        ("dispatch", "a.b", "--payload", '{"secret": 1}', "--app", "nosuch"),
    ],
)
def test_wrong_usage_is_an_envelope_too(arguments: tuple[str, ...], write_application: Any) -> None:
    refused = asked(*arguments, status=2)
    assert (refused["ok"], refused["result"], refused["schemaVersion"]) == (False, None, 1)
    assert refused["error"]["code"] in CODES


def test_wrong_usage_is_json_where_json_was_asked_for() -> None:
    assert said("jobs", "get", "--output", "json", status=2)["error"]["code"] == "usage_error"
    assert said("--output=json", "jobs", "nosuch", status=2)["error"]["code"] == "usage_error"
    assert run("jobs", "nosuch", status=2).stdout == ""


def test_a_fault_of_the_program_is_told_and_shown(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def fails(name: str) -> Any:
        raise ZeroDivisionError(name)

    monkeypatch.setattr("runwick.cli.contexts.read_contexts", lambda: fails("seven"))
    ran = CliRunner().invoke(main, ["--agent", "context", "list"])
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["error"]["code"]) == (1, "internal_error")
    assert "seven" not in ran.stdout
    assert "ZeroDivisionError: seven" in ran.stderr
    assert isinstance(CliRunner().invoke(main, ["context", "list"]).exception, ZeroDivisionError)


def test_a_payload_is_never_an_argument(sqlite_place: Place, tmp_path: Path) -> None:
    dispatch = ("dispatch", "order.pack", *sqlite_place.options, "--payload")
    refused = run(*dispatch, '{"number": 7}', status=2)
    assert "7" not in refused.stderr
    assert run(*dispatch, "-", typed="{", status=2).stdout == ""
    assert run(*dispatch, f"@{tmp_path}/nosuch.json", status=2).stdout == ""
    (tmp_path / "payload.json").write_text('{"number": 7}\n')
    made = asked(*dispatch, f"@{tmp_path}/payload.json", "--queue", "bulk", "--priority", "low", "--delay", "2min")
    job = asked(*made["nextActions"][0]["argv"][2:3], "get", made["result"]["jobId"], *sqlite_place.options)["result"]
    assert (job["queue"], job["priority"]) == ("bulk", "low")
    again = ("--queue", "bulk", "--priority", "low", "--delay", "2min", "--command-id", made["commandId"])
    assert asked(*dispatch, f"@{tmp_path}/payload.json", *again)["result"]["replayed"] is True
    assert asked(*dispatch, "-", "--delay", "soon", typed="{}", status=2)["error"]["code"] == "usage_error"
    assert asked(*dispatch, "-", typed='{"nosuch": 1}', status=2)["error"]["code"] == "invalid_payload"


def test_without_the_applications_code_nothing_is_dispatched(postgres_place: Place) -> None:
    refused = asked("dispatch", "order.pack", "--payload", "-", *postgres_place.options, typed="{}", status=2)
    assert refused["error"]["code"] == "application_required"


def test_store_commands_answer_agents_too(sqlite_place: Place) -> None:
    sqlite_place.rw.dispatch(Pack(1))
    assert asked("migrate", *sqlite_place.options)["result"]["applied"] == []
    assert asked("store", "status", *sqlite_place.options)["result"]["applications"][0]["name"] == "shop"
    drained = asked("store", "admission", "--mode", "drain", *sqlite_place.options)["result"]
    assert drained["applications"][0]["admission"] == "drain"
    refused = asked("dispatch", "order.pack", "--payload", "-", *sqlite_place.options, typed="{}", status=1)
    assert refused["error"]["code"] == "admission_closed"
    active = ("--name", "scheduler", "--application", "shop", *sqlite_place.options)
    assert asked("store", "activate-capability", *active)["result"]["isNew"] is False
    assert asked("store", "reidentify", *sqlite_place.options, status=2)["error"]["code"] == "usage_error"


def test_colours_are_for_terminals_or_by_request(sqlite_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite_place.rw.dispatch(Pack(1))
    listing = ("queues", "list", *sqlite_place.options)
    assert "\x1b[" not in run(*listing).stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1m" in run(*listing).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(*listing).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    script = run("completion", shell).stdout
    assert "_RUNWICK_COMPLETE" in script
    assert asked("completion", shell)["result"]["script"] in script


def test_ctrl_c_ends_a_stream_whole_and_a_closed_pipe_is_no_error(sqlite_place: Place, tmp_path: Path) -> None:
    sqlite_place.rw.dispatch(Pack(1))
    follow = [str(RUNWICK), "--agent", "events", "tail", "--follow", *sqlite_place.options]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (first["stream"], json.loads(out)["stream"], process.returncode) == ("item", "end", 130)
    assert "Traceback" not in err
    follow.remove("--agent")
    with subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        for number in range(3):
            sqlite_place.rw.dispatch(Pack(number))
        assert process.wait(timeout=30) == 1
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
