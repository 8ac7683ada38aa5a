"""A limit of 24 per second over 20,000 waiting jobs, with workers that take their time: by a clock of its own."""

import heapq
import random
from collections import Counter

import pytest

from runwick.policy.admission import Candidate, Fate, admit, candidates_per_turn
from runwick.policy.limits import Window
from runwick.policy.lines import Called

LIMIT = b"w" * 16
JOBS = 20_000
SECONDS = 20


class Head:
    """A line of one rank as a heap: 20,000 jobs stand in it."""

    def __init__(self, line: list[int]) -> None:
        self._line = line

    def take(self, rank: int) -> tuple[bytes, int] | None:
        if rank or not self._line:
            return None
        job = heapq.heappop(self._line)
        return job.to_bytes(16), job

    def empty(self) -> bool:
        return not self._line


class Run:
    def __init__(self) -> None:
        self.window = Window(LIMIT, most=24, window_ms=1_000)
        self.lane = [(0, job) for job in range(JOBS)]
        self.line: list[int] = []
        self.called: dict[int, bytes] = {}
        self.grants: list[int] = []
        self.moves: Counter[int] = Counter()

    def claim(self, free: int, now_ms: int) -> tuple[int, bool, list[int]]:
        """Jobs taken, whether to ask again, and when what it promised is due."""
        (limit,) = candidates_per_turn((free,), free)
        jobs: list[tuple[int, int]] = []
        while self.lane and self.lane[0][0] <= now_ms and len(jobs) < limit:
            jobs.append(heapq.heappop(self.lane))
        found = [Candidate(0, job.to_bytes(16), 1, False, False, self.called.get(job), (), (LIMIT,)) for _, job in jobs]
        answer = admit(
            found,
            {},
            {LIMIT: self.window},
            lambda _: Head(self.line),
            most=(free,),
            want=free,
            free=free,
            room_bytes=10**6,
            now_ms=now_ms,
        )
        judged = {verdict.place: verdict for verdict in answer.verdicts}
        for place, (due_ms, job) in enumerate(jobs):
            verdict = judged.get(place)
            if verdict is None:
                heapq.heappush(self.lane, (due_ms, job))
            elif verdict.fate is Fate.TAKEN:
                self.grants.append(now_ms)
            elif verdict.fate is Fate.PARKED:
                self._moved(job)
                heapq.heappush(self.line, job)
            else:
                self._lane(Called(LIMIT, job, verdict.due_ms))
        for call in answer.called:
            self._lane(call)
        taken = sum(verdict.fate is Fate.TAKEN for verdict in answer.verdicts)
        dues = [verdict.due_ms for verdict in answer.verdicts if verdict.due_ms is not None]
        return taken, answer.again, [*dues, *(call.due_ms or now_ms for call in answer.called)]

    def _moved(self, job: int) -> None:
        self.moves[job] += 1

    def _lane(self, call: Called[int]) -> None:
        assert call.due_ms is not None
        self._moved(call.job)
        self.called[call.job] = call.limit
        heapq.heappush(self.lane, (call.due_ms, call.job))


@pytest.mark.parametrize(("workers", "free", "latency_ms"), [(1, 2, (2, 6)), (3, 8, (2, 6)), (2, 16, (5, 15))])
def test_a_limit_is_used_up_to_the_last_run(workers: int, free: int, latency_ms: tuple[int, int]) -> None:
    dice, run = random.Random(7), Run()
    awake: list[tuple[float, int]] = [(0.0, worker) for worker in range(workers)]
    busy: list[list[float]] = [[] for _ in range(workers)]
    alarms: list[list[int]] = [[] for _ in range(workers)]
    judged_ms = 0
    while awake[0][0] < SECONDS * 1_000:
        now, worker = heapq.heappop(awake)
        busy[worker] = [end for end in busy[worker] if end > now]
        if len(busy[worker]) == free:
            heapq.heappush(awake, (min(busy[worker]), worker))
            continue
        answered = now + dice.uniform(*latency_ms)
        judged_ms = max(judged_ms, int(answered) - 1)
        taken, again, dues = run.claim(free - len(busy[worker]), judged_ms)
        busy[worker] += [answered + 1] * taken
        heap = alarms[worker]
        for due_ms in dues:
            heapq.heappush(heap, due_ms)
        while heap and heap[0] <= judged_ms:
            heapq.heappop(heap)
        idle_until = min(answered + 1_000 + dice.uniform(0, 100), heap[0] if heap else float("inf"))
        heapq.heappush(awake, (answered if taken or again else max(answered, idle_until), worker))

    grants = run.grants
    assert all(later - earlier >= 1_000 for earlier, later in zip(grants, grants[24:], strict=False))
    per_second = Counter((at_ms - grants[0]) // 1_000 for at_ms in grants)
    assert len(grants) >= 24 * SECONDS * 0.98
    assert min(per_second[second] for second in range(SECONDS - 1)) >= 23
    parked = [moves for job, moves in run.moves.items() if moves > 1]
    assert sum(parked) / len(parked) <= 2.1, "once into the line, once out of it"
