"""A shop for each test that changes it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick import Runwick
from runwick.management.http import api
from tests.web.ground import Client, Site, bearer, shop


@pytest.fixture
def rw(tmp_path: Path) -> Iterator[Runwick]:
    rw = shop(tmp_path)
    yield rw
    rw.close()


@pytest.fixture
def site(rw: Runwick) -> Site:
    return Site(rw)


@pytest.fixture
def robot(site: Site) -> Client:
    """A machine client that may do everything."""
    return Client(api(site.management), bearer())
