"""What a page says when something goes wrong below it, and when there is nothing."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from runwick import ControlOutcomeUnknown, Runwick, StoreUnavailable
from runwick.management.dashboard import dashboard
from runwick.management.desk import Desk
from runwick.management.permissions import Caller
from runwick.management.web import Management, ManagementLimits
from tests.dashboard.serving import COOKIE, CookieScheme, granted

ADDRESS = "http://ops.example"
JOB = "0199c0de-0000-7000-8000-000000000001"
COMMAND = "0199c0de-0000-7000-8000-00000000000a"


class FailingDesk(Desk):
    """Every question and every command ends in the same error, until there is none."""

    error: Exception | None

    async def types(self, caller: Caller) -> Any:
        if self.error is not None:
            raise self.error
        return await super().types(caller)

    async def control(self, *_: Any) -> Any:
        assert self.error is not None
        raise self.error


@pytest.fixture
def rw() -> Iterator[Runwick]:
    rw = Runwick("shop", store="memory://")
    yield rw
    rw.close()


def asked(
    desk: Desk, requests: Sequence[tuple[str, str, dict[str, Any]]], limits: ManagementLimits | None = None
) -> list[httpx.Response]:
    """The answers to an operator's requests, one after the other; a post gets the token of the settings page."""
    pages = dashboard(Management(desk, schemes=[CookieScheme()], grants=granted, limits=limits))

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(pages)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, cookies={COOKIE: "operator"}) as client:
            page = await client.get("/settings")
            token = re.search(r'name="antiforgery" value="([^"]*)"', page.text)
            assert token is not None, page.text
            return [
                await client.request(method, path, data={"antiforgery": token[1], **fields} if fields else None)
                for method, path, fields in requests
            ]

    return asyncio.run(ask())


def failing(rw: Runwick, error: Exception) -> FailingDesk:
    desk = FailingDesk(rw.application, lambda: rw.store, rw.ids, rw.clock)
    desk.error = error
    return desk


def test_what_nobody_expected_tells_a_reference_and_nothing_more(rw: Runwick) -> None:
    (page,) = asked(failing(rw, RuntimeError("postgresql://user:secret@host")), [("GET", "/types", {})])
    assert page.status_code == 500
    assert re.search(r"Reference <bdi>[0-9a-f-]{36}</bdi>", page.text)
    assert "secret" not in page.text
    assert "Traceback" not in page.text


def test_a_store_that_does_not_answer_is_told_as_a_moment(rw: Runwick) -> None:
    (page,) = asked(failing(rw, StoreUnavailable("store_unavailable", "secret")), [("GET", "/types", {})])
    assert page.status_code == 503
    assert page.headers["Retry-After"] == "1"
    assert "<h1>Not now</h1>" in page.text
    assert "secret" not in page.text
    assert "data-retries" in page.text
    assert '<a class="button main" href="/types">Try again</a>' in page.text


def test_a_command_that_the_store_did_not_take_is_not_tried_by_itself(rw: Runwick) -> None:
    fields = {"command": COMMAND, "target": [f"{JOB}:1:1"], "one": "1"}
    desk = failing(rw, StoreUnavailable("store_unavailable", "secret"))
    (page,) = asked(desk, [("POST", "/jobs/cancel", fields)])
    assert page.status_code == 503
    assert "data-retries" not in page.text


def test_an_unknown_outcome_offers_the_same_command_again(rw: Runwick) -> None:
    fields = {"command": COMMAND, "target": [f"{JOB}:1:1"], "one": "1", "reason": "why"}
    desk = failing(rw, ControlOutcomeUnknown("outcome_unknown", "lost", COMMAND))
    (page,) = asked(desk, [("POST", "/jobs/cancel", fields)])
    assert page.status_code == 504
    assert "<h1>Nobody knows yet</h1>" in page.text
    again = re.search(r'<form method="post" action="/jobs/cancel">(.*?)</form>', page.text, re.S)
    assert again is not None
    hidden = dict(re.findall(r'name="([^"]*)" value="([^"]*)"', again[1]))
    assert hidden.pop("antiforgery")
    assert hidden == {"command": COMMAND, "target": f"{JOB}:1:1", "one": "true", "reason": "why"}


def test_too_much_is_answered_with_patience(rw: Runwick) -> None:
    *_, page = asked(rw.desk, [("GET", "/settings", {})] * 3, limits=ManagementLimits(reads_per_minute=3))
    assert page.status_code == 429
    assert int(page.headers["Retry-After"]) > 0
    assert "<h1>One moment</h1>" in page.text


def test_every_page_has_something_to_say_when_there_is_nothing(rw: Runwick) -> None:
    paths = ["/", "/types", "/jobs", "/queues", "/workers", "/pools", "/scopes", "/settings"]
    pages = asked(rw.desk, [("GET", path, {}) for path in paths])
    assert [page.status_code for page in pages] == [200] * len(paths)
    assert "Nothing is wrong." in pages[0].text
    assert all('class="empty"' in page.text or "<table>" in page.text for page in pages)
