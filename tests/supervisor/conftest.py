"""Every test of the supervisor leaves the process as it found it: no child, no descriptor, no flag."""

import ctypes
from collections.abc import Iterator

import psutil
import pytest

from runwick_supervisor import stopping
from tests.supervisor.crew import open_descriptors

_PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    children = {child.pid for child in psutil.Process().children()}
    before = open_descriptors()
    yield
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert [child for child in psutil.Process().children() if child.pid not in children] == []
    assert open_descriptors() - before == set()


@pytest.fixture
def stack_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed has written its stack before, however long it waits for a core. Otherwise that is tried for
    20 ms."""
    monkeypatch.setattr(stopping, "DUMP_LEAD_S", 5.0)
