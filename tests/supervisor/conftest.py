"""Every test of the supervisor leaves the process as it found it: no child, no descriptor, no flag."""

import ctypes
from collections.abc import Iterator

import psutil
import pytest

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
