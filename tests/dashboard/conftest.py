"""The seeded application, its pages on an address of this machine, and clients that speak to them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from runwick.management.dashboard import dashboard
from runwick.management.web import Management, ManagementLimits
from tests.dashboard.seeding import Seeded, seeded
from tests.dashboard.serving import COOKIE, CookieScheme, granted, served

PLENTY = ManagementLimits(reads_per_minute=100_000, changes_per_minute=10_000, reveals_per_minute=10_000)


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    folder: Path = tmp_path_factory.mktemp("darkroom")
    with seeded(folder) as seed:
        yield seed


@pytest.fixture(scope="package")
def address(shop: Seeded) -> Iterator[str]:
    """Where the pages are."""
    management = Management(shop.rw.desk, schemes=[CookieScheme()], grants=granted, limits=PLENTY)
    with served(dashboard(management, title="Darkroom", sign_out_path="/away")) as url:
        yield url


class Visitor:
    """Somebody signed in, without scripts: links are followed and forms posted as they stand."""

    def __init__(self, address: str, who: str) -> None:
        self._client = httpx.Client(base_url=address, cookies={COOKIE: who}, timeout=20)
        self._address = address

    def get(self, path: str) -> httpx.Response:
        return self._client.get(path)

    def post(self, path: str, **fields: object) -> httpx.Response:
        return self._client.post(path, data=fields)

    def fields(self, path: str, action: str, nth: int = 0) -> dict[str, str]:
        """The hidden fields of the n-th form of a page that posts there."""
        forms = re.findall(r'<form[^>]* method="post" action="([^"]*)"[^>]*>(.*?)</form>', self.get(path).text, re.S)
        inside = [body for target, body in forms if target.endswith(action)][nth]
        return dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', inside))

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def visit(address: str) -> Iterator[Callable[[str], Visitor]]:
    """Signs somebody in."""
    opened: list[Visitor] = []

    def sign_in(who: str) -> Visitor:
        opened.append(Visitor(address, who))
        return opened[-1]

    yield sign_in
    for visitor in opened:
        visitor.close()
