"""Claims, ends, cancels and clocks in any order: what holds of limits after each act."""

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runwick.policy.limits import Scope, Window
from tests.policy.limit_scene import Ground

SCOPES = (b"scope one", b"scope two")
WINDOWS = (b"window one", b"window two")


class Limits(RuleBasedStateMachine):
    """Nothing here ever sweeps: no call and no promise may be lost on the way."""

    @initialize(capacity=st.integers(1, 3), most=st.integers(1, 4), other=st.integers(1, 30))
    def begin(self, capacity: int, most: int, other: int) -> None:
        self.number = 0
        self.ground = Ground(
            [Scope(SCOPES[0], capacity=capacity, in_use=0, fenced=True), Scope(SCOPES[1], capacity=2, in_use=0)],
            [Window(WINDOWS[0], most=most, window_ms=1_000), Window(WINDOWS[1], most=other, window_ms=3_000)],
        )

    @rule(
        count=st.integers(1, 6),
        rank=st.integers(0, 2),
        scopes=st.sets(st.sampled_from(SCOPES)),
        rates=st.sets(st.sampled_from(WINDOWS)),
    )
    def dispatch(self, count: int, rank: int, scopes: set[bytes], rates: set[bytes]) -> None:
        for _ in range(count):
            self.number += 1
            self.ground.add(self.number, rank=rank, scopes=tuple(sorted(scopes)), rates=tuple(sorted(rates)))

    @rule(want=st.integers(1, 8), free=st.integers(0, 8))
    def claim(self, want: int, free: int) -> None:
        before = {scope.id: (scope.in_use, scope.fence) for scope in self.ground.scopes.values()}
        self.ground.claim(want, free)
        for scope in self.ground.scopes.values():
            in_use, fence = before[scope.id]
            assert scope.in_use <= max(scope.capacity, in_use)
            assert scope.fence - fence == (scope.in_use - in_use if scope.fenced and scope.capacity == 1 else 0)

    @rule(choice=st.integers(0, 99))
    def finish(self, choice: int) -> None:
        if self.ground.running:
            rows = sorted(self.ground.running.values(), key=lambda row: row.job_id)
            self.ground.finish(rows[choice % len(rows)])

    @rule(choice=st.integers(0, 99))
    def cancel(self, choice: int) -> None:
        if self.ground.waiting:
            rows = sorted(self.ground.waiting.values(), key=lambda row: row.job_id)
            self.ground.cancel(rows[choice % len(rows)])

    @rule(choice=st.integers(0, 99))
    def expire(self, choice: int) -> None:
        if self.ground.waiting:
            rows = sorted(self.ground.waiting.values(), key=lambda row: row.job_id)
            rows[choice % len(rows)].expired = True

    @rule(capacity=st.integers(1, 4))
    def resize(self, capacity: int) -> None:
        scope, calling = self.ground.scopes[SCOPES[0]], self.ground.calling()
        calling.into_scope(scope, scope.resize(capacity))
        self.ground.call(calling.called)

    @rule(ms=st.sampled_from([1, 249, 250, 350, 999, 1_000, 3_000]))
    def time_passes(self, ms: int) -> None:
        self.ground.advance(ms)

    @rule(ms=st.sampled_from([1, 500, 5_000, 3_600_000]))
    def clock_goes_back(self, ms: int) -> None:
        self.ground.now_ms -= ms

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "ground"):
            self.ground.check()

    def teardown(self) -> None:
        """All of it ends, and without a standstill: however far the clock went back, a window's time goes on."""
        if not hasattr(self, "ground"):
            return
        for row in self.ground.waiting.values():
            # Due times were written by the clock that went back; that a job waits for those is another matter.
            row.due_ms = min(row.due_ms, self.ground.now_ms + 3_000)
        for _ in range(20 + 5 * self.number):
            if not self.ground.waiting:
                break
            self.ground.claim()
            for row in list(self.ground.running.values()):
                self.ground.finish(row)
            self.ground.check()
            self.ground.advance(3_350)
        assert not self.ground.waiting


Limits.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, phases=[Phase.explicit, Phase.generate]
)
TestLimits = Limits.TestCase


@settings(deadline=None, max_examples=60)
@given(
    most=st.integers(1, 40),
    window_ms=st.sampled_from([1_000, 1_500, 60_000]),
    steps=st.lists(st.tuples(st.integers(-5_000, 2_000), st.integers(1, 60)), min_size=1, max_size=60),
)
def test_no_window_ever_holds_more_than_it_may(most: int, window_ms: int, steps: list[tuple[int, int]]) -> None:
    """Whatever the clock does: a step back adds nothing to the window's own time, and nothing is counted twice."""
    window = Window(b"w", most=most, window_ms=window_ms)
    now_ms, own_times = 10_000_000, []
    for step_ms, count in steps:
        now_ms += step_ms
        time_ms = window.time_ms(now_ms)
        free = window.free(time_ms, count)
        for _ in range(free):
            window.grant(time_ms)
            own_times.append(time_ms)
        if free < min(count, most):
            assert sum(time_ms - window_ms < at_ms <= time_ms for at_ms in own_times) == most
    assert own_times == sorted(own_times)
    for place, at_ms in enumerate(own_times[most:]):
        assert at_ms - own_times[place] >= window_ms
