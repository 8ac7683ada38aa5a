"""Who may do what through the API, in full, enumerated from its table of routes: each route with each permission alone
and each reach of it; and each way to sign in with each antiforgery token and each origin, on one route of each kind.
`tests.web.test_page_matrix` does the same for the pages."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from runwick import Runwick
from runwick.management.http import api, asked
from runwick.management.http.table import TABLE
from runwick.management.permissions import EVERYTHING, Permission
from runwick.management.web.routes import Access, Kind, Route
from tests.app.running import fail
from tests.web.crossing import ORIGINS, PROOFS, REACHES, TENANTS, TOKENS, answered, grants_of, proof, token
from tests.web.ground import GONE, Client, Pack, Ship, Site, bearer, change, error_of, shop

LISTS: Final = {"/v1/jobs": "jobs", "/v1/queues": "queues", "/v1/events": "events", "/v1/types": "types"}
"""Answers that a reach makes shorter."""
NOWHERE: Final = {"expectedGeneration": 7, "expectedRevision": 77}
"""No target stands like that: whoever may is told so, and nothing ever happens."""


class Scene:
    """One job in each queue, each of another tenant, the own one failed."""

    def __init__(self, rw: Runwick) -> None:
        self.site = Site(rw)
        self.app = api(self.site.management)
        self.own = rw.dispatch(Pack(number=7), tenant=TENANTS["own"]).job_id
        fail(rw, "no_stock")
        self.other = rw.dispatch(Ship(), tenant=TENANTS["other"]).job_id
        self.client = Client(self.app, bearer())
        job = self.client.get(f"/v1/jobs/{self.own}").json()
        self.attempt = job["attempts"][0]["attemptId"]

    def path(self, route: Route, *, missing: bool = False) -> str:
        """The route's, about what is in the own queue, or about what is nowhere."""
        path = route.path
        for name, value in {
            "job_id": GONE if missing else self.own,
            "name": "order.none" if missing else "order.pack",
            "queue": "none" if missing else "own",
            "kind": "resource",
            "key:path": "line/7",
        }.items():
            path = path.replace(f"{{{name}}}", value)
        assert "{" not in path, "a parameter that this test does not know"
        return path

    def bodies(self, route: Route) -> list[dict[str, Any]]:
        """What is posted to it; none of it changes anything, but for a reveal's trace."""
        of: dict[type[msgspec.Struct] | None, list[dict[str, Any]]] = {
            None: [{}],
            asked.ControlChange: [NOWHERE],
            asked.ControlsChange: [{"targets": [{"jobId": self.own, **NOWHERE}]}],
            asked.QueueChange: [{"expectedRevision": 77}],
            asked.CapacityChange: [{"capacity": 9, "expectedRevision": 77}],
            asked.DispatchChange: [
                {"name": "order.pack", "payload": {"numbre": 1}, "queue": "own", "tenant": TENANTS["own"]}
            ],
            asked.RevealChange: [
                {"what": "payload"},
                {"what": "result"},
                {"what": "error", "attemptId": self.attempt},
                {"what": "black_box", "attemptId": self.attempt},
            ],
        }
        return [change(**more) for more in of[route.body]]

    def ask(self, route: Route, body: dict[str, Any], client: Client | None = None, *, missing: bool = False) -> Any:
        asker, path = client or self.client, self.path(route, missing=missing)
        return asker.get(path) if route.method == "GET" else asker.post(path, body)

    def stands(self) -> object:
        """All that could have been changed."""
        self.site.grants = EVERYTHING
        paths = (f"/v1/jobs/{self.own}", f"/v1/jobs/{self.other}", "/v1/queues", "/v1/scopes")
        answers = [self.client.get(path).json() for path in paths]
        return [{**answer, "asOf": None} for answer in answers]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    rw = shop(tmp_path_factory.mktemp("shop"))
    yield Scene(rw)
    rw.close()


def is_list(route: Route) -> bool:
    return route.method == "GET" and route.path in LISTS


def expected(route: Route, body: dict[str, Any], permission: Permission, reach: str) -> set[int]:
    """The statuses with which a caller with this grant alone may be answered."""
    if route.needs is Access.SIGNED_IN:
        return {200}
    needed = route.permissions
    if route.body is asked.RevealChange:
        is_error = body["what"] in ("error", "black_box")
        needed = frozenset({Permission.JOBS_READ_ERROR if is_error else Permission.JOBS_READ_PAYLOAD})
    if permission not in needed:
        return {403}
    if route.body is asked.ControlsChange or is_list(route):
        return {200}
    is_hidden = "own" not in REACHES[reach].covers
    if is_hidden and route.body is asked.DispatchChange:
        return {403}
    if is_hidden and ("{job_id}" in route.path or "{queue}" in route.path or "{name}" in route.path):
        return {404}
    if route.body is asked.DispatchChange:
        return {400}
    return {200} if route.kind is not Kind.CHANGE else {409}


def within_reach(route: Route, answer: dict[str, Any], reach: str, scene: Scene) -> bool:
    """Whether the answer holds nothing that the reach does not cover."""
    if route.body is asked.ControlsChange:
        [result] = answer["results"]
        return bool(result["code"] == ("stale_generation" if "own" in REACHES[reach].covers else "not_found"))
    of = {"own": {"own", "order.pack", scene.own}, "other": {"other", "order.ship", scene.other}}
    shown = {text for each in answer[LISTS[route.path]] for text in each.values() if isinstance(text, str)}
    return all(bool(shown & words) is (queue in REACHES[reach].covers) for queue, words in of.items())


def test_every_route_with_every_permission_and_reach(scene: Scene) -> None:
    before, reveals, asked_times = scene.stands(), 0, 0
    for route, permission, reach in itertools.product(TABLE, Permission, REACHES):
        grants = grants_of(permission, reach)
        if not grants:
            continue
        for body in scene.bodies(route):
            scene.site.grants = grants
            response = scene.ask(route, body)
            where = f"{route.method} {route.path} {body.get('what', '')} with {permission} for {reach}"
            assert response.status_code in expected(route, body, permission, reach), where
            asked_times += 1
            reveals += route.kind is Kind.REVEAL and response.status_code == 200
            if response.status_code == 403:
                assert error_of(response)["code"] == "forbidden", where
            if response.status_code == 404:
                twin = scene.ask(route, body, missing=True)
                assert (twin.status_code, twin.headers, twin.content) == (404, response.headers, response.content), (
                    where
                )
            if response.status_code == 200 and (route.body is asked.ControlsChange or is_list(route)):
                assert within_reach(route, response.json(), reach, scene), where
    assert asked_times > len(list(TABLE)) * len(Permission)
    assert scene.stands() == before
    trail = scene.client.get("/v1/audit?limit=100").json()["records"]
    shown = ("payload", "result", "error", "black_box")
    assert {each["action"] for each in trail} == {f"reveal_{what}" for what in shown}
    assert len(trail) == reveals  # each that was shown, and nothing else


def test_without_grants_there_is_nothing_but_signing_in(scene: Scene) -> None:
    scene.site.grants = ()
    for route in TABLE:
        for body in scene.bodies(route):
            assert scene.ask(route, body).status_code == (200 if route.needs is Access.SIGNED_IN else 403)


@pytest.mark.parametrize(
    ("method", "path", "served"),
    [("GET", "/v1/jobs", 200), ("POST", "/v1/jobs/{job_id}/cancel", 409), ("POST", "/v1/jobs/{job_id}/reveal", 200)],
)
def test_every_proof_token_and_origin(scene: Scene, method: str, path: str, served: int) -> None:
    route = TABLE.by_path[path][method]
    before = scene.stands()
    for signed_in, given, origin in itertools.product(PROOFS, TOKENS, ORIGINS):
        scene.site.clock.advance_ms(60_001)  # so that bad passwords are not counted together
        headers = proof(scene.site, signed_in)
        sent = token(scene.app, given, headers)
        guard = {} if sent is None else {"x-runwick-antiforgery": sent}
        client = Client(scene.app, {**headers, **guard, **ORIGINS[origin]})
        status = scene.ask(route, scene.bodies(route)[0], client).status_code
        expected = answered(signed_in, given, origin, served, reads=route.kind is Kind.READ)
        assert status == expected, (signed_in, given, origin)
    assert scene.stands() == before
