"""Who may do what through the pages, in full, enumerated from their table of routes: each route, in every way in which
it can be meant, with each permission alone and each reach of it; and with each way to sign in, each antiforgery token,
in the form or the header, and each origin.

Whatever is refused leaves every row of the store as it was, and whatever is hidden is answered as what is missing.
"""

import asyncio
import contextlib
import itertools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import httpx
import pytest

from runwick.management.dashboard import dashboard
from runwick.management.dashboard.mount import table
from runwick.management.http import api
from runwick.management.permissions import EVERYTHING, Permission
from runwick.management.web.routes import Access, Kind, Route
from tests.web.crossing import (
    ORIGINS,
    PROOFS,
    REACHES,
    TENANTS,
    TOKENS,
    Reach,
    answered,
    grants_of,
    proof,
    token,
)
from tests.web.depot import NAMES, PRIVATE, Depot
from tests.web.ground import Client, Site, bearer
from tests.web.page_asks import RENDERING, Ask, asks, instead, missing_of

ROUTES: Final = tuple(table(RENDERING))


class Window:
    """The pages over a depot, and a caller whose grants are changed."""

    def __init__(self, depot: Depot) -> None:
        self.depot = depot
        self.site = Site(depot.rw)
        self.pages = dashboard(self.site.management, title="Depot")
        self.api = api(self.site.management)
        self.asks = asks(depot)
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.close()

    def answer(
        self, route: Route, ask: Ask, headers: Mapping[str, str], more: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """One request."""
        command = {} if ask.needs is Access.SIGNED_IN else {"command": str(uuid.uuid4())}
        form = {"data": {**ask.fields, **command, **(more or {})}} if route.method == "POST" else {}
        return self._runner.run(Client(self.pages, headers).ask_async(route.method, ask.path, **form))


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    depot = Depot(tmp_path_factory.mktemp("depot"))
    window = Window(depot)
    yield window
    window.close()
    depot.close()


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_every_route_has_the_rule_that_stands_here(window: Window) -> None:
    assert {(route.method, route.path) for route in ROUTES} == set(window.asks)
    for route in ROUTES:
        needs = {ask.needs for ask in window.asks[route.method, route.path]}
        assert needs == (route.permissions or {route.needs}), name_of(route)


def status_of(ask: Ask, permission: Permission | None, covers: frozenset[str]) -> int:
    """Of the answer to a caller who has this permission alone."""
    if isinstance(ask.needs, Permission) and permission is not ask.needs:
        return 403
    return 404 if ask.about and not ask.each and ask.of not in covers else ask.served


def bare(ask: Ask, response: httpx.Response) -> str:
    """The page without what the caller named himself, and without tokens, which no two pages share."""
    text = re.sub(r'name="(antiforgery|back|command)" value="[^"]*"', "", response.text)
    targets = ask.fields.get("target", ())
    posted = [target.partition(":")[0] for target in ([targets] if isinstance(targets, str) else targets)]
    for word in [*posted, *([ask.about, missing_of(ask)] if ask.about else [])]:
        text = text.replace(word, "*").replace(f"{word[:8]}…{word[-4:]}", "*")
    return text


def words_of(depot: Depot, queue: str) -> dict[str, set[str]]:
    """What tells of a queue and of its jobs."""
    return {
        "queues": {f"<bdi>{queue}</bdi>", f'/queues/{queue}"', f'value="{queue}"'},
        "types": {NAMES[queue]},
        "jobs": {*depot.jobs[queue].values(), *depot.attempts[queue].values(), f"<bdi>{TENANTS[queue]}</bdi>"},
    }


def may_know(permission: Permission | None, covers: bool) -> set[str]:
    """Of a queue, what a caller with this permission alone may be told beside what he names himself."""
    match permission:
        case Permission.JOBS_READ:
            return {"queues", "types", "jobs"} if covers else set()
        case Permission.QUEUES_READ:
            return {"queues"} if covers else set()
        case Permission.CAPACITY_READ:
            return {"queues"}
        case Permission.AUDIT_READ:
            return {"jobs"}
    return set()


def listed(depot: Depot, path: str, queue: str) -> set[str]:
    """What a list must tell of a queue that is within reach."""
    of = {"/types": {NAMES[queue]}, "/queues": {f"<bdi>{queue}</bdi>"}, "/jobs": {*depot.jobs[queue].values()}}
    return of.get(path, set())


def check_told(depot: Depot, ask: Ask, text: str, permission: Permission | None, covers: frozenset[str]) -> None:
    """A page tells nothing that the caller may not know; a list tells the rest."""
    for queue in NAMES:
        known = may_know(permission, queue in covers)
        for kind, words in words_of(depot, queue).items():
            assert kind in known or not any(word in text for word in words), (kind, queue)
        if permission is ask.needs and queue in covers:
            assert all(word in text for word in listed(depot, ask.path, queue)), queue


def check_counted(text: str, reach: Reach) -> None:
    """The overview counts what is within reach, and what waits in a queue only for whoever may see all of its jobs."""
    counted = re.search(r'<dt>Running</dt>\s*<dd class="value">(\d+)</dd>', text)
    waiting = re.search(r"(\d+) due\b", text)
    assert counted is not None
    assert waiting is not None
    assert int(counted[1]) == len(reach.covers)
    assert int(waiting[1]) == (0 if "tenants" in reach.narrowed else len(reach.covers))


@contextlib.contextmanager
def prepared(depot: Depot, ask: Ask) -> Iterator[Callable[[], None]]:
    """The store as it must stand for this; what it answers puts it back to that, and at last it is as it was."""
    with depot.put_back():
        if ask.prepared:
            depot.pause()
        with depot.put_back() as back:
            yield back


def check(window: Window, route: Route, ask: Ask, permission: Permission | None, reach: Reach) -> bool:
    """One request of a machine with this permission alone; answers whether it has changed the store."""
    depot, before, covers = window.depot, window.depot.stands(), reach.covers
    response = window.answer(route, ask, bearer())
    status = status_of(ask, permission, covers)
    assert response.status_code == status, f"{name_of(route)} with {permission} for {reach}"
    is_served = status == ask.served
    if is_served and ask.each:
        done = ["done" if queue in covers else "not_found" for queue in ask.each]
        assert re.findall(r'data-answer="([^"]*)"', response.text) == done
    assert (ask.shows in response.text) or not is_served
    assert (PRIVATE in response.text) is (is_served and ask.shows == PRIVATE)
    check_told(depot, ask, bare(ask, response), permission, covers)
    if ask.path == "/" and is_served:
        check_counted(response.text, reach)
    is_hidden = ask.of not in covers or not is_served
    if ask.about and is_hidden:
        twin = window.answer(route, instead(ask), bearer())
        assert (response.status_code, response.headers) == (twin.status_code, twin.headers)
        assert bare(ask, response) == bare(ask, twin)
    changes = route.kind is not Kind.READ and isinstance(ask.needs, Permission) and is_served
    changes = changes and (not ask.each or bool(covers & {*ask.each}))
    assert (depot.stands() != before) is changes
    return changes


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_with_every_permission_and_reach(window: Window, route: Route) -> None:
    changed = 0
    for ask in window.asks[route.method, route.path]:
        with prepared(window.depot, ask) as back:
            for permission, reach in itertools.product(Permission, REACHES):
                if not (grants := grants_of(permission, reach)):
                    continue
                window.site.grants = grants
                if check(window, route, ask, permission, REACHES[reach]):
                    changed += 1
                    back()
    assert (changed > 0) is (route.kind is not Kind.READ and bool(route.permissions))


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_without_grants_there_is_nothing(window: Window, route: Route) -> None:
    window.site.grants = ()
    for ask in window.asks[route.method, route.path]:
        assert not check(window, route, ask, None, Reach({}, frozenset()))


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_with_every_proof_token_and_origin(window: Window, route: Route) -> None:
    ask, *_ = window.asks[route.method, route.path]
    window.site.grants = EVERYTHING
    ways = ("field", "header") if route.method == "POST" else ("header",)
    with prepared(window.depot, ask) as back:
        before = window.depot.stands()
        for signed_in, given in itertools.product(PROOFS, TOKENS):
            headers = proof(window.site, signed_in)
            sent = token(window.api, given, headers)
            for origin, way in itertools.product(ORIGINS, ways):
                window.site.clock.advance_ms(60_001)  # so that bad passwords are not counted together
                field = {"antiforgery": sent} if sent is not None and way == "field" else {}
                header = {"x-runwick-antiforgery": sent} if sent is not None and way == "header" else {}
                response = window.answer(route, ask, {**headers, **header, **ORIGINS[origin]}, field)
                expected = answered(signed_in, given, origin, ask.served, reads=route.kind is Kind.READ)
                if ask.needs is Access.OPEN:
                    expected = ask.served
                where = (signed_in, given, origin, way)
                assert response.status_code == expected, where
                is_done = expected == ask.served and route.kind is not Kind.READ and bool(route.permissions)
                assert (window.depot.stands() != before) is is_done, where
                assert (PRIVATE in response.text) is (is_done and ask.shows == PRIVATE), where
                if is_done:
                    back()
