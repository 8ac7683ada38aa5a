"""``runwick store``: what an operator sees and does, and what is refused."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from runwick.cli.main import main
from runwick.contracts.identity import id_bytes
from tests.cli.applications import SOUND
from tests.cli.conftest import WriteApplication


@pytest.fixture
def app(write_application: WriteApplication) -> str:
    """An application whose store exists, and has not met it yet."""
    app = write_application(SOUND)
    assert run("migrate", "--app", app).exit_code == 0
    return app


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def known(app: str) -> None:
    """Let the store meet the application: it dispatches something."""
    from importlib import import_module

    module = import_module(app)
    module.rw.dispatch(module.MakeThumbnail("a.png"))
    module.rw.close()


def test_the_status_of_a_store_that_nobody_used(app: str, tmp_path: Path) -> None:
    shown = run("store", "status", "--app", app)
    assert shown.exit_code == 0
    assert re.fullmatch(
        rf"store     sqlite {tmp_path}/thumbs\.db\nstore id  [0-9a-f-]{{36}}\nrevision  \d+\n"
        r"no application has used it yet\n",
        shown.stdout,
    )


def test_the_status_names_each_application(app: str) -> None:
    known(app)
    shown = run("store", "status", "--app", app)
    assert re.search(r"application +admission +leases +valid +workers +capabilities\n", shown.stdout)
    assert re.search(r"thumbs +open +0 +0 +0 +rate_admission, scheduler\n", shown.stdout)
    status = json.loads(run("store", "status", "--app", app, "--output", "json").stdout)
    assert len(id_bytes(status["storeId"])) == 16
    assert status["revision"] == status["revisionExpected"]
    assert status["applications"] == [
        {
            "name": "thumbs",
            "admission": "open",
            "capabilities": ["rate_admission", "scheduler"],
            "leases": 0,
            "leasesValid": 0,
            "workers": 0,
        }
    ]


def test_admission_goes_from_mode_to_mode(app: str) -> None:
    known(app)
    for mode in ("drain", "maintenance", "open", "drain", "open"):
        changed = run("store", "admission", "--app", app, "--mode", mode)
        assert (changed.exit_code, changed.stdout) == (0, f"thumbs  {mode}\n")


def test_a_change_that_is_not_legal_is_refused(app: str) -> None:
    known(app)
    refused = run("store", "admission", "--app", app, "--mode", "maintenance")
    assert refused.exit_code == 2
    assert "invalid_admission" in refused.stderr


def test_an_unknown_application_is_refused(app: str) -> None:
    refused = run("store", "admission", "--app", app, "--mode", "drain", "--application", "nobody")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "unknown_application" in refused.stderr


def test_a_capability_is_active_once_and_for_good(app: str) -> None:
    known(app)
    arguments = ("store", "activate-capability", "--app", app, "--name", "scheduler", "--application", "thumbs")
    assert run(*arguments).stdout == "thumbs  scheduler was active already\n"


def test_a_store_of_another_kind_than_named_is_refused(app: str) -> None:
    refused = run("store", "status", "--app", app, "--provider", "postgres")
    assert refused.exit_code == 2
    assert "--provider is postgres, but the URL names a store of the kind sqlite" in refused.stderr


def test_one_store_is_named_in_one_way(app: str) -> None:
    assert run("store", "status").exit_code == 2
    assert run("store", "status", "--app", app, "--connection-stdin").exit_code == 2
