"""The list of jobs for an application's own users."""

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from runwick import ConfigurationError, Runwick
from runwick.management.web.listing import DEFAULT_TENANT, Whose, jobs_router
from tests.ambient import FakeClock
from tests.app.running import fail
from tests.web.ground import Client, Pack, Ship, error_of


def tenant(request: Request) -> Whose:
    name = request.headers.get("x-tenant")
    return DEFAULT_TENANT if name == "-" else name


async def permitted(request: Request) -> bool:
    return request.headers.get("x-role") == "admin"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def admin(rw: Runwick, clock: FakeClock) -> Client:
    app = Starlette(routes=[Mount("/", jobs_router(rw, tenant=tenant, permitted=permitted, clock=clock))])
    return Client(app, {"x-role": "admin", "x-tenant": "acme"})


def ids(page: dict[str, Any]) -> list[str]:
    return [job["jobId"] for job in page["jobs"]]


def test_a_tenant_sees_his_jobs_newest_first_and_never_a_payload(rw: Runwick, admin: Client) -> None:
    first = rw.dispatch(Ship(order="a secret address"), tenant="acme")
    second = rw.dispatch(Pack(), tenant="acme")
    theirs, nobodys = rw.dispatch(Pack(), tenant="other"), rw.dispatch(Pack())
    response = admin.get("/api/jobs")
    assert ids(response.json()) == [second.job_id, first.job_id]
    assert response.json()["cursor"] is None
    assert "secret" not in response.text
    assert response.headers["cache-control"] == "no-store"
    assert ids(admin.get("/api/jobs", headers={"x-tenant": "other"}).json()) == [theirs.job_id]
    assert ids(admin.get("/api/jobs", headers={"x-tenant": "-"}).json()) == [nobodys.job_id]


def test_who_has_no_tenant_sees_nothing(rw: Runwick, admin: Client) -> None:
    rw.dispatch(Pack())
    del admin.headers["x-tenant"]
    response = admin.get("/api/jobs")
    assert (response.status_code, error_of(response)["code"]) == (403, "forbidden")


def test_a_row_says_how_the_job_stands(rw: Runwick, admin: Client) -> None:
    failed = rw.dispatch(Pack(), tenant="acme")
    fail(rw, "no_stock")
    [row] = admin.get("/api/jobs?state=failed").json()["jobs"]
    assert set(row) == {"jobId", "type", "state", "attempts", "createdAt", "nextDueAt", "lastErrorCode"}
    assert (row["jobId"], row["type"], row["state"]) == (failed.job_id, "order.pack", "failed")
    assert (row["attempts"], row["nextDueAt"], row["lastErrorCode"]) == (1, None, "no_stock")
    waiting = rw.dispatch(Pack(), tenant="acme")
    [row] = admin.get("/api/jobs?state=pending").json()["jobs"]
    assert (row["jobId"], row["attempts"], row["nextDueAt"] is None) == (waiting.job_id, 0, False)


@pytest.mark.parametrize("query", ["state=gone", "state=", "state=<script>", "tenant=other", "limit=0", "cursor=x"])
def test_what_it_does_not_know_is_refused(admin: Client, query: str) -> None:
    assert admin.get(f"/api/jobs?{query}").status_code == 400


def test_who_may_not_is_told_nothing(rw: Runwick, admin: Client) -> None:
    rw.dispatch(Pack(), tenant="acme")
    response = admin.get("/api/jobs?state=gone", headers={"x-role": "user"})
    assert (response.status_code, error_of(response)["code"]) == (403, "forbidden")


def test_it_is_paged_with_cursors_of_that_list_alone(rw: Runwick, admin: Client, clock: FakeClock) -> None:
    jobs = [rw.dispatch(Pack(number=number), tenant="acme").job_id for number in range(5)]
    rw.dispatch(Pack(), tenant="other")
    page = admin.get("/api/jobs?limit=2").json()
    walked = ids(page)
    first = page["cursor"]
    while page["cursor"] is not None:
        page = admin.get(f"/api/jobs?limit=2&cursor={page['cursor']}").json()
        walked += ids(page)
    assert walked == jobs[::-1]
    assert admin.get(f"/api/jobs?cursor={first}", headers={"x-tenant": "other"}).status_code == 400
    assert admin.get(f"/api/jobs?state=pending&cursor={first}").status_code == 400
    clock.advance_ms(3_600_000)
    response = admin.get(f"/api/jobs?cursor={first}")
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_cursor")


def test_a_failing_store_is_no_traceback(rw: Runwick, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*given: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(rw.desk, "jobs", fail)
    app = jobs_router(rw.desk, tenant=tenant, permitted=permitted)
    response = Client(app, {"x-role": "admin", "x-tenant": "acme"}).get("/api/jobs")
    assert (response.status_code, error_of(response)["code"]) == (500, "internal_error")
    assert "secret" not in response.text


def test_a_short_key_is_refused(rw: Runwick) -> None:
    with pytest.raises(ConfigurationError, match="invalid_management"):
        jobs_router(rw, tenant=tenant, permitted=permitted, signing_key=b"short")
