"""The SQLite store does what the memory store does, whatever comes in whatever order."""

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

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
    held,
    memory_bench,
    sqlite_bench,
)

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
    sqlite: Attempt


def alike(claim: Claim) -> Claim:
    """A claim without the keys and ids that are each store's own."""
    attempts = [msgspec.structs.replace(attempt, job=0, attempt_id=b"") for attempt in claim.attempts]
    return msgspec.structs.replace(claim, attempts=attempts)


def same_job(record: JobRecord | None) -> JobRecord:
    assert record is not None
    attempts = [msgspec.structs.replace(attempt, attempt_id=b"") for attempt in record.attempts]
    return msgspec.structs.replace(record, attempts=attempts)


class TwoStores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="runwick-model-"))
        self.memory = memory_bench()
        self.sqlite = sqlite_bench(self.folder)
        self.job_ids: list[bytes] = []
        self.pairs: list[Pair] = []
        """Attempts that were handed out, also those that ended since."""
        self.known: dict[bytes, JobRecord] = {}

    def teardown(self) -> None:
        self.sqlite.store.close()
        with contextlib.closing(sqlite3.connect(self.folder / "jobs.db")) as connection:
            (wrong,) = connection.execute(
                "SELECT count(*) FROM runwick_hot WHERE ahead <> (max_executions - executions >= 2)"
            ).fetchone()
        assert wrong == 0
        shutil.rmtree(self.folder)

    def both(self, act: Any) -> tuple[Any, Any]:
        """The answers of both stores to the act that `act(bench, number of the store)` makes."""
        return self.memory.run(act(self.memory, 0)), self.sqlite.run(act(self.sqlite, 1))

    def some_pairs(self, data: st.DataObject, count: int) -> list[Pair]:
        """Attempts that were handed out, the same one perhaps twice; none while there are none."""
        return [data.draw(st.sampled_from(self.pairs)) for _ in range(count if self.pairs else 0)]

    def agree(self, act: Any) -> Any:
        memory, sqlite = self.both(act)
        assert sqlite == memory
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
            memory, sqlite = self.both(lambda bench, _: bench.store.claim(plan))
            assert alike(sqlite) == alike(memory)
        self.pairs += map(Pair, memory.attempts, sqlite.attempts)

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
        memory, sqlite = self.both(lambda bench, store: bench.store.begin(self.pairs[place][store]))
        assert (memory is None) == (sqlite is None)
        if memory is not None:
            assert (sqlite.execution, sqlite.payload) == (memory.execution, memory.payload)
            self.pairs[place] = Pair(memory, sqlite)

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        pairs = {pair.memory.job_id: pair for pair in self.some_pairs(data, 3)}.values()
        memory, sqlite = self.both(
            lambda bench, store: bench.store.renew(
                bench.presence(), held(*(pair[store] for pair in pairs)), 2_000, 1_000
            )
        )
        assert sqlite.recovery_due == memory.recovery_due
        for pair in pairs:
            assert (pair.sqlite.job in sqlite.lost) == (pair.memory.job in memory.lost)

    @rule(limit=st.integers(1, 4))
    def recover(self, limit: int) -> None:
        def decide(expired: Expired) -> Settlement:
            return recover(expired, DICE)

        self.agree(lambda bench, _: bench.store.recover(APPLICATION, decide, limit))

    @rule(milliseconds=st.sampled_from([1, 50, 500, 1_999, 2_000, 6_000]))
    def pass_time(self, milliseconds: int) -> None:
        self.memory.clock.advance_ms(milliseconds)
        self.sqlite.clock.advance_ms(milliseconds)

    @invariant()
    def both_tell_the_same_and_every_move_is_legal(self) -> None:
        self.agree(lambda bench, _: bench.store.outlook(APPLICATION, LANES, frozenset({BUILD, SEND})))
        for job_id in self.job_ids:
            memory, sqlite = self.both(lambda bench, _, job_id=job_id: bench.store.job(APPLICATION, job_id))
            record = same_job(memory)
            assert same_job(sqlite) == record
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


TwoStores.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestTwoStores = TwoStores.TestCase
