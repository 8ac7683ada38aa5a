"""Every store does what the memory store does, whatever comes in whatever order."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from runwick.contracts.attempts import Attempt, Claim, Expired, Kind
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import LEGAL_MOVES, JobState
from runwick.contracts.stores import JobRecord
from runwick.policy.recover import recover
from runwick.policy.settle import settle
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
    held,
    memory_bench,
    sqlite_bench,
)
from tests.conformance.places import Database

DICE = FakeDice()
LANES = (HIGH, MEDIUM, LOW)
OTHER = Kind("reports.build", 2)
ENDS = [kind for kind in OutcomeKind if kind is not OutcomeKind.ABANDONED]

jobs = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([BUILD, SEND, OTHER]),
        "lane": st.sampled_from(LANES),
        "policy": st.builds(JobPolicy, max_executions=st.integers(1, 3), max_unstarted=st.integers(1, 2)),
        "large": st.integers(0, 3).map(lambda throw: throw == 3),
    },
    optional={"delay_ms": st.integers(0, 3_000), "expires_in_ms": st.integers(1, 6_000)},
)


class Pair(NamedTuple):
    """The same attempt in both stores."""

    memory: Attempt
    other: Attempt


def alike(claim: Claim) -> Claim:
    """A claim without the keys and ids that are each store's own."""
    attempts = [msgspec.structs.replace(attempt, job=0, attempt_id=b"") for attempt in claim.attempts]
    return msgspec.structs.replace(claim, attempts=attempts)


def same_job(record: JobRecord | None) -> JobRecord:
    assert record is not None
    attempts = [msgspec.structs.replace(attempt, attempt_id=b"") for attempt in record.attempts]
    return msgspec.structs.replace(record, attempts=attempts)


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
        self.job_ids: list[bytes] = []
        self.pairs: list[Pair] = []
        """Attempts that were handed out, also those that ended since."""
        self.known: dict[bytes, JobRecord] = {}

    def teardown(self) -> None:
        self.other.store.close()
        self.check()

    def both(self, act: Any) -> tuple[Any, Any]:
        """The answers of both stores to the act that `act(bench, number of the store)` makes."""
        return self.memory.run(act(self.memory, 0)), self.other.run(act(self.other, 1))

    def some_pairs(self, data: st.DataObject, count: int) -> list[Pair]:
        """Attempts that were handed out, the same one perhaps twice; none while there are none."""
        return [data.draw(st.sampled_from(self.pairs)) for _ in range(count if self.pairs else 0)]

    def agree(self, act: Any) -> Any:
        memory, other = self.both(act)
        assert other == memory
        return memory

    @rule(given=st.lists(jobs, min_size=1, max_size=4))
    def dispatch(self, given: list[dict[str, Any]]) -> None:
        commands = [
            self.memory.command(payload=LARGE if values.pop("large") else b"{}", **values)
            for values in map(dict, given)
        ]
        self.both(lambda bench, _: bench.store.dispatch(commands))
        self.job_ids += [command.job_id for command in commands]

    @rule(
        free=st.integers(0, 3),
        ahead=st.integers(0, 6),
        lanes=st.permutations(LANES),
        kinds=st.sets(st.sampled_from([BUILD, SEND, OTHER]), min_size=1),
        payload_bytes=st.sampled_from([4, 1 << 22]),
        twice=st.booleans(),
    )
    def claim(self, twice: bool, **wishes: Any) -> None:
        wishes["kinds"] = frozenset(wishes["kinds"])
        plan = self.memory.plan(lease_ms=2_000, **wishes)
        for _ in range(1 + twice):
            memory, other = self.both(lambda bench, _: bench.store.claim(plan))
            assert alike(other) == alike(memory)
        self.pairs += map(Pair, memory.attempts, other.attempts)

    @rule(data=st.data(), count=st.integers(0, 4))
    def settle(self, data: st.DataObject, count: int) -> None:
        pairs = self.some_pairs(data, count)
        kinds = [data.draw(st.sampled_from(ENDS if pair.memory.begun else [OutcomeKind.CANCELLED])) for pair in pairs]
        batch = [
            [settle(pair[store], Outcome(kind, code=kind.value), DICE) for pair, kind in zip(pairs, kinds, strict=True)]
            for store in (0, 1)
        ]
        self.agree(lambda bench, store: bench.store.settle(batch[store]))

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
        assert (memory is None) == (other is None)
        if memory is not None:
            assert (other.execution, other.payload) == (memory.execution, memory.payload)
            self.pairs[place] = Pair(memory, other)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        pairs = {pair.memory.job_id: pair for pair in self.some_pairs(data, 3)}.values()
        memory, other = self.both(
            lambda bench, store: bench.store.renew(
                bench.presence(), held(*(pair[store] for pair in pairs)), 2_000, 1_000
            )
        )
        assert other.recovery_due == memory.recovery_due
        for pair in pairs:
            assert (pair.other.job in other.lost) == (pair.memory.job in memory.lost)

    @rule(limit=st.integers(1, 4))
    def recover(self, limit: int) -> None:
        def decide(expired: Expired) -> Settlement:
            return recover(expired, DICE)

        self.agree(lambda bench, _: bench.store.recover(APPLICATION, decide, limit))

    @rule(milliseconds=st.sampled_from([1, 50, 500, 1_999, 2_000, 6_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.memory.clock.advance_ms(milliseconds)
        self.other.clock.advance_ms(milliseconds)

    @invariant()
    def both_tell_the_same_and_every_move_is_legal(self) -> None:
        self.agree(lambda bench, _: bench.store.outlook(APPLICATION, LANES, frozenset({BUILD, SEND})))
        for job_id in self.job_ids:
            memory, other = self.both(lambda bench, _, job_id=job_id: bench.store.job(APPLICATION, job_id))
            record = same_job(memory)
            assert same_job(other) == record
            self.check_progress(self.known.get(job_id), record)
            self.known[job_id] = record

    def check_progress(self, before: JobRecord | None, now: JobRecord) -> None:
        assert now.executions <= now.max_executions
        assert [attempt.number for attempt in now.attempts] == list(range(1, len(now.attempts) + 1))
        if before is None or now == before:
            return
        assert now.revision == before.revision + 1
        assert now.state in LEGAL_MOVES[before.state] or now.state is before.state is JobState.RESERVED
        assert list(now.attempts[: len(before.attempts)]) == list(before.attempts)


def compare(examples: int, other: Callable[[], Bench], check: Callable[[], None] = lambda: None) -> None:
    class Machine(TwoStores):
        def __init__(self) -> None:
            super().__init__(other, check)

    run_state_machine_as_test(Machine, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None))


def test_sqlite_does_what_memory_does() -> None:
    with tempfile.TemporaryDirectory(prefix="runwick-model-") as folder:
        file = Path(folder) / "jobs.db"

        def check() -> None:
            with contextlib.closing(sqlite3.connect(file)) as connection:
                (wrong,) = connection.execute(
                    "SELECT count(*) FROM runwick_hot WHERE ahead <> (max_executions - executions >= 2)"
                ).fetchone()
            assert wrong == 0
            for left in Path(folder).iterdir():
                left.unlink()

        compare(20, lambda: sqlite_bench(Path(folder)), check)


def test_postgres_does_what_memory_does(postgres_database: Database) -> None:
    def check() -> None:
        # Whatever is leased is found through a claim that is looked at before the lease runs out.
        lost = postgres_database.execute(
            "SELECT hot.job FROM runwick.hot AS hot WHERE hot.claim IS NOT NULL AND NOT EXISTS ("
            "  SELECT FROM runwick.claim AS claim WHERE claim.token = hot.claim AND hot.job = ANY (claim.jobs)"
            "  AND claim.check_at_ms <= hot.lease_until_ms)"
        )
        assert lost == []

    compare(20, postgres_database.bench, check)
