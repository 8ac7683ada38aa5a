"""The limits of a memory store: scopes and rate windows by their ids, their lines, and what people read of them."""

from collections.abc import Callable, Iterator, Sequence

from runwick.contracts.limits import LimitKind, RateNeed, RateRecord, ScopeNeed, ScopeRecord
from runwick.policy.lanes import RANK
from runwick.policy.limit_ids import scope_id
from runwick.policy.limits import Scope, Window
from runwick.stores.memory.rows import JobRow, ScopeRow, WindowRow, window_of


class Limits:
    """All scopes and windows. Neither is ever deleted."""

    def __init__(self) -> None:
        self.scopes: dict[bytes, ScopeRow] = {}
        self.windows: dict[bytes, WindowRow] = {}

    def __getitem__(self, limit: bytes) -> Scope | Window:
        row = self.scopes.get(limit)
        return self.windows[limit].window if row is None else row.scope

    def declare(self, application: str, needs: Sequence[ScopeNeed]) -> None:
        """Create the scopes that are not there."""
        for need in needs:
            limit_id = scope_id(application, need.kind, need.key)
            if limit_id not in self.scopes:
                fenced = need.kind is LimitKind.RESOURCE
                scope = Scope(limit_id, capacity=need.capacity, in_use=0, fenced=fenced)
                self.scopes[limit_id] = ScopeRow(application, need.kind, need.key, scope)

    def declare_rates(self, application: str, needs: Sequence[RateNeed]) -> None:
        """Create the windows that are not there."""
        for need in needs:
            limit_id = window_of(application, need)
            if limit_id not in self.windows:
                window = Window(limit_id, most=need.max_executions, window_ms=need.window_ms)
                self.windows[limit_id] = WindowRow(application, need.kind, need.key, window)

    def scopes_of(self, row: JobRow) -> list[bytes]:
        """The scopes that a job must hold to run, as the store has them now, ascending."""
        command = row.command
        of_all = (
            scope_id(command.application, LimitKind.QUEUE, command.lane.queue),
            scope_id(command.application, LimitKind.JOB_TYPE, command.kind.name),
        )
        return sorted({*(limit for _, limit in row.resources), *(limit for limit in of_all if limit in self.scopes)})


class OpenLine:
    """The jobs of a limit's line as they stood when it was opened; see `runwick.policy.lines.Line`.

    Args:
        rows: all of them, in the order of their ids within each priority.
        is_paused: says so of an application's queue.
    """

    def __init__(self, rows: Sequence[JobRow], is_paused: Callable[[str, str], bool]) -> None:
        self._left = len(rows)
        self._ranks: list[Iterator[JobRow]] = []
        for priority in RANK:
            of_rank = (row for row in rows if row.command.lane.priority is priority)
            unpaused = [row for row in of_rank if not is_paused(row.command.application, row.command.lane.queue)]
            self._ranks.append(iter(unpaused))

    def take(self, rank: int) -> tuple[bytes, JobRow] | None:
        row = next(self._ranks[rank], None)
        if row is None:
            return None
        self._left -= 1
        return row.command.job_id, row

    def empty(self) -> bool:
        return not self._left


def scope_record(row: ScopeRow, *, waiting: bool) -> ScopeRecord:
    """A scope as people read it."""
    scope = row.scope
    return ScopeRecord(
        id=scope.id,
        kind=row.kind,
        key=row.key,
        capacity=scope.capacity,
        in_use=scope.in_use,
        waiting=waiting,
        revision=row.revision,
        fence=scope.fence,
    )


def rate_record(row: WindowRow, now_ms: int, *, waiting: bool) -> RateRecord:
    """A window as people read it. Reading does not move its time."""
    window = row.window
    time_ms = max(now_ms + window.shift_ms, window.last_ms)
    return RateRecord(
        id=window.id,
        kind=row.kind,
        key=row.key,
        max_executions=window.most,
        window_ms=window.window_ms,
        granted=window.granted,
        in_window=sum(at_ms + window.window_ms > time_ms for at_ms in window.slots.values()),
        waiting=waiting,
    )
