"""Which way a list goes through the jobs, and that no page of it looks at more than it may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runwick.contracts.controls import JobTarget
from runwick.contracts.listing import EXAMINED_MAX, JobFilter, Reach, Within
from runwick.contracts.states import LEASED_STATES, TERMINAL_STATES, JobState
from tests.conformance.ground import APPLICATION, BUILD, HIGH, LOW, SEND, Bench, sqlite_bench
from tests.sqlite.recording import recorded

WAITS = frozenset({JobState.PENDING, JobState.RETRYING})
FAILED = frozenset({JobState.FAILED})
MANY = EXAMINED_MAX + 100
LISTS = ("list_all", "list_live", "list_busy", "list_ended", "list_run", "list_runs", "list_tenant", "list_tenants")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = sqlite_bench(tmp_path)
    yield bench
    bench.store.close()


def walked(bench: Bench, within: Within = None, **chosen: Any) -> tuple[set[str], int]:
    """The walks that one page takes, and how many jobs it looks at."""
    with recorded() as steps:
        bench.run(bench.store.jobs(APPLICATION, JobFilter(**chosen), within, None, 50))
    looked_at = [step.parameters for step in steps if step.statement == "list_jobs"]
    places = [len(msgspec.json.decode(parameters[0])) for parameters in looked_at if isinstance(parameters, tuple)]
    return {step.statement for step in steps if step.statement in LISTS}, sum(places)


@pytest.fixture
def few(bench: Bench) -> Bench:
    """A store in which few jobs are live."""
    bench.dispatch(3, lane=HIGH, tenant="north")
    bench.dispatch(3, lane=LOW, kind=SEND)
    return bench


@pytest.fixture
def many(few: Bench) -> Bench:
    """And one in which many are."""
    few.dispatch(MANY, lane=HIGH)
    return few


@pytest.mark.parametrize(
    ("chosen", "walk"),
    [
        ({}, "list_all"),
        ({"code": "x"}, "list_all"),
        ({"states": TERMINAL_STATES}, "list_all"),
        ({"states": frozenset({JobState.SUCCEEDED})}, "list_all"),
        ({"states": FAILED}, "list_ended"),
        ({"states": FAILED, "tenant": "north"}, "list_ended"),
        ({"states": LEASED_STATES}, "list_busy"),
        ({"states": frozenset({JobState.RETRYING}), "queue": "reports"}, "list_busy"),
        ({"queue": "reports"}, "list_runs"),
        ({"name": SEND.name}, "list_run"),
        ({"name": SEND.name, "queue": "reports", "states": FAILED | LEASED_STATES}, "list_run"),
        ({"tenant": "north", "queue": "reports"}, "list_tenant"),
        ({"within": [Reach(tenants=frozenset({"north"}))]}, "list_tenant"),
        ({"within": [Reach(tenants=frozenset({"north"})), Reach(tenants=frozenset({"south"}))]}, "list_tenants"),
        ({"within": [Reach(tenants=frozenset({"north", None}))]}, "list_all"),
        ({"within": [Reach(queues=frozenset({"reports"}))]}, "list_runs"),
        ({"within": [Reach(queues=frozenset({"reports"})), Reach(tenants=frozenset({"north"}))]}, "list_all"),
    ],
)
def test_the_way_goes_by_what_is_asked_for(few: Bench, chosen: dict[str, Any], walk: str) -> None:
    assert walked(few, **chosen)[0] == {walk}


@pytest.mark.parametrize("chosen", [{}, {"queue": "reports"}, {"name": SEND.name}, {"tenant": "north"}])
def test_where_few_jobs_are_live_those_are_walked(few: Bench, chosen: dict[str, Any]) -> None:
    assert walked(few, states=WAITS, **chosen) == ({"list_live"}, 6)


def test_where_many_are_the_rest_of_the_filter_leads(many: Bench) -> None:
    assert walked(many, states=WAITS)[0] == {"list_live"}
    assert walked(many, states=WAITS, name=SEND.name) == ({"list_run"}, 3)
    assert walked(many, states=WAITS, tenant="north") == ({"list_tenant"}, 3)
    assert walked(many, [Reach(tenants=frozenset({"north"}))], states=WAITS) == ({"list_tenant"}, 3)


def test_where_many_are_busy_the_live_ones_are_walked(many: Bench) -> None:
    running = many.claim(lanes=[LOW], free=2).attempts
    assert walked(many, states=LEASED_STATES) == ({"list_busy"}, 2)
    for _ in range(MANY // 100 + 1):
        running += many.claim(lanes=[HIGH], free=100).attempts
    assert len(running) > EXAMINED_MAX
    assert walked(many, states=LEASED_STATES, code="x") == ({"list_busy", "list_live"}, EXAMINED_MAX)


@pytest.mark.parametrize(
    ("chosen", "walk"),
    [
        ({"code": "x"}, "list_all"),
        ({"states": WAITS, "code": "x"}, "list_live"),
        ({"queue": "reports", "code": "x"}, "list_runs"),
        ({"name": BUILD.name, "states": TERMINAL_STATES}, "list_run"),
        ({"tenant": "south", "code": "x"}, "list_tenant"),
    ],
)
def test_no_page_looks_at_more_than_it_may(few: Bench, chosen: dict[str, Any], walk: str) -> None:
    few.dispatch(MANY, tenant="south", lane=HIGH)
    assert walked(few, **chosen) == ({walk}, EXAMINED_MAX)


def test_nor_does_one_of_ends(few: Bench) -> None:
    few.cancel(*(JobTarget(job_id, 1, 1) for job_id in few.dispatch(MANY, lane=HIGH)))
    assert walked(few, states=frozenset({JobState.CANCELLED}), code="x") == ({"list_ended"}, EXAMINED_MAX)


def test_a_first_page_looks_at_little_more_than_it_shows(many: Bench) -> None:
    assert walked(many) == ({"list_all"}, 51)
    assert walked(many, states=WAITS, queue="reports") == ({"list_runs"}, 51)


def test_where_several_applications_are_each_walks_its_own(few: Bench) -> None:
    few.dispatch(60, application="bakery")
    assert walked(few) == ({"list_runs"}, 6)


def test_a_time_is_gone_to_at_once(few: Bench) -> None:
    """However many jobs lie between."""
    early_ms = few.clock.now_ms()
    few.clock.advance_ms(600_000)
    few.dispatch(500, lane=HIGH)
    few.clock.advance_ms(600_000)
    few.dispatch(5, lane=HIGH)
    assert walked(few, created_until_ms=early_ms + 1) == ({"list_all"}, 6)
    assert walked(few, created_from_ms=few.clock.now_ms()) == ({"list_all"}, 5)
    assert walked(few, created_from_ms=few.clock.now_ms() + 600_000) == ({"list_all"}, 0)
    assert walked(few, created_until_ms=0)[1] == 0
    few.cancel(*few.dispatch(1))
    cancelled = frozenset({JobState.CANCELLED})
    assert walked(few, states=cancelled, created_from_ms=early_ms) == ({"list_ended"}, 1)
    assert walked(few, states=cancelled, created_until_ms=early_ms) == ({"list_ended"}, 1)


def test_the_runs_of_a_type_are_found_behind_those_of_busier_ones(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And behind its own backlog, where they ended among the last."""
    monkeypatch.setattr("runwick.stores.sqlite.runs.EXAMINED_MAX", 3)

    def runs() -> list[bytes]:
        return [run.job_id for run in bench.run(bench.store.runs(APPLICATION, SEND.name, None, 10))]

    rare = bench.claimed(kind=SEND)
    bench.succeed(rare)
    for _ in range(4):
        bench.succeed(bench.claimed(kind=BUILD))
    assert runs() == [rare.job_id]
    late = bench.claimed(kind=SEND)
    bench.dispatch(5, kind=SEND)
    bench.succeed(late)
    assert runs() == [late.job_id]
