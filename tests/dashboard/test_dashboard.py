"""What a host meets when it builds the pages."""

import subprocess
import sys

import pytest

from runwick.contracts.errors import ConfigurationError
from runwick.management.dashboard import dashboard
from runwick.management.dashboard.mount import table
from runwick.management.dashboard.places import PAGES
from runwick.management.dashboard.rendering import Rendering
from runwick.management.web.routes import Access


@pytest.mark.parametrize("missing", ["jinja2", "starlette"])
def test_without_the_extra_there_is_one_error_that_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigurationError, match=r"pip install 'runwick\[web\]'") as raised:
        dashboard(None)  # type: ignore[arg-type]
    assert raised.value.code == "extra_missing"


def test_the_library_loads_without_any_of_it() -> None:
    program = (
        "import sys, runwick; runwick.Runwick('x', store='sqlite:///x.db').desk; import runwick.management.dashboard;"
        "sys.exit(any(name in sys.modules for name in ('starlette', 'jinja2', 'uvicorn')))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_the_navigation_leads_to_pages_with_the_rule_that_it_names() -> None:
    rules = {route.path: route.needs for route in table(Rendering("x", "shop", None)) if route.method == "GET"}
    assert {page.path: page.needs for page in PAGES} == {page.path: rules[page.path] for page in PAGES}


def test_only_files_are_open_to_everybody() -> None:
    routes = table(Rendering("x", "shop", None))
    assert [route.path for route in routes if route.needs is Access.OPEN] == ["/static/{digest}/{name}"]
    assert [route.path for route in routes if route.needs is Access.SIGNED_IN] == ["/theme"]
