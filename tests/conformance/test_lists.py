"""Lists of jobs: what a filter chooses, in one order, each job once, whatever happens between two pages."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.listing import EXAMINED_MAX, AuditFilter, JobFilter, JobPage, Reach, Within
from runwick.contracts.states import LEASED_STATES, TERMINAL_STATES, JobState
from tests.conformance.crowd import KINDS, LANES, Crowd, expected, gathered, newest_first, pairs
from tests.conformance.ground import APPLICATION, BUILD, FAILURE, HIGH, LOW, MEDIUM, SEND, Bench
from tests.conformance.test_identity import reidentify

FAILED = frozenset({JobState.FAILED})
WAITS = frozenset({JobState.PENDING, JobState.RETRYING})
QUEUES = sorted({lane.queue for lane in LANES} | {"nobodys"})
NAMES = sorted({kind.name for kind in KINDS} | {"nobodys"})
CODES = ["poison_job", "executions_exhausted", "stop", "cancel_requested", "handler_failed", "nobodys"]


@pytest.fixture
def crowd(bench: Bench) -> Crowd:
    return gathered(bench)


def page(bench: Bench, chosen: JobFilter, after: str | None = None, limit: int = 100, within: Within = None) -> JobPage:
    return bench.run(bench.store.jobs(APPLICATION, chosen, within, after, limit))


def ids(jobs: JobPage) -> list[bytes]:
    return [job.job_id for job in jobs.jobs]


def failed(bench: Bench, attempt: Attempt) -> bytes:
    bench.settle(attempt, FAILURE, JobState.FAILED, code="poison_job")
    return attempt.job_id


def filters(begun_at_ms: int) -> st.SearchStrategy[JobFilter]:
    def some(values: list[str]) -> st.SearchStrategy[str | None]:
        return st.none() | st.sampled_from(values)

    moment = st.none() | st.integers(begun_at_ms, begun_at_ms + 120)
    return st.builds(
        JobFilter,
        states=st.none() | st.frozensets(st.sampled_from(list(JobState)), max_size=4),
        queue=some(QUEUES),
        name=some(NAMES),
        tenant=some(["north", "south", "nobodys"]),
        code=some(CODES),
        created_from_ms=moment,
        created_until_ms=moment,
    )


def reaches() -> st.SearchStrategy[Within]:
    queues = st.none() | st.frozensets(st.sampled_from(QUEUES), max_size=2)
    tenants = st.none() | st.frozensets(st.sampled_from([None, "north", "south"]), max_size=2)
    return st.none() | st.lists(st.builds(Reach, queues=queues, tenants=tenants), max_size=2)


def test_a_crowd_has_everything(bench: Bench, crowd: Crowd) -> None:
    """Otherwise the tests below would say little."""
    jobs = newest_first(bench, crowd)
    assert {job.state for job in jobs} == set(JobState)
    assert len({job.tenant for job in jobs}) == 3
    assert {job.code for job in jobs} >= {None, "poison_job", "executions_exhausted", "stop"}
    assert any(job.generation > 1 and job.state is JobState.FAILED for job in jobs)
    assert any(job.cancel_requested_at_ms is not None for job in jobs)
    assert any(job.begun_at_ms is not None for job in jobs)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_without_a_filter_every_job_is_there_once_the_latest_first(bench: Bench, crowd: Crowd, limit: int) -> None:
    assert bench.listed(limit=limit) == newest_first(bench, crowd)


def test_every_choice_of_two_states(bench: Bench, crowd: Crowd) -> None:
    everything = newest_first(bench, crowd)
    for states in pairs(2):
        chosen = JobFilter(states=frozenset(states))
        assert bench.listed(chosen, limit=3) == expected(bench, everything, chosen, None), states


def test_filters_alone_and_together(bench: Bench, crowd: Crowd) -> None:
    """Against reading every job by itself."""
    everything = newest_first(bench, crowd)

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(filters(crowd.begun_at_ms), reaches(), st.sampled_from([2, 50]))
    def check(chosen: JobFilter, within: Within, limit: int) -> None:
        assert bench.listed(chosen, within, limit) == expected(bench, everything, chosen, within)

    check()


def test_every_reach_alone_and_with_another(bench: Bench, crowd: Crowd) -> None:
    everything = newest_first(bench, crowd)
    some = [
        Reach(queues=queues, tenants=tenants)
        for queues in (None, frozenset({"post"}), frozenset({"post", "reports"}))
        for tenants in (None, frozenset({None}), frozenset({"north"}), frozenset({"south", "north"}))
    ]
    for within in ([one, other] for one in some for other in (one, some[5], some[3])):
        assert bench.listed(within=within, limit=7) == expected(bench, everything, JobFilter(), within), within
        chosen = JobFilter(states=FAILED)
        assert bench.listed(chosen, within) == expected(bench, everything, chosen, within), within


def test_what_a_job_waited_for_is_not_why_it_runs(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.retry(attempt, delay_ms=0)
    chosen = JobFilter(code="handler_failed")
    assert [job.code for job in bench.listed(chosen)] == ["handler_failed"]
    assert len(bench.claim().attempts) == 1
    assert bench.listed(chosen) == []
    assert [job.code for job in bench.listed()] == [None]


def test_who_may_see_nothing_sees_nothing(bench: Bench, crowd: Crowd) -> None:
    assert len(crowd.job_ids) == 60
    for within in ([], [Reach(queues=frozenset())], [Reach(tenants=frozenset())], [Reach(queues=frozenset({"x"}))]):
        for chosen in (JobFilter(), JobFilter(states=FAILED), JobFilter(states=WAITS), JobFilter(tenant="north")):
            assert page(bench, chosen, within=within) == JobPage([], None)


def test_what_one_may_not_see_takes_no_place_on_a_page(bench: Bench) -> None:
    for _ in range(10):
        bench.dispatch(tenant="north")
        bench.dispatch(9, tenant="south")
        bench.dispatch(9)
    within = [Reach(tenants=frozenset({"north"}))]
    first = page(bench, JobFilter(), limit=8, within=within)
    second = page(bench, JobFilter(), after=first.cursor, limit=8, within=within)
    assert [len(first.jobs), len(second.jobs)] == [8, 2]
    assert second.cursor is None
    assert {job.tenant for job in (*first.jobs, *second.jobs)} == {"north"}


def test_another_application_lists_its_own(bench: Bench, crowd: Crowd) -> None:
    theirs = bench.run(bench.store.jobs("bakery", JobFilter(), None, None, 100))
    assert len(theirs.jobs) == len(crowd.job_ids)
    assert not set(ids(theirs)) & set(crowd.job_ids)
    for chosen in (JobFilter(), JobFilter(states=FAILED), JobFilter(tenant="north"), JobFilter(queue=HIGH.queue)):
        nothing = bench.run(bench.store.jobs("yard", chosen, None, None, 100))
        assert nothing == JobPage([], None)


def test_the_last_page_says_so(bench: Bench) -> None:
    job_ids = bench.dispatch(6)
    first = page(bench, JobFilter(), limit=3)
    assert first.cursor is not None
    assert page(bench, JobFilter(), after=first.cursor, limit=3).cursor is None
    assert page(bench, JobFilter(), limit=6).cursor is None
    assert ids(page(bench, JobFilter(), limit=6)) == job_ids[::-1]


def test_an_end_that_a_retry_undid_is_not_how_the_job_stands(bench: Bench) -> None:
    first, second = bench.claimed(), bench.claimed()
    failed(bench, first), failed(bench, second)
    chosen = JobFilter(states=FAILED)
    assert ids(page(bench, chosen)) == [second.job_id, first.job_id]
    bench.control(bench.order(ControlAction.RETRY, first.job_id, second.job_id))
    assert ids(page(bench, chosen)) == []
    (again,) = bench.claim(free=1).attempts
    failed(bench, again)
    assert ids(page(bench, chosen)) == [again.job_id]
    (rest,) = {first.job_id, second.job_id} - {again.job_id}
    bench.cancel(rest)
    assert ids(page(bench, JobFilter(states=frozenset({JobState.FAILED, JobState.CANCELLED})))) == [
        second.job_id,
        first.job_id,
    ]


def walked(bench: Bench, chosen: JobFilter, between: Callable[[], object]) -> list[bytes]:
    """Ids of all pages of three, with something done between each two."""
    found: list[bytes] = []
    after = None
    while True:
        found_here = page(bench, chosen, after, limit=3)
        found += ids(found_here)
        if (after := found_here.cursor) is None:
            return found
        between()


def test_jobs_that_come_and_end_meanwhile_move_no_other(bench: Bench) -> None:
    standing = bench.dispatch(10, lane=HIGH)

    def between() -> None:
        bench.dispatch(2, lane=HIGH)
        for attempt in bench.claim(lanes=[HIGH], free=2).attempts:
            bench.succeed(attempt)

    found = walked(bench, JobFilter(), between)
    assert found == standing[::-1]
    found = walked(bench, JobFilter(queue=HIGH.queue), between)
    assert len(set(found)) == len(found)
    assert set(standing) < set(found)


def test_jobs_that_leave_the_list_meanwhile_are_met_at_most_once(bench: Bench) -> None:
    job_ids = bench.dispatch(12)
    ending = iter(job_ids)

    def between() -> None:
        """The earliest created end, which the walk has not met yet."""
        bench.cancel(next(ending))

    found = walked(bench, JobFilter(states=frozenset({JobState.PENDING})), between)
    gone = [job_id for job_id in job_ids if job_id not in found]
    assert found == [job_id for job_id in reversed(job_ids) if job_id not in gone]
    assert gone == job_ids[: len(gone)]
    assert 1 <= len(gone) <= 4


def test_ends_that_come_and_are_undone_meanwhile_move_no_other(bench: Bench) -> None:
    standing = [failed(bench, bench.claimed()) for _ in range(10)]
    undone = iter([standing[8], standing[0], standing[3], standing[2]])
    back: list[bytes] = []

    def between() -> None:
        """One more fails; one that had failed is retried, and fails anew: in front of where the walk is."""
        failed(bench, bench.claimed())
        back.append(next(undone))
        bench.control(bench.order(ControlAction.RETRY, back[-1]))
        failed(bench, bench.claim().attempts[0])

    found = walked(bench, JobFilter(states=FAILED), between)
    assert len(set(found)) == len(found)
    assert [job_id for job_id in found if job_id not in back] == [
        job_id for job_id in reversed(standing) if job_id not in back
    ]
    assert set(found) <= set(standing)


@pytest.mark.parametrize(
    "chosen", [JobFilter(code="nobodys"), JobFilter(states=frozenset({JobState.PENDING}), code="nobodys")]
)
def test_a_page_that_has_looked_at_enough_ends_though_more_follows(bench: Bench, chosen: JobFilter) -> None:
    bench.dispatch(EXAMINED_MAX + 50)
    first = page(bench, chosen)
    assert list(first.jobs) == []
    assert first.cursor is not None
    assert page(bench, chosen, first.cursor).cursor != first.cursor
    assert bench.listed(chosen) == []


def test_what_is_far_behind_others_is_found_by_going_on(bench: Bench) -> None:
    (rare,) = bench.dispatch(tenant="north", lane=LOW, kind=SEND, payload=b"7")
    bench.dispatch(EXAMINED_MAX + 50, lane=HIGH, kind=BUILD)
    bench.cancel(rare)
    for chosen in (
        JobFilter(code="cancel_requested"),
        JobFilter(name=SEND.name),
        JobFilter(tenant="north"),
        JobFilter(states=TERMINAL_STATES),
        JobFilter(queue=LOW.queue, states=frozenset({JobState.CANCELLED})),
    ):
        assert [job.job_id for job in bench.listed(chosen)] == [rare], chosen
    within = [Reach(tenants=frozenset({"north", "south"}))]
    assert [job.job_id for job in bench.listed(within=within)] == [rare]


def test_times_far_back_and_just_now(bench: Bench) -> None:
    early = bench.dispatch(3)
    early_ms = bench.clock.now_ms()
    bench.clock.advance_ms(600_000)
    bench.dispatch(20)
    bench.clock.advance_ms(600_000)
    late_ms = bench.clock.now_ms()
    late = bench.dispatch(3)
    assert [job.job_id for job in bench.listed(JobFilter(created_until_ms=early_ms + 1), limit=2)] == early[::-1]
    assert [job.job_id for job in bench.listed(JobFilter(created_from_ms=late_ms), limit=2)] == late[::-1]
    between = JobFilter(created_from_ms=early_ms + 1, created_until_ms=late_ms)
    assert len(bench.listed(between, limit=7)) == 20
    assert bench.listed(JobFilter(created_from_ms=late_ms, created_until_ms=early_ms)) == []
    bench.cancel(early[1])
    cancelled = frozenset({JobState.CANCELLED})
    assert len(bench.listed(JobFilter(states=cancelled, created_until_ms=early_ms + 1))) == 1
    assert bench.listed(JobFilter(states=cancelled, created_from_ms=early_ms + 1)) == []


def test_a_cursor_of_another_list_is_refused(bench: Bench) -> None:
    for _ in range(3):
        failed(bench, bench.claimed())
    bench.cancel(*bench.dispatch(3))
    bench.dispatch(3)
    cursors = {
        chosen: page(bench, chosen, limit=1).cursor
        for chosen in (
            JobFilter(),
            JobFilter(states=FAILED),
            JobFilter(states=TERMINAL_STATES),
            JobFilter(states=WAITS),
            JobFilter(queue=HIGH.queue),
            JobFilter(created_from_ms=1),
        )
    }
    strange = [
        bench.run(bench.store.audited(APPLICATION, AuditFilter(), None, 1)).cursor,
        bench.run(bench.store.events(APPLICATION, None, 1)).cursor,
    ]
    for chosen, own in cursors.items():
        assert own is not None
        page(bench, chosen, own)
        for cursor in (*strange, *(other for other in cursors.values() if other != own)):
            with pytest.raises(InvalidArgument, match="is no cursor of this store") as refused:
                page(bench, chosen, cursor)
            assert refused.value.code == "invalid_argument"


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.2.3", "-1", "1 ", "\u0663", "9" * 40, "1\x00", "jobs-0.1"])
def test_what_is_no_cursor_is_refused(bench: Bench, cursor: str) -> None:
    bench.dispatch(2)
    own = page(bench, JobFilter(), limit=1).cursor
    assert own is not None
    store, walk, _ = own.split(".", 2)
    for given_ in (cursor, f"{store}.{cursor}", f"{store}.{walk}.{cursor}" if cursor != "1" else f"{walk}.1"):
        with pytest.raises(InvalidArgument, match="is no cursor of this store") as refused:
            page(bench, JobFilter(), given_)
        assert refused.value.code == "invalid_argument"


def test_the_cursor_of_another_store_is_refused(bench: Bench) -> None:
    bench.dispatch(2)
    own = page(bench, JobFilter(), limit=1).cursor
    reidentify(bench)
    newcomer = bench.another()
    try:
        with pytest.raises(InvalidArgument, match="is no cursor of this store"):
            newcomer.run(newcomer.jobs(APPLICATION, JobFilter(), None, own, 1))
    finally:
        newcomer.close()


def test_leased_jobs_are_listed_by_their_creation(bench: Bench) -> None:
    """And not by their leases."""
    late, early = bench.dispatch(2)
    bench.clock.advance_ms(1)
    (last,) = bench.dispatch(lane=LOW)
    claimed = [bench.claim(lanes=lanes, free=1).attempts[0].job_id for lanes in ([LOW], [MEDIUM], [MEDIUM])]
    assert claimed == [last, late, early]
    assert ids(page(bench, JobFilter(states=LEASED_STATES))) == [last, early, late]
