"""The ``runwick`` group: what it loads, what it lists, and how a refusal looks to people and scripts."""

import importlib
import subprocess
import sys
from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner

from runwick.cli.main import SUMMARIES, main
from runwick.cli.refusals import tell
from runwick.contracts import (
    ConfigurationError,
    InvalidArgument,
    JobNotFound,
    OutcomeUnknown,
    Problem,
    StoreNotInstalled,
    StoreUnavailable,
)
from runwick.version import __version__

LISTS_WHAT_HELP_LOADS = """
import sys
from runwick.cli.main import main
main(["--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_help_loads_click_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", LISTS_WHAT_HELP_LOADS], capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert {name for name in loaded if name.partition(".")[0] == "runwick"} == {
        "runwick",
        "runwick.version",
        "runwick.cli",
        "runwick.cli.commands",
        "runwick.cli.main",
        "runwick.cli.modes",
    }
    assert loaded.isdisjoint(
        {"msgspec", "sqlite3", "asyncio", "psycopg", "redis", "croniter", "psutil", "httpx", "rich"}
    )
    assert all(f"{name} " in ran.stdout for name in SUMMARIES)


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_is_the_first_line_of_its_commands_help(name: str) -> None:
    command = importlib.import_module(f"runwick.cli.{name}").command
    assert isinstance(command, click.Command)
    assert (command.help or "").splitlines()[0] == SUMMARIES[name]


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(word: str) -> None:
    ran = CliRunner().invoke(main, [word])
    assert (ran.exit_code, ran.stdout) == (0, f"runwick {__version__}\n")


def test_an_unknown_command_is_wrong_usage() -> None:
    ran = CliRunner().invoke(main, ["migrat"])
    assert ran.exit_code == 2
    assert "No such command 'migrat'" in ran.stderr


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("types", "--app", "shop"), "--app goes behind a command: runwick types list --app …"),
        (("store", "--mode", "drain"), "--mode goes behind a command: runwick store admission --mode …"),
        (("context", "--url", "x"), "--url goes behind a command: runwick context add --url …"),
        (("jobs", "--state", "failed"), "--state goes behind a command: runwick jobs list --state …"),
        (("--context", "prod", "jobs", "list"), "--context goes behind a command: runwick jobs list --context …"),
        (("--connection-env", "X"), "--connection-env goes behind a command: runwick jobs list --connection-env …"),
        (("types", "--flavour", "x"), "No such option '--flavour'."),
        (("--flavour", "x"), "No such option '--flavour'."),
    ],
)
def test_an_option_in_front_of_its_command_is_told_where_it_goes(typed: Sequence[str], sentence: str) -> None:
    ran = CliRunner().invoke(main, typed, prog_name="runwick")
    assert ran.exit_code == 2
    assert sentence in ran.stderr


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (ConfigurationError([Problem("missing_store", "store", "none is configured.")]), 2),
        (InvalidArgument("invalid_id", "an id is a UUID"), 2),
        (JobNotFound("not_found", "no such job"), 1),
        (StoreNotInstalled("store_not_installed", "there is no store at /srv/a.db"), 1),
        (OutcomeUnknown("outcome_unknown", "the answer was lost"), 3),
        (StoreUnavailable("store_unavailable", "no answer within 5 s"), 4),
        (ZeroDivisionError("a fault of the program"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_refusal_has_its_exit_status(
    failure: Exception, status: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(failure) == status
    shown = capsys.readouterr()
    assert shown.out == ""
    if isinstance(failure, ConfigurationError):
        assert shown.err == "Runwick cannot start: 1 problem.\n  missing_store  store: none is configured.\n"
    else:
        assert shown.err == ("" if status is None else f"{failure}\n")


LISTS_WHAT_A_SUBCOMMAND_LOADS = """
import sys
from runwick.cli.main import main
for name in sys.argv[1:]:
    main([*name.split(), "--help"], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_help_of_a_desks_commands_loads_no_more() -> None:
    names = ["jobs list", "jobs cancel", "jobs reveal-error", "dispatch", "queues list", "capacity set", "events tail"]
    names += [
        "audit list",
        "top",
        "doctor",
        "login",
        "context add",
        "types get",
        "rates list",
        "describe",
        "completion",
    ]
    ran = subprocess.run(
        [sys.executable, "-c", LISTS_WHAT_A_SUBCOMMAND_LOADS, *names], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stderr.split())
    assert loaded.isdisjoint({"msgspec", "httpx", "rich", "asyncio.runners", "sqlite3", "psycopg", "runwick.app"})


def test_shared_options_stand_below_a_commands_own() -> None:
    help_text = CliRunner().invoke(main, ["jobs", "cancel", "--help"]).stdout
    own, _, shared = help_text.partition("Where it works")
    assert "--expected-revision" in own
    assert "--app " in shared
    assert shared.index("--secret-stdin") < shared.index("--agent")


def test_a_missing_extra_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.setenv("RUNWICK_SECRET", "not-a-secret")
    refused = CliRunner().invoke(main, ["jobs", "list", "--url", "https://ops.example.com"])
    assert refused.exit_code == 2
    assert "pip install 'runwick[remote]'" in " ".join(refused.stderr.split())
