import asyncio
import dataclasses
import datetime

import msgspec
import pytest

from runwick.contracts.attempts import ClaimPlan, LaneTurn
from runwick.contracts.errors import AdmissionClosed, OutcomeUnknown, StoreUnavailable
from runwick.contracts.limits import DeclaredLimits, Drift, LimitKind, ScopeNeed
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.stores import Outlook
from runwick.telemetry import events
from runwick.worker.engine import nothing_due, nothing_left
from tests.worker.ground import APPLICATION, KIND, LANE, OTHER_LANE, pause
from tests.worker.life import QUICK, Life, milliseconds, until
from tests.worker.store import EVERY, never


def test_it_ends_when_nothing_is_left_and_says_what_waits() -> None:
    life = Life()
    receipts = life.dispatch(3)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        while life.backend.held:
            life.backend.end(life.backend.held[0])
        await life.handed_over(1)
        life.backend.end(life.backend.held[0])

    outlook = life.live(script, nothing_left)
    assert outlook is not None
    assert (outlook.due, outlook.leased, outlook.postponed) == (0, 0, 0)
    assert life.states(receipts) == ["succeeded"] * 3
    assert life.worker.tally.succeeded == 3
    assert life.backend.started is False


def test_the_drain_lets_run_and_gives_back_what_has_not_begun() -> None:
    life = Life(free=2)
    receipts = life.dispatch(4)

    async def script(life: Life) -> None:
        await life.handed_over(2)
        begun = life.backend.held[0]
        life.backend.begun.add(begun.job)
        life.worker.stop()
        await until(lambda: len(life.backend.held) == 1, "the other one to be taken back")
        life.backend.end(begun)

    assert life.live(script) is None
    assert sorted(life.states(receipts)) == ["pending"] * 3 + ["succeeded"]


def test_a_backend_that_gives_up_stops_the_worker_and_is_named() -> None:
    life = Life()

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        assert life.backend.sink is not None
        life.backend.sink.failed("no executor could be made")

    life.live(script)
    assert life.worker.failure == "the backend cannot go on: no executor could be made"


def test_a_failing_settlement_keeps_the_worker_alive_until_it_lands() -> None:
    life = Life(free=1)
    (receipt,) = life.dispatch(1)
    life.store.faults["settle"] = [OSError("a fault of the moment")]

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.backend.end(life.backend.held[0], Outcome(OutcomeKind.SUCCEEDED, result=b'"done"'))

    life.live(script, nothing_due)
    assert life.job(receipt).result == b'"done"'


def test_a_claim_that_is_under_way_at_the_stop_is_given_back_uncharged() -> None:
    life = Life(free=1)
    (receipt,) = life.dispatch(1)
    answered = asyncio.Event()

    async def slow_to_answer() -> None:
        life.worker.stop()
        await answered.wait()

    life.store.holds_up["claim"] = slow_to_answer

    async def script(life: Life) -> None:
        await until(lambda: life.worker._parts.stations.claimers[0].stopped, "the drain")
        assert life.worker._parts.stations.is_claiming
        answered.set()

    life.live(script)
    record = life.job(receipt)
    assert (record.state, record.executions) == ("pending", 0)


def test_an_application_that_is_drained_lets_no_worker_in_and_nothing_was_started() -> None:
    life = Life()
    life.store.fails["register"] = AdmissionClosed("admission_closed", "it is being drained")
    with pytest.raises(AdmissionClosed):
        asyncio.run(life.worker.run())
    assert life.store.calls == ["register"]
    assert not life.backend.started
    assert life.said == [], "whoever started it is told"


def test_a_store_that_is_away_for_a_moment_keeps_no_worker_out() -> None:
    life = Life(options=QUICK)
    life.store.faults["register"] = [StoreUnavailable("store_unavailable", "away")]

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        life.worker.stop()

    life.live(script)
    assert life.store.calls[:2] == ["register", "register"]


def test_what_runs_goes_on_while_claims_are_not_admitted() -> None:
    life = Life(free=1, options=QUICK)
    running, waiting = life.dispatch(2)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.store.fails["claim"] = life.store.fails["begin"] = AdmissionClosed("admission_closed", "drained")
        life.backend.end(life.backend.held[0])
        await until(lambda: life.store.calls.count("claim") > 3, "refused claims")
        await until(lambda: life.job(running).state == "succeeded", "the settlement")
        del life.store.fails["claim"]
        await life.handed_over(1)
        life.backend.end(life.backend.held[0])

    life.live(script, nothing_left)
    assert life.states([running, waiting]) == ["succeeded", "succeeded"]
    assert [type(event).__name__ for event in life.said] == ["ClaimsRefused", "ClaimsAdmitted"]


def test_a_lost_claim_is_asked_for_during_the_drain_too() -> None:
    life = Life(free=1, options=QUICK)
    (receipt,) = life.dispatch(1)
    life.store.holds_up["claim"] = never

    async def script(life: Life) -> None:
        await until(lambda: "claim" in life.store.calls, "the claim")
        life.worker.stop()
        await until(lambda: life.store.calls.count("claim") >= 2, "the same claim again")
        life.store.holds_up.clear()

    life.live(script)
    record = life.job(receipt)
    assert (record.state, record.executions) == ("pending", 0)


def test_a_store_that_hangs_does_not_keep_a_worker_from_stopping() -> None:
    options = dataclasses.replace(
        QUICK,
        shutdown_drain=milliseconds(50),
        shutdown_cancellation=milliseconds(50),
        shutdown_finalization=milliseconds(50),
        shutdown_budget=milliseconds(200),
        control_request_timeout=datetime.timedelta(hours=1),
    )
    life = Life(free=1, options=options)
    (receipt,) = life.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        life.store.hangs.add(EVERY)
        life.backend.end(life.backend.held[0])
        life.worker.stop()

    life.live(script)
    assert life.job(receipt).state == "running", "its lease runs out"
    assert not life.backend.started


def test_its_id_may_be_given_and_is_made_otherwise() -> None:
    assert Life(worker_id=b"0123456789abcdef").worker.worker_id == b"0123456789abcdef"
    made = Life().worker.worker_id
    assert (len(made), made == bytes(16)) == (16, False)


def test_hints_at_requests_reach_its_heartbeat_while_it_lives() -> None:
    life = Life(free=1)
    life.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        (hint,) = life.store._request_wakes
        assert hint == (life.worker.worker_id, life.worker._parts.heartbeat.requested)
        life.backend.end(life.backend.held[0])

    life.live(script, nothing_left)
    assert life.store._request_wakes == []


def test_what_a_dead_predecessor_left_runs_here_at_once() -> None:
    life = Life(free=1, options=QUICK)
    (receipt,) = life.dispatch(1)
    predecessor = life.ids.ordered()
    plan = ClaimPlan(
        application=APPLICATION,
        worker=predecessor,
        claim_token=life.ids.secret(),
        turns=[LaneTurn(LANE, 1)],
        kinds=frozenset({KIND}),
        free=1,
        ahead=0,
        payload_bytes=1 << 20,
        lease_ms=60_000,
    )
    life.store.run(life.store.claim(plan))
    life.store.faults["recover"] = [OutcomeUnknown("outcome_unknown", "lost")]

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        assert await life.worker.inherit(predecessor) == 1
        assert await life.worker.inherit(predecessor) == 0
        await life.handed_over(1)
        life.backend.end(life.backend.held[0])

    life.live(script, nothing_left)
    record = life.job(receipt)
    assert (record.state, [attempt.code for attempt in record.attempts]) == ("succeeded", ["worker_died", None])


SCALE = ScopeNeed(LimitKind.RESOURCE, "scale", 1)
ALL_REPORTS = ScopeNeed(LimitKind.QUEUE, LANE.queue, 2)


def test_limits_are_made_known_and_drift_is_told_once() -> None:
    life = Life(options=QUICK, scopes=[ALL_REPORTS])
    other = ScopeNeed(LimitKind.QUEUE, LANE.queue, 5)
    life.store.run(life.store.register(APPLICATION, [LANE], frozenset({KIND}), [other]))

    async def script(life: Life) -> None:
        await until(lambda: life.backend.started, "the start")
        await life.worker.reconfigure(life.pools, frozenset({KIND}), DeclaredLimits((ALL_REPORTS,)))
        await life.worker.reconfigure(life.pools, frozenset({KIND}), DeclaredLimits((other,)))
        await life.worker.reconfigure(life.pools, frozenset({KIND}), DeclaredLimits((ALL_REPORTS,)))
        life.worker.stop()

    life.live(script)
    drift = Drift(LimitKind.QUEUE, LANE.queue, "capacity 5", "capacity 2")
    assert life.heard(events.LimitDrifted) == [events.LimitDrifted(drift)]


def test_until_empty_waits_for_what_a_limit_keeps_and_not_for_a_paused_queue() -> None:
    life = Life(free=2, lanes=((LANE, OTHER_LANE),), options=QUICK)
    reports = life.dispatch(3, scopes=[SCALE])
    (mail,) = life.dispatch(1, lane=OTHER_LANE)
    pause(life.store, life.ids, OTHER_LANE.queue)

    async def script(life: Life) -> None:
        for _ in reports:
            await life.handed_over(1)
            assert len(life.backend.held) == 1
            life.backend.end(life.backend.held[0])

    outlook = life.live(script, until=nothing_left)
    assert outlook is not None
    assert (outlook.paused, outlook.blocked) == (1, 0)
    assert life.states([*reports, mail]) == ["succeeded"] * 3 + ["pending"]


def test_what_waits_in_line_is_left_by_one_that_runs_only_what_is_due() -> None:
    outlook = Outlook(due=2, later=0, leased=0, undecodable=0, postponed=0, oldest_due_ms=5, blocked=2)
    assert nothing_due(outlook)
    assert not nothing_left(outlook)
    assert not nothing_due(msgspec.structs.replace(outlook, due=3))
