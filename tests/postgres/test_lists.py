"""Lists: a walk goes along its index, sorts nothing, and ends where its page is full or it has looked at enough."""

from collections.abc import Iterator
from typing import Final

import pytest

from runwick.contracts.controls import ControlAction
from runwick.contracts.listing import COUNTED_MAX, EXAMINED_MAX, AuditFilter, JobFilter, JobPage, Reach, Within
from runwick.contracts.revealing import Secret
from runwick.contracts.states import JobState
from scripts.servers.postgres import PostgresServer
from tests.conformance.ground import APPLICATION, BUILD, KINDS, Bench
from tests.postgres.asking import execute
from tests.postgres.crowds import FAR_MS, LANES, crowd, server_time_bench
from tests.postgres.explained import Log, Plan, explain_all

LIMIT: Final = 50
LEASED: Final = 10_000
"""Jobs of the crowd, which lists of leased ones read in full."""
FEW: Final = 900
"""Pages that a full page of a list may look at."""

TENANTS_AND_FAILURES: Final = """
UPDATE runwick.job SET tenant = 'acme', kind = kind.id
FROM runwick.kind AS kind
WHERE job.id BETWEEN public.id_of(1) AND public.id_of(6000) AND kind.name = 'reports.build';
INSERT INTO runwick.closing (job, generation, application, revision, executions, ended_at_ms, state, code)
SELECT public.id_of(number), 2, 1, 5, 1, 0, CASE number % 2 WHEN 0 THEN 'failed' ELSE 'cancelled' END, 'poison_job'
FROM generate_series(200001, 212000) AS number;
"""
WALKS: Final = {
    "all": (JobFilter(), None, "jobs", "job_pkey"),
    "queue": (JobFilter(queue="reports"), None, "jobs_of", "job_lane"),
    "reach": (JobFilter(), [Reach(queues=frozenset({"reports"}))], "jobs_of", "job_lane"),
    "type": (JobFilter(name=BUILD.name), None, "jobs_of", "job_kind"),
    "tenant": (JobFilter(tenant="acme"), None, "jobs_of", "job_tenant"),
    "live": (JobFilter(states=frozenset({JobState.PENDING, JobState.RUNNING})), None, "jobs_live", "hot_pkey"),
    "failed": (JobFilter(states=frozenset({JobState.FAILED})), None, "jobs_ended", "closing_unsuccessful"),
    "leased": (JobFilter(states=frozenset({JobState.RUNNING})), None, "jobs_leased", "claim_check"),
}


@pytest.fixture(params=["planned when filled", "planned when analyzed", "planned when empty"])
def bench(request: pytest.FixtureRequest, database: str) -> Iterator[Bench]:
    """A store in long use. A plan lasts as long as its connection, whatever comes into the tables meanwhile."""
    explain_all(database)
    bench = server_time_bench(database)
    if request.param == "planned when empty":
        bench.run(bench.store.register(APPLICATION, LANES, KINDS))
        bench.dispatch(3, deadline_ms=FAR_MS)
        for chosen, within, _, _ in WALKS.values():
            listed(bench, chosen, within)
        look_at_the_rest(bench)
    crowd(database)
    execute(database, TENANTS_AND_FAILURES)
    if request.param == "planned when analyzed":
        execute(database, "ANALYZE")
    yield bench
    bench.store.close()


def listed(bench: Bench, chosen: JobFilter, within: Within) -> JobPage:
    return bench.run(bench.store.jobs(APPLICATION, chosen, within, None, LIMIT))


def look_at_the_rest(bench: Bench) -> None:
    """What operators look through besides."""
    store, run = bench.store, bench.run
    (job_id,) = bench.dispatch(deadline_ms=FAR_MS)
    bench.control(bench.order(ControlAction.CANCEL, job_id))
    for what in (Secret.PAYLOAD, Secret.RESULT):
        assert run(store.reveal(bench.showing(what, job_id))) is not None
    run(store.runs(APPLICATION, None, None, LIMIT))
    run(store.runs(APPLICATION, BUILD.name, None, LIMIT))
    assert [backlog.queue for backlog in run(store.backlogs(APPLICATION))] == ["reports"]
    assert BUILD.name in run(store.names(APPLICATION))
    assert len(run(store.audited(APPLICATION, AuditFilter(), None, LIMIT)).records) >= 3
    assert len(run(store.audited(APPLICATION, AuditFilter(job_id=job_id), None, LIMIT)).records) == 3


def the_list(log: Log) -> Plan:
    (plan,) = [plan for plan in log.plans() if plan.statement.startswith("jobs")]
    return plan


def goes_by_index(plan: Plan) -> None:
    for table in ("attempt", "audit", "claim", "closing", "command", "detail", "hot", "job", "look"):
        assert {node.kind for node in plan.on(table)} <= {"Index Scan", "Index Only Scan"}, (plan.statement, table)
    assert not {node.kind for node in plan.nodes} & {"Hash Join", "Merge Join", "Materialize"}, plan.statement


def test_every_walk_goes_along_its_own_index_until_its_page_is_full(bench: Bench, postgres: PostgresServer) -> None:
    log = Log(postgres)
    for name, (chosen, within, statement, index) in WALKS.items():
        assert len(listed(bench, chosen, within).jobs) == LIMIT, name
        plan = the_list(log)
        assert plan.statement == statement, name
        goes_by_index(plan)
        walked = [node for node in plan.nodes if node.by == index]
        assert walked, (name, plan.nodes)
        if name != "leased":
            assert sum(node.rows + node.removed for node in walked) <= 3 * LIMIT, (name, walked)
            assert plan.pages <= FEW, name
            assert not any(node.kind == "Sort" for node in plan.nodes), name


def test_a_walk_that_finds_nothing_ends_when_it_has_looked_at_enough(bench: Bench, postgres: PostgresServer) -> None:
    log = Log(postgres)
    for name, (chosen, within, _, index) in WALKS.items():
        values = {field: getattr(chosen, field) for field in chosen.__struct_fields__}
        page = listed(bench, JobFilter(**{**values, "code": "nobodys"}), within)
        plan = the_list(log)
        assert (list(page.jobs), page.cursor is None) == ([], False), name
        goes_by_index(plan)
        walked = sum(node.rows + node.removed for node in plan.nodes if node.by == index)
        assert walked <= 2 * EXAMINED_MAX + 3, (
            name
        )  # of live ones, twice each: how it stands is looked up there as well


def test_the_rest_goes_by_index_as_well(bench: Bench, postgres: PostgresServer) -> None:
    log = Log(postgres)
    look_at_the_rest(bench)
    plans = [plan for plan in log.plans() if plan.statement in EXPECTED]
    assert {plan.statement for plan in plans} == EXPECTED
    for plan in plans:
        goes_by_index(plan)
        if plan.statement == "backlogs":
            counted = [node for node in plan.on("hot") if node.by == "hot_ready" and node.kind == "Index Only Scan"]
            assert counted
            assert all(node.rows <= COUNTED_MAX + LEASED + LIMIT for node in counted)
        else:
            # A type's last jobs may all be such that have not run.
            assert plan.pages <= (4 * EXAMINED_MAX if plan.statement == "runs_of" else 2 * FEW), plan


EXPECTED: Final = {"runs", "runs_of", "backlogs", "used_names", "audited", "reveal"}
