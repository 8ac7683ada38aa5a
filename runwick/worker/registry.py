"""Every attempt this process holds, from the claim's answer until its settlement has committed.

    claimed ──▶ finalizing ──▶ gone
       └───────▶ lost ───────▶ gone        (the lease ran out here: nothing is written for it, ever)

The heartbeat renews exactly what the registry holds, so a row that nothing holds runs out its lease. Its size is the
number of tickets in use: what bounds memory when the store is slow.
"""

import enum
from collections.abc import Iterable, Sequence

from runwick.contracts.attempts import Attempt, Held


class Phase(enum.Enum):
    CLAIMED = enum.auto()
    """Handed to the backend, or about to be."""
    FINALIZING = enum.auto()
    """Ended; its settlement or release is being written. Never declared lost: the write itself finds out."""
    LOST = enum.auto()
    """The lease ran out here; waiting for the backend to confirm that the run has ended."""


class Entry:
    """One held attempt."""

    __slots__ = ("attempt", "deadline_s", "phase")

    def __init__(self, attempt: Attempt, deadline_s: float) -> None:
        self.attempt = attempt
        self.deadline_s = deadline_s
        """On the steady clock: past it the lease counts as lost here, before the store would give it away."""
        self.phase = Phase.CLAIMED


class Registry:
    """Entries by the store's job key. One job is held at most once: its lease says so."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, attempts: Iterable[Attempt], deadline_s: float) -> None:
        """Hold these from now on."""
        for attempt in attempts:
            self._entries[attempt.job] = Entry(attempt, deadline_s)

    def begun(self, attempt: Attempt) -> None:
        """Replace a reserved attempt by what `begin` made of it."""
        entry = self._entries.get(attempt.job)
        if entry is not None:
            entry.attempt = attempt

    def finalizing(self, attempt: Attempt) -> bool:
        """Move an attempt to its last phase; False when it was lost meanwhile, and nothing may be written for it."""
        entry = self._entry_of(attempt)
        if entry is None:
            return False
        if entry.phase is Phase.LOST:
            del self._entries[attempt.job]
            return False
        entry.phase = Phase.FINALIZING
        return True

    def remove(self, attempts: Iterable[Attempt]) -> None:
        """Let go of these: their write has been answered."""
        for attempt in attempts:
            if self._entry_of(attempt) is not None:
                del self._entries[attempt.job]

    def held(self) -> list[Held]:
        """What to renew."""
        return [
            Held(job, entry.attempt.claim_token)
            for job, entry in self._entries.items()
            if entry.phase is not Phase.LOST
        ]

    def renewed(self, held: Sequence[Held], except_for: frozenset[int], deadline_s: float) -> None:
        """Re-arm the deadline of what was renewed, counted from the start of that call."""
        for item in held:
            entry = self._entries.get(item.job)
            if entry is not None and item.job not in except_for and entry.attempt.claim_token == item.claim_token:
                entry.deadline_s = max(entry.deadline_s, deadline_s)

    def lose(self, jobs: Iterable[int]) -> list[Attempt]:
        """Declare these leases lost for good; answers those that were still in the backend's hands."""
        lost = []
        for job in jobs:
            entry = self._entries.get(job)
            if entry is not None and entry.phase is Phase.CLAIMED:
                entry.phase = Phase.LOST
                lost.append(entry.attempt)
        return lost

    def past_deadline(self, now_s: float) -> list[int]:
        """Jobs whose lease counts as lost by the local clock."""
        return [
            job for job, entry in self._entries.items() if entry.phase is Phase.CLAIMED and entry.deadline_s <= now_s
        ]

    def _entry_of(self, attempt: Attempt) -> Entry | None:
        entry = self._entries.get(attempt.job)
        if entry is None or entry.attempt.claim_token != attempt.claim_token:
            return None
        return entry
