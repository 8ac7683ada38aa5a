"""Who may do what, in full, enumerated from the table of routes: each route with each permission alone and each reach
of it; and each way to sign in with each antiforgery token and each origin, on one route of each kind."""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from runwick import Runwick
from runwick.management.http import api, asked
from runwick.management.http.table import TABLE
from runwick.management.permissions import EVERYTHING, Grant, Permission
from runwick.management.web.routes import Access, Kind, Route
from tests.app.running import fail
from tests.web.ground import Client, Pack, Ship, Site, basic, bearer, change, error_of, shop

REACHES: Final = {"all": None, "own": frozenset({"own"}), "other": frozenset({"other"})}
"""Queues of a grant. What is asked about is in the queue ``own``."""
LISTS: Final = {"/v1/jobs": "jobs", "/v1/queues": "queues", "/v1/events": "events", "/v1/types": "types"}
"""Answers that a reach makes shorter."""
NOWHERE: Final = {"expectedGeneration": 7, "expectedRevision": 77}
"""No target stands like that: whoever may is told so, and nothing ever happens."""


class Scene:
    """One job in each queue, the own one failed."""

    def __init__(self, rw: Runwick) -> None:
        self.site = Site(rw)
        self.app = api(self.site.management)
        self.own = rw.dispatch(Pack(number=7)).job_id
        fail(rw, "no_stock")
        self.other = rw.dispatch(Ship()).job_id
        self.client = Client(self.app, bearer())
        job = self.client.get(f"/v1/jobs/{self.own}").json()
        self.attempt = job["attempts"][0]["attemptId"]

    def path(self, route: Route) -> str:
        """The route's, about what is in the own queue."""
        path = route.path
        for name, value in {
            "job_id": self.own,
            "name": "order.pack",
            "queue": "own",
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
            asked.DispatchChange: [{"name": "order.pack", "payload": {"numbre": 1}, "queue": "own"}],
            asked.RevealChange: [
                {"what": "payload"},
                {"what": "result"},
                {"what": "error", "attemptId": self.attempt},
                {"what": "black_box", "attemptId": self.attempt},
            ],
        }
        return [change(**more) for more in of[route.body]]

    def ask(self, route: Route, body: dict[str, Any], client: Client | None = None, **headers: str) -> Any:
        asker = client or self.client
        if route.method == "GET":
            return asker.get(self.path(route), headers=headers)
        return asker.post(self.path(route), body, headers=headers)

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


def grants_of(permission: Permission, reach: str) -> list[Grant]:
    """The permission alone; nothing where it cannot be narrowed like that."""
    try:
        return [Grant(permission, queues=REACHES[reach])]
    except ValueError:
        return []


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
    if reach == "other" and route.body is asked.DispatchChange:
        return {403}
    if reach == "other" and ("{job_id}" in route.path or "{queue}" in route.path or "{name}" in route.path):
        return {404}
    if route.body is asked.DispatchChange:
        return {400}
    return {200} if route.kind is not Kind.CHANGE else {409}


def within_reach(route: Route, answer: dict[str, Any], reach: str, scene: Scene) -> bool:
    """Whether the answer holds nothing that the reach does not cover."""
    if route.body is asked.ControlsChange:
        [result] = answer["results"]
        return bool(result["code"] == ("not_found" if reach == "other" else "stale_generation"))
    own, other = {"own", "order.pack", scene.own}, {"other", "order.ship", scene.other}
    shown = {text for each in answer[LISTS[route.path]] for text in each.values() if isinstance(text, str)}
    return not shown & {"all": set(), "own": other, "other": own}[reach]


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


PROOFS: Final = ("none", "bad cookie", "bad basic", "bad bearer", "cookie", "basic", "bearer")
TOKENS: Final = ("none", "bad", "another's", "good")
ORIGINS: Final = {
    "none": {},
    "ours": {"origin": "https://ops.example.com", "sec-fetch-site": "same-origin"},
    "foreign": {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    "opaque": {"origin": "null"},
    "told by the browser alone": {"sec-fetch-site": "cross-site"},
}


def proof(scene: Scene, name: str) -> dict[str, str]:
    headers: dict[str, dict[str, str]] = {
        "none": {},
        "bad cookie": {"cookie": scene.site.cookie()[:-2]},
        "bad basic": basic(password="wrong"),
        "bad bearer": {"authorization": "Bearer nobody's"},
        "cookie": {"cookie": scene.site.cookie()},
        "basic": basic(),
        "bearer": bearer(),
    }
    return headers[name]


def token(scene: Scene, name: str, headers: dict[str, str]) -> dict[str, str]:
    if name == "none":
        return {}
    whose = headers if name == "good" else basic("other")
    answer = Client(scene.app, whose).get("/v1/antiforgery").json()
    return {"x-runwick-antiforgery": "bad" if name == "bad" else answer.get("token", "no token without signing in")}


@pytest.mark.parametrize(
    ("method", "path", "served"),
    [("GET", "/v1/jobs", 200), ("POST", "/v1/jobs/{job_id}/cancel", 409), ("POST", "/v1/jobs/{job_id}/reveal", 200)],
)
def test_every_proof_token_and_origin(scene: Scene, method: str, path: str, served: int) -> None:
    route = TABLE.by_path[path][method]
    before = scene.stands()
    for signed_in, given, origin in itertools.product(PROOFS, TOKENS, ORIGINS):
        scene.site.clock.advance_ms(60_001)  # so that bad passwords are not counted together
        headers = proof(scene, signed_in)
        client = Client(scene.app, {**headers, **token(scene, given, headers), **ORIGINS[origin]})
        status = scene.ask(route, scene.bodies(route)[0], client).status_code
        is_meant = signed_in == "bearer" or (given == "good" and origin in ("none", "ours"))
        if signed_in == "none" or signed_in.startswith("bad"):
            assert status == 401, (signed_in, given, origin)
        elif route.kind is Kind.READ or is_meant:
            assert status == served, (signed_in, given, origin)
        else:
            assert status == 403, (signed_in, given, origin)
    assert scene.stands() == before
