"""A directory of its own for each test, where it may write an application that is forgotten afterwards."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WriteApplication = Callable[[str], str]
"""From a module's source to its name."""


@pytest.fixture
def write_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteApplication]:
    """Write a module into the current directory, which is the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNWICK_STORE", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = "application_of_the_test"

    def write(source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source)
        return name

    yield write
    sys.modules.pop(name, None)
