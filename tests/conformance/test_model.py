"""Every store does what the memory store does, whatever comes in whatever order."""

import contextlib
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from runwick.contracts.activity import ExecutorActivity, Mark, Report, StackAnswer
from runwick.contracts.attempts import Attempt, Claim, Kind, Lane, LaneTurn
from runwick.contracts.controls import ControlAction, ControlCommand, JobTarget, SteerAction, SteerCommand
from runwick.contracts.dispatching import Command, Receipt, ReceiptDisposition
from runwick.contracts.errors import StoreError
from runwick.contracts.limits import LimitKind, ScopeRecord
from runwick.contracts.outcomes import Answer, Death, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import LEASED_STATES, LEGAL_MOVES, JobState, Priority
from runwick.contracts.stores import JobRecord
from runwick.policy.recover import recover, recover_from_dead
from runwick.policy.settle import settle
from runwick.stores.memory.store import MemoryStore
from tests.ambient import FakeDice
from tests.conformance.ground import (
    APPLICATION,
    BUILD,
    HIGH,
    LARGE,
    LOW,
    MEDIUM,
    SEND,
    Bench,
    capped,
    capped_type,
    held,
    memory_bench,
    resource,
    sqlite_bench,
    turns_of,
    type_window,
    window,
)
from tests.conformance.places import Database
from tests.conformance.redis_places import RedisDatabase

DICE = FakeDice()
LANES = (HIGH, MEDIUM, LOW, Lane("mails", Priority.MEDIUM))
QUEUES = ("reports", "mails", "letters")
OTHER = Kind("reports.build", 2)
KINDS = frozenset({BUILD, SEND, OTHER})
LEASE_MS = 8_000
STALE = [(0, 0)] * 9 + [(0, -1), (0, 1), (1, 0)]
"""By how much a target's generation and revision are off."""
ENDS = [kind for kind in OutcomeKind if kind is not OutcomeKind.ABANDONED]

RESOURCES = [resource("printer", 1), resource("scanner", 2), resource("till", 1)]
SHARED = [capped("reports", 3), capped("mails", 1), capped_type("mails.send", 2)]
RATES = [window("provider", 2), window("provider", 3, 3_000), window("bank", 1, 1_500), type_window("mails.send", 2)]

scopes = st.lists(st.sampled_from(RESOURCES), max_size=2, unique=True).map(tuple)
rates = st.lists(st.sampled_from(RATES), max_size=2, unique=True).map(tuple)
turns = st.builds(
    lambda lanes, most, waited_ms: [LaneTurn(*each) for each in zip(lanes, most, waited_ms, strict=True)],
    st.permutations(LANES),
    st.lists(st.sampled_from([1, 2, 128, 128]), min_size=len(LANES), max_size=len(LANES)),
    st.lists(st.sampled_from([0, 0, 0, 60]), min_size=len(LANES), max_size=len(LANES)),
)
keys = st.fixed_dictionaries(
    {},
    optional={
        "active_key": st.sampled_from(["a", "b"]),
        "window": st.fixed_dictionaries(
            {
                "window_key": st.sampled_from(["v", "w"]),
                "window_ms": st.sampled_from([400, 4_000]),
                "fingerprint": st.sampled_from([b"r" * 32, b"r" * 32, b"o" * 32]),
            }
        ),
    },
)
jobs = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(sorted(KINDS)),
        "lane": st.sampled_from(LANES),
        "policy": st.builds(
            JobPolicy,
            max_executions=st.integers(1, 3),
            max_unstarted=st.integers(1, 2),
            max_crashes=st.integers(1, 2),
            retry_initial_ms=st.just(100),
        ),
        "large": st.integers(0, 3).map(lambda throw: throw == 3),
    },
    optional={
        "delay_ms": st.sampled_from([None, None, 0, 60, 3_000]),
        "expires_in_ms": st.sampled_from([None, None, 1, 500, 12_000]),
        "scopes": scopes,
        "rates": rates,
        "keys": keys,
    },
)


class Pair(NamedTuple):
    """The same attempt in both stores."""

    memory: Attempt
    other: Attempt

    def __repr__(self) -> str:
        return f"attempt {self.memory.number} of job {self.memory.job}"


def alike(claim: Claim) -> Claim:
    """A claim without the keys and ids that are each store's own."""
    attempts = [msgspec.structs.replace(attempt, job=0, attempt_id=b"") for attempt in claim.attempts]
    return msgspec.structs.replace(claim, attempts=attempts, called_in_ms=list(claim.called_in_ms))


def same_job(record: JobRecord | None) -> JobRecord:
    assert record is not None
    attempts = [msgspec.structs.replace(attempt, attempt_id=b"") for attempt in record.attempts]
    return msgspec.structs.replace(record, attempts=attempts, attempt_id=None if record.attempt_id is None else b"")


def made(bench: Bench, values: dict[str, Any]) -> Command:
    """The command that a draw means."""
    fields = dict(values)
    fields["payload"] = LARGE if fields.pop("large") else b"{}"
    keys = dict(fields.pop("keys", {}))
    return bench.command(**fields, **keys.pop("window", {}), **keys)


def plain(answer: Any) -> Any:
    """A dispatch's answer without what is each store's own."""
    if not isinstance(answer, list):
        return answer
    return [
        msgspec.structs.replace(each, confirmed_profile="") if isinstance(each, Receipt) else each for each in answer
    ]


class TwoStores(RuleBasedStateMachine):
    """The memory store and another one.

    Args:
        other: makes the other one.
        check: looks at it when it is closed.
    """

    def __init__(self, other: Callable[[], Bench], check: Callable[[], None]) -> None:
        super().__init__()
        self.memory = memory_bench()
        self.other = other()
        self.check = check
        self.workers = [self.memory.ids.ordered() for _ in range(2)]
        self.memory.worker = self.other.worker = self.workers[0]
        self.job_ids: list[bytes] = []
        self.pairs: list[Pair] = []
        """Attempts that were handed out, also those that ended since."""
        self.commands: list[ControlCommand] = []
        self.steered: list[SteerCommand] = []
        self.sent: list[Command] = []
        self.was_paused = False
        self.known: dict[bytes, JobRecord] = {}
        self.holders: dict[bytes, bytes | None] = {}
        """By job, the attempt that the memory store says holds it."""
        self.cursors: list[str | None] = [None, None]
        """Behind the events of each store that were compared."""

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and self.job_ids:
                self.bring_to_an_end()
        finally:
            self.other.store.close()
        self.check()

    def both(self, act: Any) -> tuple[Any, Any]:
        """The answers of both stores to the act that `act(bench, number of the store)` makes, or their refusals."""
        return tuple(_answer(bench, act(bench, number)) for number, bench in enumerate(self.benches))

    @property
    def benches(self) -> tuple[Bench, Bench]:
        return self.memory, self.other

    def some_pairs(self, data: st.DataObject, count: int) -> list[Pair]:
        """Attempts that were handed out, the same one perhaps twice, mostly such as still go on; none while there are
        none."""
        live = self.live()
        asked = [pair for pair in live if self.known[pair.memory.job_id].cancel_requested_at_ms is not None]
        choices = [pairs for pairs in (asked, live, live, self.pairs) if pairs]
        return [data.draw(st.sampled_from(choices).flatmap(st.sampled_from)) for _ in range(count if choices else 0)]

    def live(self) -> list[Pair]:
        """Those that still hold their jobs."""
        return [pair for pair in self.pairs if self.holders[pair.memory.job_id] == pair.memory.attempt_id]

    def job_of(self, store: int) -> dict[int, bytes]:
        """From the keys of a store to the ids of jobs."""
        return {pair[store].job: pair[store].job_id for pair in self.pairs}

    def agree(self, act: Any) -> Any:
        memory, other = self.both(act)
        assert other == memory
        return memory

    @initialize(given=st.lists(jobs, min_size=3, max_size=8), needs=st.lists(st.sampled_from(SHARED), unique=True))
    def begin_with(self, given: list[dict[str, Any]], needs: list[Any]) -> None:
        self.agree(lambda bench, _: bench.store.register(APPLICATION, LANES, KINDS, needs))
        self.dispatch(given, False)
        self.claim(0, False, free=3, ahead=6, turns=turns_of(*LANES), kinds=KINDS, payload_bytes=1 << 22)

    @rule(given=st.lists(jobs, min_size=1, max_size=4), goes_on=st.booleans())
    def dispatch(self, given: list[dict[str, Any]], goes_on: bool) -> None:
        self.hand_in([made(self.memory, values) for values in given], goes_on)

    @rule(data=st.data(), goes_on=st.booleans())
    def dispatch_again(self, data: st.DataObject, goes_on: bool) -> None:
        if self.sent:
            self.hand_in(data.draw(st.lists(st.sampled_from(self.sent), min_size=1, max_size=3)), goes_on)

    def hand_in(self, commands: list[Command], goes_on: bool) -> None:
        answers = self.both(lambda bench, _: bench.store.dispatch(commands, continue_on_conflict=goes_on))
        memory, other = map(plain, answers)
        assert other == memory
        self.sent += commands
        for command in commands:
            memory, other = self.both(lambda bench, _, c=command: bench.store.resolve(APPLICATION, c.operation_id))
            assert plain([other]) == plain([memory])
            is_new = memory is not None and memory.disposition is ReceiptDisposition.CREATED
            if is_new and command.job_id not in self.job_ids:
                self.job_ids.append(command.job_id)

    @rule(needs=st.lists(st.builds(msgspec.structs.replace, st.sampled_from(RESOURCES + SHARED)), max_size=3))
    def register(self, needs: list[Any]) -> None:
        self.agree(lambda bench, _: bench.store.register(APPLICATION, LANES, KINDS, needs))

    @rule(
        worker=st.integers(0, 1),
        free=st.integers(0, 4),
        ahead=st.integers(0, 6),
        turns=turns,
        kinds=st.sets(st.sampled_from(sorted(KINDS)), min_size=1),
        payload_bytes=st.sampled_from([4, 1 << 22]),
        twice=st.booleans(),
    )
    def claim(self, worker: int, twice: bool, **wishes: Any) -> None:
        self.take(worker, twice, **wishes)

    def take(self, worker: int, twice: bool, **wishes: Any) -> Claim:
        wishes["kinds"] = frozenset(wishes["kinds"])
        before = self.in_use()
        plan = self.memory.plan(lease_ms=LEASE_MS, worker=self.workers[worker], **wishes)
        for _ in range(1 + twice):
            memory, other = self.both(lambda bench, _: bench.store.claim(plan))
            assert alike(other) == alike(memory)
        self.pairs += map(Pair, memory.attempts, other.attempts)
        for key, record in self.in_use().items():
            grown = key not in before or record.in_use > before[key].in_use
            assert not grown or record.in_use <= record.capacity
        claim: Claim = memory
        return claim

    def take_all(self) -> Claim:
        return self.take(0, False, free=100, ahead=0, turns=turns_of(*LANES), kinds=KINDS, payload_bytes=1 << 30)

    def in_use(self) -> dict[bytes, ScopeRecord]:
        return {record.id: record for kind in LimitKind for record in self.memory.scopes(kind)}

    @rule()
    def claim_until_nothing_is_taken(self) -> None:
        """Then nobody stands in the line of a scope with room, without any sweep."""
        for _ in range(20):
            claim = self.take_all()
            if not (claim.attempts or claim.again or claim.parked or claim.deferred):
                break
        if not self.was_paused:
            assert [
                record for record in self.in_use().values() if record.waiting and record.in_use < record.capacity
            ] == []

    def bring_to_an_end(self) -> None:
        """Whatever waits is claimed in the end; where nothing was ever paused, without any sweep."""
        for queue in self.memory.run(self.memory.store.queues(APPLICATION)):
            if queue.paused:
                self.send_steering(self.steering(SteerAction.RESUME, LimitKind.QUEUE, queue.queue, 0))
        self.pass_time(LEASE_MS)
        while self.agree(lambda bench, _: bench.store.recover(APPLICATION, lambda each: recover(each, DICE), 100)):
            pass
        for _ in range(300):
            claim = self.take_all()
            done = [
                [
                    Settlement(attempt, Outcome(OutcomeKind.SUCCEEDED), JobState.SUCCEEDED)
                    for attempt in self.begun(store)
                ]
                for store in (0, 1)
            ]
            self.agree(lambda bench, store, done=done: bench.store.settle(done[store]))
            if self.was_paused:
                self.agree(lambda bench, _: bench.store.tend(APPLICATION, None, 100))
            if not claim.attempts and claim.next_due_in_ms is None and not self.was_paused:
                break
            self.pass_time(claim.next_due_in_ms or 50)
        outlook = self.agree(lambda bench, _: bench.store.outlook(APPLICATION, LANES, KINDS))
        assert (outlook.due, outlook.later, outlook.leased, outlook.blocked) == (0, 0, 0, 0)
        assert {record.in_use for record in self.in_use().values()} <= {0}

    def begun(self, store: int) -> list[Attempt]:
        """The attempts of the last claim, all of them begun."""
        begun = []
        for pair in self.pairs:
            if (attempt := self.benches[store].begin(pair[store]).attempt) is not None:
                begun.append(attempt)
        return begun

    @rule(
        action=st.sampled_from([SteerAction.PAUSE, SteerAction.RESUME, SteerAction.RESUME]),
        queue=st.sampled_from(QUEUES),
        stale=st.sampled_from([0, 0, 0, 1]),
    )
    def pause_or_resume(self, action: SteerAction, queue: str, stale: int) -> None:
        self.send_steering(self.steering(action, LimitKind.QUEUE, queue, stale))

    @rule(need=st.sampled_from([*RESOURCES, *SHARED]), capacity=st.integers(1, 3), stale=st.sampled_from([0, 0, 0, 1]))
    def set_capacity(self, need: Any, capacity: int, stale: int) -> None:
        self.send_steering(self.steering(SteerAction.SET_CAPACITY, need.kind, need.key, stale, capacity=capacity))

    @rule()
    def steer_again(self) -> None:
        if self.steered:
            self.send_steering(self.steered[-1])

    def steering(self, action: SteerAction, kind: LimitKind, key: str, stale: int, **changes: Any) -> SteerCommand:
        bench = self.memory
        if action is SteerAction.SET_CAPACITY:
            stands = {record.key: record.revision for record in bench.scopes(kind)}
        else:
            stands = {record.queue: record.revision for record in bench.run(bench.store.queues(APPLICATION))}
        return bench.steering(action, kind, key, expected_revision=stands.get(key, 0) + stale, **changes)

    def send_steering(self, command: SteerCommand) -> None:
        reply = self.agree(lambda bench, _: bench.store.steer(command))
        self.was_paused |= command.action is SteerAction.PAUSE and reply.code is None
        self.steered.append(command)
        self.compare_audits()

    @rule(limit=st.integers(1, 3))
    def tend(self, limit: int) -> None:
        after = None
        for _ in range(20):
            tended = self.agree(lambda bench, _, after=after: bench.store.tend(APPLICATION, after, limit))
            assert tended.mended == 0
            if (after := tended.after) is None:
                break

    @rule()
    def ask_why(self) -> None:
        for job_id in self.job_ids:
            self.agree(lambda bench, _, job_id=job_id: bench.store.why(APPLICATION, job_id))

    @rule(data=st.data(), count=st.integers(0, 4))
    def settle(self, data: st.DataObject, count: int) -> None:
        pairs = self.some_pairs(data, count)
        outcomes = [_outcome(data.draw(st.sampled_from(ENDS)), pair.memory.begun) for pair in pairs]
        batch = [
            [settle(pair[store], outcome, DICE) for pair, outcome in zip(pairs, outcomes, strict=True)]
            for store in (0, 1)
        ]
        answers = self.agree(lambda bench, store: bench.store.settle(batch[store]))
        if Answer.CANCELLED in answers:
            again = self.agree(lambda bench, store: bench.store.settle(batch[store]))
            cancelled = [second for first, second in zip(answers, again, strict=True) if first is Answer.CANCELLED]
            assert set(cancelled) == {Answer.DONE}

    @rule(data=st.data(), count=st.integers(0, 3))
    def release(self, data: st.DataObject, count: int) -> None:
        pairs = self.some_pairs(data, count)
        self.agree(lambda bench, store: bench.store.release([pair[store] for pair in pairs]))

    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        if not self.pairs:
            return
        place = data.draw(st.integers(0, len(self.pairs) - 1))
        memory, other = self.both(lambda bench, store: bench.store.begin(self.pairs[place][store]))
        assert (memory.attempt is None, memory.ended) == (other.attempt is None, other.ended)
        if memory.attempt is not None:
            begun = memory.attempt
            assert (other.attempt.execution, other.attempt.payload) == (begun.execution, begun.payload)
            self.pairs[place] = Pair(memory.attempt, other.attempt)

    @rule(data=st.data(), worker=st.integers(0, 1), tells=st.booleans(), answers=st.booleans())
    def renew(self, data: st.DataObject, worker: int, tells: bool, answers: bool) -> None:
        for bench in self.benches:
            bench.worker = self.workers[worker]
        renewed, some = ({pair.memory.job_id: pair for pair in self.some_pairs(data, 3)}.values() for _ in range(2))
        marked = [pair for pair in some if pair.memory.begun]
        told: dict[str, Any] = {}
        if tells:
            told["executors"] = [ExecutorActivity(number=1, pool="main", phase="idle", attempts=len(self.pairs))]

        def renewal(bench: Bench, store: int) -> Any:
            began_ms = bench.clock.now_ms() - 3
            marks = [Mark(pair[store].job, pair[store].claim_token, began_ms) for pair in marked]
            stacks = [StackAnswer(pair[store].attempt_id, "line 1") for pair in renewed if answers]
            report = bench.report(marks=marks, stacks=stacks, **told)
            return bench.store.renew(report, held(*(pair[store] for pair in renewed)), LEASE_MS, 1_000)

        beats = self.both(renewal)
        memory, other = [_by_job(beat, self.job_of(store)) for store, beat in enumerate(beats)]
        assert other == memory
        memory, other = self.both(lambda bench, _: bench.store.workers(APPLICATION))
        assert other == memory
        for pair in renewed:
            memory, other = self.both(
                lambda bench, store, pair=pair: bench.store.stack(APPLICATION, pair[store].attempt_id)
            )
            assert (other is None) == (memory is None)

    @rule(limit=st.integers(1, 4), worker=st.sampled_from([None, None, 0, 1]))
    def recover(self, limit: int, worker: int | None) -> None:
        dead = None if worker is None else self.workers[worker]
        policy = recover if dead is None else recover_from_dead
        self.agree(
            lambda bench, _: bench.store.recover(APPLICATION, lambda attempt: policy(attempt, DICE), limit, worker=dead)
        )

    @rule(limit=st.integers(1, 3))
    def expire(self, limit: int) -> None:
        """Of jobs that expire in the same moment any may be the first; no limit comes between them."""
        waiting = (record.expires_at_ms for record in self.known.values() if record.state not in LEASED_STATES)
        expired = sorted(at_ms for at_ms in waiting if at_ms is not None and at_ms <= self.memory.clock.now_ms())
        if len(expired) > limit and expired[limit - 1] == expired[limit]:
            limit = len(expired)
        self.agree(lambda bench, _: bench.store.expire(APPLICATION, limit))

    @rule(
        data=st.data(),
        action=st.sampled_from(ControlAction),
        count=st.integers(1, 4),
        reuses=st.sampled_from([False, False, True]),
    )
    def control(self, data: st.DataObject, action: ControlAction, count: int, reuses: bool) -> None:
        """One target or many, as they stand or stale; now and then under the id of another command."""
        if not self.known:
            return
        some = data.draw(st.lists(st.sampled_from(sorted(self.known)), min_size=1, max_size=count, unique=True))
        targets = [self.target(job_id, data.draw(st.sampled_from(STALE))) for job_id in some]
        command = self.memory.order(action, *targets, reason="because")
        if reuses and self.commands:
            command = msgspec.structs.replace(command, command_id=self.commands[-1].command_id)
        self.send(command)
        self.commands.append(command)

    @rule(data=st.data(), action=st.sampled_from([ControlAction.CANCEL, ControlAction.LOOK]))
    def ask_of_the_holder(self, data: st.DataObject, action: ControlAction) -> None:
        if live := self.live():
            pair = data.draw(st.sampled_from(live))
            self.both(lambda bench, store: bench.store.renew(_began(bench, pair[store]), [], LEASE_MS, 1_000))
            self.send(self.memory.order(action, self.target(pair.memory.job_id, (0, 0))))

    @rule(data=st.data())
    def open_again(self, data: st.DataObject) -> None:
        ended = sorted(job_id for job_id, record in self.known.items() if record.state.terminal)
        if ended:
            job_id = data.draw(st.sampled_from(ended))
            succeeded = self.known[job_id].state is JobState.SUCCEEDED
            action = ControlAction.RERUN if succeeded else ControlAction.RETRY
            self.send(self.memory.order(action, self.target(job_id, (0, 0))))

    @rule()
    def control_again(self) -> None:
        if self.commands:
            self.send(self.commands[-1])

    def target(self, job_id: bytes, stale: tuple[int, int]) -> JobTarget:
        record = self.known[job_id]
        return JobTarget(job_id, record.generation + stale[0], record.revision + stale[1])

    def send(self, command: ControlCommand) -> None:
        replies = self.both(lambda bench, _: bench.store.control(command))
        memory, other = (_without_attempts(reply) for reply in replies)
        assert other == memory
        self.compare_audits()

    def compare_audits(self) -> None:
        audits = [[_without_cursor(record) for record in bench.audit()] for bench in self.benches]
        assert audits[0] == audits[1]

    @rule(milliseconds=st.sampled_from([1, 50, 50, 500, 500, LEASE_MS - 1, LEASE_MS]))
    def pass_time(self, milliseconds: int) -> None:
        self.memory.clock.advance_ms(milliseconds)
        self.other.clock.advance_ms(milliseconds)

    @invariant()
    def both_tell_the_same_and_every_move_is_legal(self) -> None:
        self.agree(lambda bench, _: bench.store.outlook(APPLICATION, LANES, frozenset({BUILD, SEND})))
        self.agree(lambda bench, _: bench.store.queues(APPLICATION))
        for kind in LimitKind:
            self.agree(lambda bench, _, kind=kind: bench.store.scopes(APPLICATION, kind, None, 100))
            self.agree(lambda bench, _, kind=kind: bench.store.rates(APPLICATION, kind, None, 100))
        for job_id in self.job_ids:
            memory, other = self.both(lambda bench, _, job_id=job_id: bench.store.job(APPLICATION, job_id))
            record = same_job(memory)
            assert same_job(other) == record
            self.check_progress(self.known.get(job_id), record)
            self.known[job_id], self.holders[job_id] = record, memory.attempt_id

    @invariant()
    def what_is_held_is_in_use_and_who_stands_in_a_line_needs_its_limit(self) -> None:
        """Of the memory store; the other one shows the same records."""
        store = self.memory.store
        assert isinstance(store, MemoryStore)
        leases = [row.lease for row in store.tables.rows.values() if row.lease is not None]
        holds = Counter(limit for lease in leases for limit in lease.holds)
        for limit, scope in store.tables.limits.scopes.items():
            assert scope.scope.in_use == holds[limit]
        for row in store.tables.rows.values():
            if row.line is not None:
                assert row.waits
                assert row.called is None
                assert row.line in [*store.tables.limits.scopes_of(row), *row.rates]

    @invariant()
    def the_same_has_happened_in_both(self) -> None:
        """One act is one commit: within it the order is each store's own."""
        happened = []
        for store, bench in enumerate(self.benches):
            events = bench.events(after=self.cursors[store])
            self.cursors[store] = events[-1].cursor if events else self.cursors[store]
            plain = (_without_cursor(msgspec.structs.replace(event, attempt_id=None)) for event in events)
            happened.append(sorted(map(repr, plain)))
        assert happened[0] == happened[1]

    def check_progress(self, before: JobRecord | None, now: JobRecord) -> None:
        assert now.executions <= now.max_executions
        for generation in range(1, now.generation + 1):
            numbers = [attempt.number for attempt in now.attempts if attempt.generation == generation]
            assert numbers == list(range(1, len(numbers) + 1))
        leased = now.state in LEASED_STATES
        assert leased or (now.begun_at_ms, now.attempt_id, now.worker) == (None, None, None)
        assert leased or now.state.terminal or now.cancel_requested_at_ms is None
        if before is None or _without_what_passes(now) == _without_what_passes(before):
            return
        assert now.revision == before.revision + 1
        asked = before.cancel_requested_at_ms is None and now.cancel_requested_at_ms is not None
        assert now.state in LEGAL_MOVES[before.state] or (asked and now.state is before.state)
        assert now.generation == before.generation + before.state.terminal
        assert list(now.attempts[: len(before.attempts)]) == list(before.attempts)


def _answer(bench: Bench, act: Any) -> Any:
    try:
        return bench.run(act)
    except StoreError as refused:
        return refused.code


def _began(bench: Bench, attempt: Attempt) -> Report:
    """The report of a worker whose run of this attempt has begun."""
    return bench.report(marks=[Mark(attempt.job, attempt.claim_token, bench.clock.now_ms())])


def _outcome(kind: OutcomeKind, begun: bool) -> Outcome:
    """An end of this kind; what never began can only have been cancelled."""
    if not begun:
        return Outcome(OutcomeKind.CANCELLED, code="cancelled")
    death = Death("signal", signal=9, phase="handle") if kind is OutcomeKind.CRASHED else None
    return Outcome(kind, code=kind.value, death=death)


def _by_job(beat: Any, job_of: dict[int, bytes]) -> Any:
    """What a beat says, by the ids of jobs."""

    def named(items: Any) -> list[Any]:
        return sorted((job_of[item.job], item.claim_token) for item in items)

    return {job_of[job] for job in beat.lost}, beat.recovery_due, named(beat.cancels), named(beat.looks)


def _without_attempts(reply: Any) -> Any:
    """A reply without the ids that are each store's own; a refusal as it is."""
    if isinstance(reply, str):
        return reply
    answers = [msgspec.structs.replace(answer, attempt_id=None) for answer in reply.answers]
    return msgspec.structs.replace(reply, answers=answers), [answer.attempt_id is None for answer in reply.answers]


def _without_cursor(entry: Any) -> Any:
    return msgspec.structs.replace(entry, cursor="")


def _without_what_passes(record: JobRecord) -> JobRecord:
    """Without what may change and raise no revision: a begun mark, and the due time of one whom a window refused."""
    return msgspec.structs.replace(record, begun_at_ms=None, due_at_ms=None)


def compare(examples: int, other: Callable[[], Bench], check: Callable[[], None] = lambda: None) -> None:
    class Machine(TwoStores):
        def __init__(self) -> None:
            super().__init__(other, check)

    run_state_machine_as_test(Machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None))


def test_sqlite_does_what_memory_does() -> None:
    with tempfile.TemporaryDirectory(prefix="runwick-model-") as folder:
        file = Path(folder) / "jobs.db"

        def check() -> None:
            with contextlib.closing(sqlite3.connect(file)) as connection:
                (wrong,) = connection.execute(
                    "SELECT count(*) FROM runwick_hot WHERE ahead <> (max_executions - executions >= 2 AND NOT limited)"
                ).fetchone()
            assert wrong == 0
            for left in Path(folder).iterdir():
                left.unlink()

        compare(40, lambda: sqlite_bench(Path(folder)), check)


def test_postgres_does_what_memory_does(postgres_database: Database) -> None:
    def check() -> None:
        # Whatever is leased is found through a claim that is looked at before the lease runs out.
        lost = postgres_database.execute(
            "SELECT hot.job FROM runwick.hot AS hot WHERE hot.claim IS NOT NULL AND NOT EXISTS ("
            "  SELECT FROM runwick.claim AS claim WHERE claim.token = hot.claim AND hot.job = ANY (claim.jobs)"
            "  AND claim.check_at_ms <= hot.lease_until_ms)"
        )
        assert lost == []

    compare(40, postgres_database.bench, check)


def test_redis_does_what_memory_does(redis_database: RedisDatabase) -> None:
    def check() -> None:
        assert redis_database.recount() == []

    compare(40, redis_database.bench, check)
