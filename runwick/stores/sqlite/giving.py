"""What an act gives back: places in scopes that ended attempts held, and calls that ended jobs have no use for.

Others are called for them in the same transaction: scopes come by id, then windows; within one the longest due first.
"""

from collections import Counter

from runwick.policy.lines import Calling
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list
from runwick.stores.sqlite.limits import Limits, OpenLines
from runwick.stores.steps import Step, Steps


class GivenBack:
    """Collects; `call_in` is the act's last step."""

    def __init__(self, interned: Interned) -> None:
        self._interned = interned
        self._holders: list[int] = []
        self._left: list[tuple[bytes, int, bytes]] = []

    def ended(self, job: int, holds: int) -> None:
        """The attempt under way of a job has ended, which held so many scopes."""
        if holds:
            self._holders.append(job)

    def left(self, called: bytes | None, due_at_ms: int, job_id: bytes) -> None:
        """A waiting job has ended; maybe it was called in for a limit."""
        if called is not None:
            self._left.append((called, due_at_ms, job_id))

    def call_in(self, now_ms: int) -> Steps[None]:
        """Free the places and call others. Without any limit it does nothing."""
        if not self._holders and not self._left:
            return
        places: Counter[bytes] = Counter()
        if self._holders:
            holders = json_list(self._holders)
            places.update(scope for (scope,) in (yield Step("holds_of", (holders,))))
            yield Step("holds_end", (holders,))
        passed = Counter(limit for limit, *_ in self._left)
        limits, lines = Limits(), OpenLines(self._interned)
        yield from limits.read([*places, *passed], passed)
        yield from lines.read(limits, places + passed)
        calling = Calling(lines, now_ms)
        for scope_id, scope in sorted(limits.scopes.items()):
            if freed := places[scope_id]:
                calling.into_scope(scope, scope.free(freed))
            for _ in range(passed[scope_id]):
                calling.pass_on(scope, now_ms)
        for limit, due_at_ms, _ in sorted(self._left):
            if limit in limits.windows:
                calling.pass_on(limits.windows[limit], due_at_ms)
        yield from limits.write(calling.called)
