"""Whoever dispatches with keys, claims judged work, frees places or steers is killed at each crossing: a key is its
live job's and nobody else's, places in use are those that are held, and nobody waits beside room.

Each act, and each one after it, is a process of its own.
"""

import os
import signal
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from runwick.contracts.attempts import Attempt
from runwick.contracts.controls import ControlAction, ControlReply, SteerAction, SteerReply
from runwick.contracts.dispatching import Command, DuplicateMatch, Receipt, ReceiptDisposition
from runwick.contracts.limits import LimitKind
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.states import JobState
from tests.conformance.ground import APPLICATION, FAILURE, HIGH, LEASE_MS, Bench, resource, window
from tests.conformance.scene import Scene, seen, set_scene
from tests.kills.stands import KILLED, Stand, Tables, each_kill, elsewhere
from tests.kills.test_control_kills import APPLIED, lives
from tests.kills.test_recovery_kills import finishes, recovers, stop
from tests.sqlite.processes import Child, Peer

WINDOW_KEYS: Final[dict[str, Any]] = {"window_key": "w", "window_ms": 3_600_000, "fingerprint": bytes(32)}
ROUNDS: Final = 10


def sent(bench: Bench, command: Command) -> tuple[bytes, ReceiptDisposition, DuplicateMatch]:
    """What another process is told of this dispatch: job, what was done, and by which key it was found."""

    def dispatch() -> list[str]:
        store = bench.another()
        (receipt,) = store.run(store.dispatch([command]))
        assert isinstance(receipt, Receipt)
        return [receipt.job.hex(), receipt.disposition, receipt.duplicate_match]

    job, disposition, match = elsewhere(dispatch)
    return bytes.fromhex(job), ReceiptDisposition(disposition), DuplicateMatch(match)


CREATED, REUSED = ReceiptDisposition.CREATED, ReceiptDisposition.REUSED


class Keyed:
    """A job with an active key and a window key, as far as the acts before the one of the test bring it."""

    def __init__(self, stand: Stand, act: str) -> None:
        self.bench = bench = stand.bench()
        self.command = bench.command(active_key="a", **WINDOW_KEYS)
        self.plan = bench.plan()
        if act != "dispatch":
            bench.send(self.command)
        if act == "settle":
            (self.attempt,) = bench.run(bench.store.claim(self.plan)).attempts

    def dispatch(self) -> object:
        store = self.bench.another()
        return store.run(store.dispatch([self.command]))

    def claim(self) -> object:
        store = self.bench.another()
        return store.run(store.claim(self.plan))

    def settle(self) -> object:
        return finishes(self.bench, self.attempt)

    def finish(self) -> None:
        """Whoever held the job is gone; somebody else runs it to its end."""
        self.bench.clock.advance_ms(LEASE_MS)
        elsewhere(lambda: recovers(self.bench))
        for attempt in self.bench.claim().attempts:
            assert elsewhere(lambda attempt=attempt: finishes(self.bench, attempt)) == Answer.DONE  # type: ignore[misc]


@pytest.mark.parametrize("act", ["dispatch", "claim", "settle"])
def test_f092_f094_a_key_is_its_live_jobs_wherever_somebody_dies(stand: Stand, act: str) -> None:
    work: Callable[[Keyed], object] = {"dispatch": Keyed.dispatch, "claim": Keyed.claim, "settle": Keyed.settle}[act]
    lasted = []
    for _, _, case in each_kill(stand, lambda: Keyed(stand, act), work):
        bench, first = case.bench, case.command
        record = bench.run(bench.store.job(APPLICATION, first.job_id))
        lasted.append((record is not None, record is not None and record.state is JobState.SUCCEEDED))
        if record is None:
            job = check_nobodys(bench, first)
        else:
            job = first.job_id
            assert sent(bench, first) == (job, CREATED, DuplicateMatch.NONE)
        if record is None or record.state is not JobState.SUCCEEDED:
            both = bench.command(active_key="a", **WINDOW_KEYS)
            assert sent(bench, both) == (job, REUSED, DuplicateMatch.ACTIVE_AND_WINDOW)
            case.finish()
        assert bench.job(job).state is JobState.SUCCEEDED
        after = bench.command(active_key="a")
        assert sent(bench, after) == (after.job_id, CREATED, DuplicateMatch.NONE)
        assert sent(bench, bench.command(active_key="a")) == (after.job_id, REUSED, DuplicateMatch.ACTIVE)
        assert sent(bench, bench.command(**WINDOW_KEYS)) == (job, REUSED, DuplicateMatch.WINDOW)
    assert lasted[-1] == (True, act == "settle"), "it was not killed behind its commit"


def check_nobodys(bench: Bench, first: Command) -> bytes:
    """The keys of a dispatch that was not applied are the next one's, and the first finds that one; answers it."""
    second = bench.command(active_key="a", **WINDOW_KEYS)
    assert sent(bench, second) == (second.job_id, CREATED, DuplicateMatch.NONE)
    assert sent(bench, first) == (second.job_id, REUSED, DuplicateMatch.ACTIVE_AND_WINDOW)
    return second.job_id


class Reopened:
    """A job with an active key that has ended, and a command that opens it again."""

    def __init__(self, stand: Stand, action: ControlAction) -> None:
        self.bench = bench = stand.bench()
        attempt = bench.claimed(active_key="a")
        if action is ControlAction.RERUN:
            bench.succeed(attempt)
        else:
            bench.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
        self.order = bench.order(action, attempt.job_id)
        self.job_id = attempt.job_id

    def send(self) -> str:
        store = self.bench.another()
        return msgspec.json.encode(store.run(store.control(self.order))).decode()


@pytest.mark.parametrize("action", [ControlAction.RETRY, ControlAction.RERUN])
def test_f149_a_job_with_a_key_is_closed_without_it_or_lives_with_it(stand: Stand, action: ControlAction) -> None:
    opened = []
    for _, _, case in each_kill(stand, lambda: Reopened(stand, action), Reopened.send):
        closed, live, written = lives(stand, case.order)
        assert (closed, written) == ([1], ["audit", "command", "hot"] if live else [])
        opened.append(bool(live))
        other = case.bench.command(active_key="a")
        if live:
            assert live == [2]
            assert sent(case.bench, other) == (case.job_id, REUSED, DuplicateMatch.ACTIVE)
        else:
            assert sent(case.bench, other) == (other.job_id, CREATED, DuplicateMatch.NONE)
        reply = msgspec.json.decode(elsewhere(case.send), type=ControlReply)
        assert (reply.replayed, reply.answers[0].code) == ((True, None) if live else (False, "uniqueness_conflict"))
        assert lives(stand, case.order)[1] == live
    assert opened == list(APPLIED[type(stand).__name__].values())


STEERED: Final[dict[str, tuple[SteerAction, LimitKind, str, int | None]]] = {
    "pause": (SteerAction.PAUSE, LimitKind.QUEUE, HIGH.queue, None),
    "resume": (SteerAction.RESUME, LimitKind.QUEUE, "invoices", None),
    "set_capacity": (SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "printer", 1),
}


class Steered:
    """A scene and a command about a queue or a scope of it."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.bench = stand.bench()
        self.scene: Scene = set_scene(self.bench)
        action, kind, key, capacity = STEERED[name]
        self.command = self.bench.steering(action, kind, key, capacity=capacity)
        self.before = self.told()

    def send(self) -> str:
        store = self.bench.another()
        return msgspec.json.encode(store.run(store.steer(self.command))).decode()

    def sent(self) -> SteerReply:
        """What another process is answered."""
        return msgspec.json.decode(elsewhere(self.send), type=SteerReply)

    def told(self) -> Any:
        """All that another process reads."""
        return elsewhere(lambda: msgspec.json.encode(seen(self.bench, self.scene, self.bench.another())).decode())


@pytest.mark.parametrize("name", STEERED)
def test_f148_what_was_answered_of_a_queue_or_a_capacity_outlives_who_asked(stand: Stand, name: str) -> None:
    case = Steered(stand, name)

    def ask(peer: Peer) -> None:
        peer.say(case.send())
        peer.hear()

    with Child(ask) as operator:
        reply = msgspec.json.decode(operator.hear(), type=SteerReply)
        os.kill(operator.pid, signal.SIGKILL)
        assert operator.end() == KILLED
    found = case.told()
    assert (reply.code, found != case.before) == (None, True)
    assert case.sent() == msgspec.structs.replace(reply, replayed=True)
    assert case.told() == found


@pytest.mark.parametrize("name", STEERED)
def test_a_queue_or_a_capacity_is_changed_wholly_or_not_at_all(stand: Stand, name: str) -> None:
    applied = []
    for _, _, case in each_kill(stand, lambda: Steered(stand, name), Steered.send):
        found = case.told()
        first = case.sent()
        after = case.told()
        assert first.code is None
        assert found == (after if first.replayed else case.before)
        assert case.before != after
        assert case.sent() == msgspec.structs.replace(first, replayed=True)
        assert case.told() == after
        (audit,) = (record for record in case.bench.audit() if record.command_id == case.command.command_id)
        assert (audit.before, audit.after) == (first.before, first.after)
        applied.append(first.replayed)
    assert applied[-1]
    assert len(applied) >= len(stand.crossings)


class Crowd:
    """Jobs that need two resources and a window, of which not all get theirs; one of them is held already."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.bench = bench = stand.bench()
        self.dead = bench.worker
        self.holder: Attempt = bench.claimed(scopes=(resource("printer"), resource("glue", 3)))
        jobs = [
            *bench.dispatch(2, scopes=(resource("printer"),)),
            *bench.dispatch(3, scopes=(resource("glue", 3), resource("stapler"))),
            *bench.dispatch(3, scopes=(resource("glue", 3),)),
            *bench.dispatch(2, rates=(window("post", 1),)),
        ]
        self.jobs = [self.holder.job_id, *jobs]
        self.plan = bench.plan()

    def claim(self) -> object:
        store = self.bench.another()
        return store.run(store.claim(self.plan))

    def settle(self) -> object:
        return finishes(self.bench, self.holder)

    def check(self) -> None:
        """What is in use is held, by attempts under way; one pass finds nothing to mend, and then nobody waits beside
        room. The dead one's places come back, and all jobs run once more at most and end."""
        bench = self.bench
        self.check_holds()
        bench.worker = bench.ids.ordered()
        self.check_lines()
        elsewhere(lambda: _buries(bench, self.dead))
        self.check_holds()
        self.check_lines()
        self.drain()
        assert [bench.job(job_id).state for job_id in self.jobs] == [JobState.SUCCEEDED] * len(self.jobs)
        assert [(record.in_use, record.waiting) for record in bench.scopes()] == [(0, False)] * 3
        (rate,) = bench.rates()
        runs = sum(len(bench.job(job_id).attempts) for job_id in self.jobs[-2:])
        assert (rate.granted, rate.waiting) == (runs, False)

    def check_holds(self) -> None:
        if not isinstance(self.stand, Tables):
            assert self.bench.tend().mended == 0, "it counts what is held itself"
            return
        rows = self.stand.rows(
            "SELECT in_use, (SELECT count(*) FROM runwick_hold WHERE scope = runwick_scope.id), "
            "(SELECT count(*) FROM runwick_hold JOIN runwick_hot USING (job, claim) WHERE scope = runwick_scope.id) "
            "FROM runwick_scope",
            "SELECT in_use, (SELECT count(*) FROM runwick.hold WHERE hold.scope = scope.id), "
            "(SELECT count(*) FROM runwick.hold JOIN runwick.hot USING (job, claim) WHERE hold.scope = scope.id) "
            "FROM runwick.scope",
        )
        assert len(rows) == 3
        assert all(in_use == held == under_way for in_use, held, under_way in rows), rows

    def check_lines(self) -> None:
        bench = self.bench
        assert bench.tend().mended == 0
        while bench.claim().attempts:
            pass
        self.check_holds()
        records = bench.scopes()
        assert [record.key for record in records if record.waiting and record.in_use < record.capacity] == []

    def drain(self) -> None:
        """Whatever is under way is given up, and then run to its end by one worker, as long as something is there."""
        bench = self.bench
        elsewhere(lambda: _buries(bench, bench.worker))
        bench.worker = bench.ids.ordered()
        for _ in range(4 * len(self.jobs)):
            attempts = bench.claim().attempts
            for attempt in attempts:
                assert bench.succeed(attempt) is Answer.DONE
            if not attempts:
                bench.clock.advance_ms(1_000)


def _buries(bench: Bench, worker: bytes) -> int:
    store = bench.another()
    return store.run(store.recover(APPLICATION, _retried, 100, worker=worker))


def _retried(attempt: Attempt) -> Settlement:
    return Settlement(attempt, FAILURE, JobState.RETRYING, code="lease_lost", delay_ms=0)


@pytest.mark.parametrize("act", ["claim", "settle"])
def test_places_in_use_are_held_and_nobody_waits_beside_room_wherever_somebody_dies(stand: Stand, act: str) -> None:
    work: Callable[[Crowd], object] = {"claim": Crowd.claim, "settle": Crowd.settle}[act]
    used = []
    for _, _, case in each_kill(stand, lambda: Crowd(stand), work):
        used.append(sum(record.in_use for record in case.bench.scopes()))
        case.check()
    assert set(used[:-1]) <= {2, used[-1]}
    assert used[-1] == {"claim": 5, "settle": 0}[act], "it was not killed behind its commit"


def test_f095_who_stands_still_past_its_lease_has_lost_its_place(stand: Stand) -> None:
    """Whenever it goes on: the place is another's, and the other's fence is higher."""
    bench = stand.bench()

    def work(peer: Peer) -> None:
        store = bench.another()
        (attempt,) = store.run(store.claim(bench.plan(worker=bench.ids.ordered()))).attempts
        peer.say(attempt.fences[0].value)
        peer.hear()
        peer.say(finishes(bench, attempt))
        peer.say([str(answer) for answer in store.run(store.release([attempt]))])

    fences = []
    for _ in range(ROUNDS):
        first, _ = bench.dispatch(2, scopes=(resource("printer"),))
        with Child(work) as sleeper:
            fences.append(sleeper.hear())
            assert bench.claim().attempts == []
            stop(sleeper)
            bench.clock.advance_ms(LEASE_MS)
            assert elsewhere(lambda: _gives_up(bench)) == 1
            (other,) = bench.claim().attempts
            fences.append(other.fences[0].value)
            sleeper.say("go on")
            os.kill(sleeper.pid, signal.SIGCONT)
            assert sleeper.hear() == Answer.NOT_YOURS
            assert sleeper.hear() == [Answer.NOT_YOURS]
        assert (bench.scope("printer").in_use, bench.scope("printer").fence) == (1, fences[-1])
        assert bench.succeed(other) is Answer.DONE
        assert (other.job_id != first, bench.job(first).state) == (True, JobState.FAILED)
        assert bench.scope("printer").in_use == 0
    assert fences == list(range(1, 2 * ROUNDS + 1))


def _gives_up(bench: Bench) -> int:
    """What was abandoned fails, so that the next one in line is another job."""
    store = bench.another()

    def decide(attempt: Attempt) -> Settlement:
        return Settlement(attempt, FAILURE, JobState.FAILED, code="lease_lost")

    return store.run(store.recover(APPLICATION, decide, 100))
