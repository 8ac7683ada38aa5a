"""Judge: what a claim takes where its candidates have limits, or their queue or type has.

::

    read the candidates ──▶ their limits ──▶ their lines' heads ──▶ `policy.admission` ──▶ write what it decided

Plain jobs among them are judged alike, so that what is taken is what any order of these rules takes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runwick.contracts.attempts import CLAIM_MAX_ATTEMPTS, PAYLOAD_INLINE_MAX_BYTES, ClaimPlan
from runwick.policy.admission import Admitted, Candidate, Fate, Verdict, admit, candidates_per_turn
from runwick.policy.lanes import RANK
from runwick.stores.sqlite.intake import Intake
from runwick.stores.sqlite.interned import Interned
from runwick.stores.sqlite.leased import json_list
from runwick.stores.sqlite.limits import Limits, OpenLines, ids_of
from runwick.stores.sqlite.ready import WINDOWED, Entry, Turn, ready
from runwick.stores.steps import Step, Steps


class _Judged(NamedTuple):
    """A candidate, and what else of its row is written by."""

    job: int
    rank: int
    reserved: bool
    """Whether its payload is read later, so that the claim cannot begin it."""
    candidate: Candidate


class Judgement:
    """What becomes of a claim's candidates."""

    def __init__(self, limits: Limits, judged: Sequence[_Judged], admitted: Admitted[int]) -> None:
        self._limits = limits
        self._judged = judged
        self._of: defaultdict[Fate, list[Verdict]] = defaultdict(list)
        for verdict in admitted.verdicts:
            self._of[verdict.fate].append(verdict)
        self.admitted = admitted

    @property
    def jobs(self) -> list[int]:
        """To be leased, in claim order."""
        return self._jobs(Fate.TAKEN)

    @property
    def reserved(self) -> list[int]:
        return [job for job in self.jobs if job in {one.job for one in self._judged if one.reserved}]

    @property
    def expired(self) -> list[int]:
        return self._jobs(Fate.EXPIRED)

    def count(self, fate: Fate) -> int:
        return len(self._of[fate])

    def alarms(self, now_ms: int) -> tuple[int, ...]:
        """In how many milliseconds jobs become due that were called or promised a place."""
        dues = [verdict.due_ms for verdict in self._of[Fate.DEFERRED]]
        dues += [call.due_ms for call in self.admitted.called]
        return tuple(sorted(0 if due_ms is None else max(0, due_ms - now_ms) for due_ms in dues))

    def write(self, claim: int | None) -> Steps[None]:
        """Write it, but for what a lease changes.

        Args:
            claim: the number of the claim; None when it takes nothing.
        """
        taken = [(self._judged[verdict.place], dict(verdict.fences)) for verdict in self._of[Fate.TAKEN]]
        holds = [(one.job, scope, claim, fences.get(scope)) for one, fences in taken for scope in one.candidate.scopes]
        if holds:
            yield Step("hold_add", holds, many=True)
        if changed := [
            (one.job, len(one.candidate.scopes))
            for one, _ in taken
            if one.candidate.scopes or one.candidate.called is not None
        ]:
            yield Step("claim_hold", changed, many=True)
        if parked := [
            (self._judged[verdict.place].job, verdict.limit, self._judged[verdict.place].rank)
            for verdict in self._of[Fate.PARKED]
        ]:
            yield Step("park", parked, many=True)
        if deferred := [
            (self._judged[verdict.place].job, verdict.limit, verdict.due_ms) for verdict in self._of[Fate.DEFERRED]
        ]:
            yield Step("call", deferred, many=True)
        yield from self._limits.write(self.admitted.called)

    def _jobs(self, fate: Fate) -> list[int]:
        return [self._judged[verdict.place].job for verdict in self._of[fate]]


def needs_judging(interned: Interned, intake: Intake, application: int, turns: Iterable[Turn]) -> bool:
    """Whether a queue or a job type in these turns has a scope."""
    return bool(intake.scopes) and any(
        intake.scopes_of(application, _queue(interned, turn.lane), _name(interned, kind))
        for turn in turns
        for kind in turn.kinds
    )


def judge(
    interned: Interned, intake: Intake, application: int, plan: ClaimPlan, turns: Sequence[Turn], now_ms: int
) -> Steps[Judgement]:
    """Decide about as many candidates of each turn as one claim looks at."""
    most = [turn.most for turn in turns]
    want = min(plan.free + plan.ahead, CLAIM_MAX_ATTEMPTS)
    entries: list[tuple[int, Entry]] = []
    for place, (turn, span) in enumerate(zip(turns, candidates_per_turn(most, want), strict=True)):
        if turn.kinds:
            entries += [(place, entry) for entry in (yield from ready(turn, span))]
    judged = yield from _candidates(interned, intake, application, entries, now_ms)
    candidates = [one.candidate for one in judged]
    limits, lines = Limits(), OpenLines(interned)
    called = Counter(each.called for each in candidates if each.called is not None)
    charged = Counter(limit for each in candidates for limit in each.rates) + called
    yield from limits.read((limit for each in candidates for limit in (*each.scopes, *called)), charged)
    calls = called + Counter({window.id: window.unpromised + charged[window.id] for window in limits.windows.values()})
    yield from lines.read(limits, calls)
    admitted = admit(
        candidates,
        limits.scopes,
        limits.windows,
        lines,
        most=most,
        want=want,
        free=plan.free,
        room_bytes=plan.payload_bytes,
        now_ms=now_ms,
    )
    return Judgement(limits, judged, admitted)


def _candidates(
    interned: Interned, intake: Intake, application: int, entries: Sequence[tuple[int, Entry]], now_ms: int
) -> Steps[list[_Judged]]:
    rows = yield Step("claim_needs", (json_list(entry[2] for _, entry in entries),))
    needs = {row[0]: row[1:] for row in rows}
    judged = []
    for turn, (_, job_id, job, ahead, payload_bytes, expires_at_ms, limited) in entries:
        lane, kind, called, scopes, rates = needs[job]
        of_all = intake.scopes_of(application, _queue(interned, lane), _name(interned, kind))
        candidate = Candidate(
            turn=turn,
            job_id=job_id,
            payload_bytes=payload_bytes,
            lone=not ahead,
            expired=expires_at_ms is not None and expires_at_ms <= now_ms,
            called=called,
            scopes=sorted({*ids_of(scopes), *of_all}),
            rates=sorted(set(ids_of(rates))),
        )
        rank = RANK[interned.lanes.values[lane][1].priority]
        reserved = payload_bytes > PAYLOAD_INLINE_MAX_BYTES and limited != WINDOWED
        judged.append(_Judged(job, rank, reserved, candidate))
    return judged


def _queue(interned: Interned, lane: int) -> str:
    return interned.lanes.values[lane][1].queue


def _name(interned: Interned, kind: int) -> str:
    return interned.kinds.values[kind][1].name
