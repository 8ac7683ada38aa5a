"""A store in a few lists, for the policies of limits alone: it reads rows, asks the policy, and writes what came."""

import dataclasses
from collections.abc import Sequence

from runwick.policy.admission import Admitted, Candidate, Fate, Verdict, admit, candidates_per_turn
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import Called, Calling


class Read(dict[int, int]):
    """Slots as they were read: to look at another one is a fault."""

    def __init__(self, ring: dict[int, int], needed: Sequence[int], granted: int) -> None:
        super().__init__((slot, ring[slot]) for slot in needed if slot in ring)
        self._unread = {slot for slot in ring if slot not in needed}

    def get(self, slot: int, default: int | None = None) -> int | None:  # type: ignore[override]
        assert slot in self or slot not in self._unread, f"slot {slot} was not read"
        return super().get(slot, default)


@dataclasses.dataclass
class Row:
    job_id: bytes
    due_ms: int
    rank: int = 0
    scopes: tuple[bytes, ...] = ()
    rates: tuple[bytes, ...] = ()
    line: bytes | None = None
    called: bytes | None = None
    paused: bool = False
    expired: bool = False
    moves: int = 0


class Standing:
    """One limit's line as it stood."""

    def __init__(self, rows: list[Row]) -> None:
        self._ranks = [[row for row in rows if row.rank == rank] for rank in range(3)]

    def take(self, rank: int) -> tuple[bytes, Row] | None:
        for row in self._ranks[rank]:
            if not row.paused:
                self._ranks[rank].remove(row)
                return row.job_id, row
        return None

    def empty(self) -> bool:
        return not any(self._ranks)


class Ground:
    def __init__(self, scopes: Sequence[Scope] = (), windows: Sequence[Window] = ()) -> None:
        self.scopes = {scope.id: scope for scope in scopes}
        self.windows = {window.id: window for window in windows}
        self.waiting: dict[bytes, Row] = {}
        self.running: dict[bytes, Row] = {}
        self.now_ms = 1_000_000
        self.real_ms = 0
        self.grants: dict[bytes, list[int]] = {window.id: [] for window in windows}
        self.order: list[bytes] = []
        self._lines: dict[bytes, list[Row]] = {}

    def add(self, number: int, **fields: object) -> Row:
        row = Row(number.to_bytes(16), self.now_ms, **fields)  # type: ignore[arg-type]
        self.waiting[row.job_id] = row
        return row

    def in_line(self, limit: bytes) -> list[Row]:
        return sorted((row for row in self.waiting.values() if row.line == limit), key=lambda row: row.job_id)

    def due(self) -> list[Row]:
        rows = [row for row in self.waiting.values() if row.line is None and row.due_ms <= self.now_ms]
        return sorted(rows, key=lambda row: (row.due_ms, row.job_id))

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.real_ms += ms

    def calling(self) -> Calling[Row]:
        return Calling(lambda limit: Standing(self.in_line(limit)), self.now_ms)

    def claim(self, want: int = 8, free: int | None = None) -> Admitted[Row]:
        most = (want,)
        rows = self.due()[: candidates_per_turn(most, want)[0]]
        candidates = [
            Candidate(0, row.job_id, 1, False, row.expired, row.called, row.scopes, row.rates) for row in rows
        ]
        rings = {window.id: window.slots for window in self.windows.values()}
        for window in self.windows.values():
            needed = window.slots_needed(sum(window.id in (*row.rates, row.called) for row in rows))
            window.slots = Read(rings[window.id], needed, window.granted)
        answer = admit(
            candidates,
            self.scopes,
            self.windows,
            lambda limit: Standing(self.in_line(limit)),
            most=most,
            want=want,
            free=want if free is None else free,
            room_bytes=1_000,
            now_ms=self.now_ms,
        )
        for window in self.windows.values():
            window.slots = rings[window.id] | {slot: window.slots[slot] for slot in window.written}
            window.written.clear()
        self.call(answer.called)
        for verdict in answer.verdicts:
            self._apply(rows[verdict.place], verdict)
        return answer

    def call(self, called: Sequence[Called[Row]]) -> None:
        for call in called:
            call.job.line, call.job.called = None, call.limit
            call.job.moves += 1
            if call.due_ms is not None:
                call.job.due_ms = call.due_ms

    def _apply(self, row: Row, verdict: Verdict) -> None:
        row.moves += 1
        if verdict.fate is Fate.PARKED:
            row.line, row.called = verdict.limit, None
        elif verdict.fate is Fate.DEFERRED:
            assert verdict.due_ms is not None
            row.called, row.due_ms = verdict.limit, verdict.due_ms
        else:
            del self.waiting[row.job_id]
            if verdict.fate is Fate.TAKEN:
                row.called = None
                self.running[row.job_id] = row
                self.order.append(row.job_id)
                for window in row.rates:
                    self.grants[window].append(self.real_ms)

    def finish(self, row: Row) -> None:
        del self.running[row.job_id]
        calling = self.calling()
        for scope in map(self.scopes.__getitem__, row.scopes):
            calling.into_scope(scope, scope.free(1))
        self.call(calling.called)

    def cancel(self, row: Row) -> None:
        del self.waiting[row.job_id]
        calling = self.calling()
        if row.called is not None:
            calling.pass_on(self.scopes.get(row.called) or self.windows[row.called], row.due_ms)
        self.call(calling.called)

    def check(self) -> None:
        """What holds after every act, without any sweep."""
        for scope in self.scopes.values():
            assert scope.in_use == sum(scope.id in row.scopes for row in self.running.values())
            line = self.in_line(scope.id)
            assert scope.has_line or not line
            on_the_way = sum(row.called == scope.id for row in self.waiting.values())
            assert on_the_way >= min(scope.room, len(line)), "there is room, and nobody was called for it"
        for window in self.windows.values():
            line = self.in_line(window.id)
            assert window.has_line or not line
            assert 0 <= window.unpromised <= window.most
            if line:
                assert window.unpromised == 0, "somebody stands in line, and a leaving is promised to nobody"
                assert any(row.called == window.id for row in self.waiting.values()), "nobody will ever look again"
            times = self.grants[window.id]
            for place, at_ms in enumerate(times[window.most :]):
                assert at_ms - times[place] >= window.window_ms, "more than it allows, within one window"
