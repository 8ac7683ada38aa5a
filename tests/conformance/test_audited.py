"""The audit trail as a list: the latest first, by what was done, by whom and to what."""

from typing import Any

import pytest

from runwick.contracts.controls import ControlAction, ManagementActor
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.history import AuditRecord
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.revealing import Secret
from tests.conformance.ground import APPLICATION, Bench, resource

OTHER = ManagementActor("night-shift", "Night shift", "service")


@pytest.fixture
def trail(bench: Bench) -> list[AuditRecord]:
    """What two operators did, the latest first."""
    jobs = bench.dispatch(4, scopes=(resource("queue"),))
    for number in range(12):
        actor: dict[str, Any] = {"actor": OTHER} if number % 3 == 0 else {}
        bench.clock.advance_ms(10)
        match number % 4:
            case 0:
                bench.run(bench.store.reveal(bench.showing(Secret.PAYLOAD, jobs[number % 3], **actor)))
            case 1:
                bench.limit("queue", 10 + number, **actor)
            case 2:
                act = bench.pause if bench.queue().since_ms is None else bench.resume
                act("reports", **actor)
            case 3 if number < 11:
                bench.cancel(jobs[number // 4], **actor)
            case _:
                bench.control(bench.order(ControlAction.RETRY, jobs[0], **actor))
    return bench.audit()[::-1]


def test_all_of_it_the_latest_first(bench: Bench, trail: list[AuditRecord]) -> None:
    assert len(trail) == 12
    for limit in (1, 5, 100):
        assert bench.trail(limit) == trail


def test_by_what_was_done_by_whom_and_to_what(bench: Bench, trail: list[AuditRecord]) -> None:
    for action in {record.action for record in trail} | {"look"}:
        assert bench.trail(action=action) == [record for record in trail if record.action == action]
    for actor in {record.actor for record in trail} | {"nobody"}:
        found = bench.trail(2, actor=actor)
        assert found == [record for record in trail if record.actor == actor]
    for job_id in {record.job_id for record in trail if record.job_id} | {bytes(16)}:
        assert bench.trail(1, job_id=job_id) == [record for record in trail if record.job_id == job_id]
    both = bench.trail(action="reveal_payload", actor=OTHER.subject)
    assert both == [record for record in trail if record.actor == OTHER.subject and record.action == "reveal_payload"]
    assert len(both) == 1


def test_a_target_is_found_whole_or_by_what_it_is(bench: Bench, trail: list[AuditRecord]) -> None:
    queue = [record for record in trail if record.target == "queue reports"]
    scope = [record for record in trail if record.target == "resource queue"]
    assert len(queue) == len(scope) == 3
    assert bench.trail(target="queue") == bench.trail(target="queue reports") == queue
    assert bench.trail(target="resource") == bench.trail(target="resource queue") == scope
    for nothing in ("queue report", "que", "reports", "", "queue ", "%", "queue_reports"):
        assert bench.trail(target=nothing) == []


def test_by_when_it_was_done(bench: Bench, trail: list[AuditRecord]) -> None:
    first, last = trail[8].at_ms, trail[3].at_ms
    assert bench.trail(at_from_ms=first, at_until_ms=last) == trail[4:9]
    assert bench.trail(at_from_ms=last) == trail[:4]
    assert bench.trail(at_until_ms=first) == trail[9:]


def test_what_is_done_meanwhile_moves_nothing(bench: Bench, trail: list[AuditRecord]) -> None:
    found: list[AuditRecord] = []
    after = None
    while True:
        page = bench.run(bench.store.audited(APPLICATION, AuditFilter(), after, 5))
        found += page.records
        if (after := page.cursor) is None:
            break
        bench.cancel(*bench.dispatch(2))
    assert found == trail


def test_applications_have_their_own(bench: Bench, trail: list[AuditRecord]) -> None:
    (job_id,) = bench.dispatch(application="bakery")
    bench.cancel(bench.target(job_id, "bakery"), application="bakery")
    theirs = bench.run(bench.store.audited("bakery", AuditFilter(), None, 100))
    assert [record.job_id for record in theirs.records] == [job_id]
    assert bench.trail() == trail
    nothing = bench.run(bench.store.audited("yard", AuditFilter(), None, 100))
    assert (list(nothing.records), nothing.cursor) == ([], None)
    assert bench.trail(job_id=job_id) == []


def test_cursors_of_other_lists_are_refused(bench: Bench, trail: list[AuditRecord]) -> None:
    own = bench.run(bench.store.audited(APPLICATION, AuditFilter(), None, 1)).cursor
    others = [
        bench.run(bench.store.audited(APPLICATION, AuditFilter(at_from_ms=0), None, 1)).cursor,
        bench.run(bench.store.jobs(APPLICATION, JobFilter(), None, None, 1)).cursor,
        trail[0].cursor,
        "x",
        "",
    ]
    assert own is not None
    for cursor in others:
        assert cursor is not None
        with pytest.raises(InvalidArgument, match="is no cursor of this store") as refused:
            bench.run(bench.store.audited(APPLICATION, AuditFilter(), cursor, 1))
        assert refused.value.code == "invalid_argument"
    assert list(bench.run(bench.store.audited(APPLICATION, AuditFilter(), own, 1)).records) == trail[1:2]
