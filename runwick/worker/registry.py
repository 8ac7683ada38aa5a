"""Every attempt this process holds, from the claim's answer until its settlement has committed.

    claimed ──▶ finalizing ──▶ gone
       └───────▶ lost ───────▶ gone        (the lease ran out here: nothing is written for it, ever)

The heartbeat renews exactly what the registry holds, so a row that nothing holds runs out its lease. Its size is the
number of tickets in use: what bounds memory when the store is slow. Each pool has a share of the tickets, and no pool
can use another's.
"""

import enum
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from runwick.contracts.activity import Mark
from runwick.contracts.attempts import Attempt, Held
from runwick.contracts.cancelling import CancellationCause
from runwick.worker.timings import HELD_MAX, PAYLOADS_MAX_BYTES

_NOTHING: Final = CancellationCause(0)


class Phase(enum.Enum):
    CLAIMED = enum.auto()
    """Handed to the backend, or about to be."""
    FINALIZING = enum.auto()
    """Ended; its settlement or release is being written. Never declared lost: the write itself finds out."""
    LOST = enum.auto()
    """The lease ran out here; waiting for the backend to confirm that the run has ended."""


_CLAIMED, _FINALIZING, _LOST = Phase
"""Asked for with every attempt, and before Python 3.12 looking a member up in its class is a call."""


class Share:
    """What one pool may hold of what its worker may, and what it holds now."""

    __slots__ = ("attempts_max", "held", "payload_bytes", "payloads_max_bytes")

    def __init__(self) -> None:
        self.attempts_max = 0
        self.payloads_max_bytes = 0
        self.held = 0
        self.payload_bytes = 0

    @property
    def tickets(self) -> int:
        """How many more attempts it may hold."""
        return self.attempts_max - self.held if self.payload_bytes < self.payloads_max_bytes else 0

    @property
    def room_bytes(self) -> int:
        """How many more bytes of payloads it may hold."""
        return self.payloads_max_bytes - self.payload_bytes

    def allow(self, size: int, total: int) -> None:
        """Let a pool of this size, in a worker of that size, hold what can run in it at once, and its part of the
        rest. What it holds beyond that it keeps until it has ended."""
        self.attempts_max = size + max(1, HELD_MAX * size // total)
        self.payloads_max_bytes = PAYLOADS_MAX_BYTES * size // total


class Entry:
    """One held attempt."""

    __slots__ = ("asked", "attempt", "deadline_s", "mark_told", "phase", "share")

    def __init__(self, attempt: Attempt, deadline_s: float, share: Share) -> None:
        self.attempt = attempt
        self.deadline_s = deadline_s
        """On the steady clock: past it the lease counts as lost here, before the store would give it away."""
        self.phase = _CLAIMED
        self.share = share
        self.asked = _NOTHING
        """Why it was asked to stop, as far as that came from the store."""
        self.mark_told = False
        """Whether the store knows that its run has begun."""


class Registry:
    """Entries by the store's job key. One job is held at most once: its lease says so."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def owed(self) -> int:
        """How many of them something may still be written for: all that are not lost."""
        return sum(entry.phase is not _LOST for entry in self._entries.values())

    @property
    def attempt_ids(self) -> set[bytes]:
        """Of all of them."""
        return {entry.attempt.attempt_id for entry in self._entries.values()}

    def add(self, attempts: Iterable[Attempt], deadline_s: float, share: Share) -> None:
        """Hold these from now on, for the pool whose share that is."""
        entries = self._entries
        count = payload_bytes = 0
        for attempt in attempts:
            if attempt.job in entries:  # lost earlier, and its run has not ended: that one has no ticket any more
                self.remove([entries[attempt.job].attempt])
            entries[attempt.job] = Entry(attempt, deadline_s, share)
            count += 1
            payload_bytes += attempt.payload_bytes
        share.held += count
        share.payload_bytes += payload_bytes

    def begun(self, attempt: Attempt) -> float | None:
        """Replace a reserved attempt by what `begin` made of it; answers its deadline.

        None when its lease was lost meanwhile: then it is let go, and must not be run.
        """
        entry = self._entries.get(attempt.job)
        if entry is None or entry.attempt.claim_token != attempt.claim_token or entry.phase is _LOST:
            self.remove([attempt])
            return None
        entry.attempt = attempt
        return entry.deadline_s

    def ask(self, lease: Held, cause: CancellationCause) -> Attempt | None:
        """Note that the run under this lease is asked to stop; answers it when that is news for a run of ours.

        What has ended, was lost, or is held under another token is none.
        """
        entry = self._claimed(lease.job, lease.claim_token)
        if entry is None or cause in entry.asked:
            return None
        entry.asked |= cause
        return entry.attempt

    def is_asked(self, attempt: Attempt) -> bool:
        """Whether it was asked to stop before it could be handed over."""
        entry = self._claimed(attempt.job, attempt.claim_token)
        return entry is not None and bool(entry.asked)

    def untold(self, marks: Iterable[Mark]) -> list[Mark]:
        """Those of these marks that the store does not know of runs that are still ours."""
        return [
            mark
            for mark in marks
            if (entry := self._claimed(mark.job, mark.claim_token)) is not None and not entry.mark_told
        ]

    def told(self, marks: Iterable[Mark]) -> None:
        """The store knows these now."""
        for mark in marks:
            if (entry := self._claimed(mark.job, mark.claim_token)) is not None:
                entry.mark_told = True

    def _claimed(self, job: int, claim_token: bytes) -> Entry | None:
        """The entry of a run that is ours and has not ended."""
        entry = self._entries.get(job)
        if entry is None or entry.phase is not _CLAIMED or entry.attempt.claim_token != claim_token:
            return None
        return entry

    def finalizing(self, attempt: Attempt) -> bool:
        """Move an attempt to its last phase; False when it was lost meanwhile, and nothing may be written for it."""
        entry = self._entries.get(attempt.job)
        if entry is None or (entry.attempt is not attempt and entry.attempt.claim_token != attempt.claim_token):
            return False
        if entry.phase is _LOST:
            self.remove([attempt])
            return False
        entry.phase = _FINALIZING
        return True

    def remove(self, attempts: Iterable[Attempt]) -> None:
        """Let go of these: their write has been answered."""
        entries = self._entries
        for attempt in attempts:
            entry = entries.get(attempt.job)
            if entry is not None and entry.attempt.claim_token == attempt.claim_token:
                del entries[attempt.job]
                share = entry.share
                share.held -= 1
                share.payload_bytes -= attempt.payload_bytes

    def held(self, jobs: Collection[int] | None = None) -> list[Held]:
        """What to renew; of these jobs, or of all."""
        return [
            Held(job, entry.attempt.claim_token)
            for job, entry in self._entries.items()
            if entry.phase is not _LOST and (jobs is None or job in jobs)
        ]

    def renewed(
        self, held: Sequence[Held], except_for: frozenset[int], deadline_s: float, now_s: float
    ) -> dict[bytes, float]:
        """Re-arm the deadline of what was renewed, counted from the start of that call.

        Not of what has passed it by now, `now_s`: the answer came too late, and that lease is lost. Answers the
        deadlines of runs that go on, by attempt id.
        """
        extended: dict[bytes, float] = {}
        for item in held:
            entry = self._entries.get(item.job)
            if entry is None or item.job in except_for or entry.attempt.claim_token != item.claim_token:
                continue
            if entry.deadline_s > now_s:
                entry.deadline_s = max(entry.deadline_s, deadline_s)
                if entry.phase is _CLAIMED:
                    extended[entry.attempt.attempt_id] = entry.deadline_s
        return extended

    def lose(self, leases: Iterable[Held]) -> list[Attempt]:
        """Declare these leases lost for good; answers those that were still in the backend's hands.

        A job that was claimed again meanwhile is held under another token, and that lease stands.
        """
        lost = []
        for item in leases:
            entry = self._claimed(item.job, item.claim_token)
            if entry is None:
                continue
            entry.phase = _LOST
            lost.append(entry.attempt)
        return lost

    def lose_all(self) -> list[Attempt]:
        """Declare every lease lost, also those whose end is being written: nothing is known to be ours any more.

        Answers those that were still in the backend's hands.
        """
        ended = [entry.attempt for entry in self._entries.values() if entry.phase is _FINALIZING]
        self.remove(ended)
        return self.lose(self.held())

    def past_deadline(self, now_s: float) -> list[Held]:
        """What counts as lost by the local clock."""
        return [
            Held(job, entry.attempt.claim_token)
            for job, entry in self._entries.items()
            if entry.phase is _CLAIMED and entry.deadline_s <= now_s
        ]
