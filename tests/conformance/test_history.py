"""History: what happened, in commit order, read from any cursor on without a gap or a repetition."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from runwick.contracts.controls import ControlAction
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.history import EventKind, JobEvent
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.states import JobState
from runwick.contracts.stores import Act
from tests.conformance.ground import APPLICATION, BUILD, FAILURE, HIGH, LARGE, LEASE_MS, LOW, MEDIUM, SEND, Bench
from tests.conformance.scene import as_a_later_release
from tests.conformance.test_identity import reidentify

DISPATCHED, ATTEMPT_ENDED = EventKind.DISPATCHED, EventKind.ATTEMPT_ENDED
JOB_ENDED, CONTROLLED = EventKind.JOB_ENDED, EventKind.CONTROLLED


def told(events: list[JobEvent]) -> list[tuple[Any, ...]]:
    """What they say, without where they stand."""
    return [(event.what, event.job_id, event.generation, event.number, event.state, event.code) for event in events]


def test_a_life_is_told_from_its_dispatch_to_its_end(bench: Bench) -> None:
    attempt = bench.claimed(kind=SEND, lane=LOW)
    bench.clock.advance_ms(10)
    bench.retry(attempt, 0)
    (second,) = bench.claim().attempts
    bench.succeed(second)
    bench.control(bench.order(ControlAction.RERUN, attempt.job_id))
    events = bench.events()
    job_id = attempt.job_id
    assert told(events) == [
        (DISPATCHED, job_id, 1, None, None, None),
        (ATTEMPT_ENDED, job_id, 1, 1, "failed", "handler_failed"),
        (ATTEMPT_ENDED, job_id, 1, 2, "succeeded", None),
        (JOB_ENDED, job_id, 1, None, "succeeded", None),
        (CONTROLLED, job_id, 2, None, "rerun", None),
    ]
    assert {(event.kind, event.lane) for event in events} == {(SEND, LOW)}
    ids = [event.attempt_id for event in events]
    assert ids == [None, attempt.attempt_id, second.attempt_id, None, None]
    start_ms = bench.clock.now_ms() - 10
    assert [event.at_ms - start_ms for event in events] == [0, 10, 10, 10, 10]
    (record,) = bench.audit()
    assert [event.command_id for event in events] == [None] * 4 + [record.command_id]


def test_what_changes_no_fate_is_no_event(bench: Bench) -> None:
    attempt, reserved = bench.claimed(), bench.claimed(payload=LARGE)
    before = bench.events()
    bench.renew(attempt)
    bench.marked(attempt)
    bench.release(attempt)
    bench.clock.advance_ms(LEASE_MS)
    assert [attempt.job for attempt in bench.recover()] == [reserved.job]
    assert bench.events() == before


def test_ends_without_an_attempt_are_told(bench: Bench) -> None:
    (expired,) = bench.dispatch(expires_in_ms=5)
    (cancelled,) = bench.dispatch(delay_ms=9_000)
    bench.cancel(cancelled)
    bench.clock.advance_ms(5)
    bench.claim()
    events = told(bench.events())
    assert set(events[2:4]) == {
        (JOB_ENDED, cancelled, 1, None, "cancelled", "cancel_requested"),
        (CONTROLLED, cancelled, 1, None, "cancel", None),
    }
    assert events[4:] == [(JOB_ENDED, expired, 1, None, "failed", "expired")]


def test_recovery_tells_how_attempts_ended(bench: Bench) -> None:
    attempt = bench.claimed()
    bench.clock.advance_ms(LEASE_MS)
    bench.recover(JobState.FAILED, code="executions_exhausted")
    assert told(bench.events())[1:] == [
        (ATTEMPT_ENDED, attempt.job_id, 1, 1, "abandoned", "lease_lost"),
        (JOB_ENDED, attempt.job_id, 1, None, "failed", "executions_exhausted"),
    ]


def much(bench: Bench) -> None:
    """Let many things happen in two applications."""
    for place in range(4):
        bench.dispatch(5, lane=HIGH if place % 2 else MEDIUM)
        bench.dispatch(2, application="bakery")
        attempts = bench.claim(free=4).attempts
        bench.claim(free=1, application="bakery")
        for attempt in attempts[:2]:
            bench.succeed(attempt)
        bench.settle(attempts[2], FAILURE, JobState.FAILED, code="executions_exhausted")
        bench.retry(attempts[3], 0)
        bench.cancel(attempts[3].job_id)
        bench.control(bench.order(ControlAction.RETRY, attempts[2].job_id))


@pytest.mark.parametrize("application", [APPLICATION, "bakery"])
def test_reading_from_every_cursor_goes_on_where_it_stands(bench: Bench, application: str) -> None:
    much(bench)
    events = bench.events(application)
    assert len({event.cursor for event in events}) == len(events)
    assert len(events) >= 8
    for limit in (1, 3, 1_000):
        assert bench.events(application, limit=limit) == events
    for place, event in enumerate(events):
        assert bench.events(application, after=event.cursor) == events[place + 1 :]


def test_reading_the_audit_goes_on_where_it_stands(bench: Bench) -> None:
    much(bench)
    records = bench.audit()
    assert len(records) == 8
    assert bench.audit(limit=1) == bench.audit(limit=3) == records
    for place, record in enumerate(records):
        assert bench.audit(after=record.cursor) == records[place + 1 :]


def test_applications_read_their_own_history(bench: Bench) -> None:
    much(bench)
    ours, theirs = bench.events(), bench.events("bakery")
    assert not {event.job_id for event in ours} & {event.job_id for event in theirs}
    assert [event.what for event in theirs] == [DISPATCHED] * 8
    assert bench.events("yard") == []


def test_the_events_of_a_job_keep_their_order(bench: Bench) -> None:
    much(bench)
    by_job: dict[bytes, list[EventKind]] = {}
    for event in bench.events():
        by_job.setdefault(event.job_id, []).append(event.what)
    assert {whats[0] for whats in by_job.values()} == {DISPATCHED}
    ended = [whats for whats in by_job.values() if JOB_ENDED in whats]
    assert any(whats[1:3] == [ATTEMPT_ENDED, JOB_ENDED] for whats in ended)
    for whats in ended:
        assert ATTEMPT_ENDED not in whats or whats.index(ATTEMPT_ENDED) < whats.index(JOB_ENDED)


def test_a_batch_is_told_whole_and_behind_what_came_before(bench: Bench) -> None:
    job_ids = bench.dispatch(50)
    cursor = bench.events()[-1].cursor
    assert sorted(event.job_id for event in bench.events()) == sorted(job_ids)
    for attempt in bench.claim().attempts:
        bench.settle(attempt, Outcome(OutcomeKind.CANCELLED, "stop"), JobState.CANCELLED, code="stop")
    events = bench.events(after=cursor, limit=7)
    assert len(events) == 100
    assert {event.what for event in events} == {ATTEMPT_ENDED, JOB_ENDED}


def test_whoever_has_read_everything_sees_what_comes_next(bench: Bench) -> None:
    empty = bench.run(bench.store.events(APPLICATION, None, 10))
    assert (list(empty.events), empty.more) == ([], False)
    (job_id,) = bench.dispatch()
    page = bench.run(bench.store.events(APPLICATION, empty.cursor, 10))
    assert told(list(page.events)) == [(DISPATCHED, job_id, 1, None, None, None)]
    again = bench.run(bench.store.events(APPLICATION, page.cursor, 10))
    assert (list(again.events), again.more) == ([], False)
    bench.cancel(job_id)
    assert len(bench.events(after=again.cursor)) == 2
    nothing = bench.run(bench.store.audit("yard", None, 10))
    assert (list(nothing.records), nothing.more) == ([], False)


def test_another_process_reads_the_same(bench: Bench) -> None:
    much(bench)
    other = bench.another()
    try:
        page = other.run(other.events(APPLICATION, None, 1_000))
    finally:
        other.close()
    assert list(page.events) == bench.events()


@pytest.mark.parametrize(
    "cursor", ["", "x", "1.2.3", "-1.0", "1 ", " 1.0", "1.x", "+1", "\u0663.\u0660", "9" * 40, "9" * 40 + ".0", "1\x00"]
)
@pytest.mark.parametrize("read", ["events", "audit"])
def test_what_is_no_cursor_is_refused(bench: Bench, read: str, cursor: str) -> None:
    bench.dispatch()
    make: Callable[..., Act[Any]] = getattr(bench.store, read)
    whose = bench.run(make(APPLICATION, None, 10)).cursor.partition(".")[0]
    for given in (cursor, f"{whose}.{cursor}"):
        with pytest.raises(InvalidArgument, match="is no cursor of this store; begin without one") as refused:
            bench.run(make(APPLICATION, given, 10))
        assert refused.value.code == "invalid_argument"


@pytest.mark.parametrize("read", ["events", "audit"])
def test_the_cursor_of_another_store_is_refused_wherever_it_stands(bench: Bench, read: str) -> None:
    """A copy that got its own identity goes on by itself: a place in the one would pass over what is in the other."""
    bench.cancel(*bench.dispatch())
    make: Callable[..., Act[Any]] = getattr(bench.store, read)
    page = bench.run(make(APPLICATION, None, 10))
    entry = page.events[0] if read == "events" else page.records[0]
    reidentify(bench)
    copy = bench.another()
    try:
        make = getattr(copy, read)
        for cursor in (page.cursor, entry.cursor):
            with pytest.raises(InvalidArgument, match="is no cursor of this store"):
                copy.run(make(APPLICATION, cursor, 10))
        again = copy.run(make(APPLICATION, None, 10)).cursor
        assert copy.run(make(APPLICATION, again, 10)).cursor == again != page.cursor
    finally:
        copy.close()


@pytest.mark.parametrize("read", ["events", "audit"])
def test_a_cursor_in_front_of_what_has_not_happened_is_refused(bench: Bench, read: str) -> None:
    """It comes from another store, or from before a restore: answered with nothing, it would skip what is to come."""
    bench.cancel(*bench.dispatch())
    make: Callable[..., Act[Any]] = getattr(bench.store, read)
    latest = bench.run(make(APPLICATION, None, 100)).cursor
    assert bench.run(make(APPLICATION, latest, 100)).cursor == latest
    whose, first, *rest = latest.split(".")
    ahead = ".".join([whose, str(int(first) + 1_000_000), *rest])
    with pytest.raises(InvalidArgument, match="is no cursor of this store"):
        bench.run(make(APPLICATION, ahead, 100))


@pytest.mark.parametrize("read", ["events", "audit"])
def test_the_cursor_of_an_empty_store_is_one(bench: Bench, read: str) -> None:
    make: Callable[..., Act[Any]] = getattr(bench.store, read)
    empty = bench.run(make(APPLICATION, None, 100))
    assert bench.run(make(APPLICATION, empty.cursor, 100)) == empty


def test_a_refused_cursor_is_not_shown_at_any_length(bench: Bench) -> None:
    with pytest.raises(InvalidArgument) as refused:
        bench.run(bench.store.events(APPLICATION, "x" * 100_000, 10))
    assert len(str(refused.value)) < 300


def test_what_operators_did_to_an_application_is_audited_with_the_rest(bench: Bench) -> None:
    (job_id,) = bench.dispatch(kind=BUILD)
    bench.cancel(job_id)
    as_a_later_release(bench)
    of_job, of_application = bench.audit()
    assert of_job.job_id == job_id
    assert (of_application.actor, of_application.action) == ("operator", "activate_capability")
    assert (of_application.job_id, of_application.generation, of_application.command_id) == (None, None, None)
    texts = (of_application.before, of_application.after)
    before, after = (msgspec.json.decode(text or "", type=list[str]) for text in texts)
    assert set(after) - set(before) == {"time_travel"}
    assert [event.what for event in bench.events()].count(CONTROLLED) == 1
