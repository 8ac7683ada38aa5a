"""What ends attempts and generations, collected by an act and written together at its end.

    attempt ended ──▶ attempt row [+ detail] ──▶ the job waits again: its hot row is freed
                                             └─▶ the generation ends: closing row, the hot row goes

Settlements, recoveries and expiries all write through here, so that positions, revisions and legal moves are kept
in one place. It decides nothing: the settlement says what becomes of the job.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from runwick.contracts.errors import SettlementRejected
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import BlackBox, Death, ErrorDetail, Outcome, OutcomeKind, Settlement
from runwick.contracts.states import LEGAL_MOVES, JobState
from runwick.stores.sqlite.leased import json_list, json_text
from runwick.stores.steps import Step, Steps

_LEGAL: Final = {state.value: moves for state, moves in LEGAL_MOVES.items()}
_RUNNING: Final = JobState.RUNNING.value
_SUCCEEDED: Final = JobState.SUCCEEDED
_SUCCESS: Final = OutcomeKind.SUCCEEDED
_ATTEMPTS_AT_ONCE: Final = 16
"""Rows of the statements that insert attempts."""
_NO_JOB: Final = 0
"""What fills them up. Not None, which costs ten times as much to bind as a number."""
_json_of: Final = msgspec.json.Encoder().encode
_PARAMETERS: Final = {"end_attempt": 5 + 6 * _ATTEMPTS_AT_ONCE, "end_attempt_otherwise": 5 + 8 * _ATTEMPTS_AT_ONCE}


class Endings:
    """Collects, then writes one statement for everything that ended in the same way."""

    def __init__(self, position: int, now_ms: int) -> None:
        self.position = position
        """The next one in commit order."""
        self._now_ms = now_ms
        self._outcomes: defaultdict[tuple[OutcomeKind, str | None], list[Settlement]] = defaultdict(list)
        self._closed: defaultdict[tuple[JobState, str | None], list[int]] = defaultdict(list)
        self._retries: list[tuple[object, ...]] = []
        self._unstarted: list[tuple[object, ...]] = []

    @classmethod
    def opened(cls, now_ms: int) -> Steps["Endings"]:
        """Start at the next position in commit order."""
        ((position,),) = yield Step("next_position")
        return cls(position, now_ms)

    def settle(self, state: str, settlement: Settlement) -> None:
        """End an attempt whose job stands in `state`, as the settlement says.

        Raises:
            SettlementRejected: the job's state does not allow the move.
        """
        _check_move(state, settlement)
        job, outcome = settlement.attempt.job, settlement.outcome
        self._outcomes[outcome.kind, outcome.code].append(settlement)
        if settlement.state is not JobState.RETRYING:
            self.close(job, settlement.state, settlement.code)
            return
        crashed = outcome.kind is OutcomeKind.CRASHED
        expiry_counts_from_ms = self._now_ms + (settlement.delay_ms or 0)
        self._retries.append((job, self._due_at_ms(settlement), settlement.code, crashed, expiry_counts_from_ms))

    def settle_running(self, settlements: Iterable[Settlement]) -> None:
        """End attempts that run, as `settle` does; those that succeeded come first."""
        succeeded: list[Settlement] = []
        others: list[Settlement] = []
        for settlement in settlements:
            outcome = settlement.outcome
            plain = outcome.kind is _SUCCESS and outcome.code is None
            plain = plain and settlement.state is _SUCCEEDED and settlement.code is None
            (succeeded if plain else others).append(settlement)
        if succeeded:
            self._outcomes[_SUCCESS, None] += succeeded
            self._closed[_SUCCEEDED, None] += [settlement.attempt.job for settlement in succeeded]
        for settlement in others:
            self.settle(_RUNNING, settlement)

    def abandon(self, state: str, settlement: Settlement) -> None:
        """End an attempt whose lease ran out. One that never began leaves no row and gives its number back."""
        if state == JobState.RUNNING.value:
            self.settle(state, settlement)
            return
        _check_move(state, settlement)
        job = settlement.attempt.job
        if settlement.state is not JobState.RETRYING:
            self.close(job, settlement.state, settlement.code)
            return
        self._unstarted.append((job, self._due_at_ms(settlement), settlement.code))

    def close(self, job: int, state: JobState, code: str | None) -> None:
        """End the generation of a live job."""
        self._closed[state, code].append(job)

    def expire(self, jobs: Iterable[int]) -> None:
        """End the generations of live jobs that had not begun by their expiry."""
        for job in jobs:
            self.close(job, JobState.FAILED, "expired")

    def cancel(self, jobs: Iterable[int]) -> None:
        """End the generations of live jobs that somebody cancelled before they began."""
        for job in jobs:
            self.close(job, JobState.CANCELLED, "cancel_requested")

    def write(self) -> Steps[None]:
        """Write everything: attempts first, closings behind them, so that positions tell what followed from what."""
        for (outcome, code), settlements in self._outcomes.items():
            yield from self._write_attempts(outcome, code, settlements)
        if self._retries:
            yield Step("wait_retry", self._retries, many=True)
        if self._unstarted:
            yield Step("wait_unstarted", self._unstarted, many=True)
        for (state, code), jobs in self._closed.items():
            numbers = json_list(jobs)
            yield Step("end_generation", (numbers, self.position, state.value, code, self._now_ms))
            yield Step("end_hot", (numbers,))
            self.position += len(jobs)

    def _write_attempts(self, kind: OutcomeKind, code: str | None, settlements: list[Settlement]) -> Steps[None]:
        succeeded = kind is OutcomeKind.SUCCEEDED
        statement = "end_attempt" if succeeded else "end_attempt_otherwise"
        most = _PARAMETERS[statement]
        details: list[tuple[object, ...]] = []
        for start in range(0, len(settlements), _ATTEMPTS_AT_ONCE):
            some = settlements[start : start + _ATTEMPTS_AT_ONCE]
            ids = b"".join([settlement.attempt.attempt_id for settlement in some])
            values: list[object] = [self.position, kind.value, code, self._now_ms, ids]
            for position, settlement in enumerate(some, self.position):
                outcome = settlement.outcome
                usage = outcome.usage
                if usage is None:
                    values += (settlement.attempt.job, outcome.begun_at_ms, None, None, None, None)
                else:
                    measured = usage.wall_us, usage.cpu_us, usage.rss_peak_bytes, _json_of(usage).decode()
                    values += (settlement.attempt.job, outcome.begun_at_ms, *measured)
                if not succeeded:
                    delay_ms = settlement.delay_ms if settlement.state is JobState.RETRYING else None
                    values += (delay_ms, _json(outcome.death))
                if outcome.error is not None or outcome.result is not None or outcome.black_box is not None:
                    details.append((position, self._now_ms, *_detail(outcome)))
            values += [_NO_JOB] * (most - len(values))
            yield Step(statement, values)
            self.position += len(some)
        if details:
            yield Step("end_detail", details, many=True)

    def _due_at_ms(self, settlement: Settlement) -> int | None:
        return None if settlement.delay_ms is None else self._now_ms + settlement.delay_ms


def under_cancel(settlement: Settlement) -> Settlement:
    """What a settlement writes where a cancel stands on its job: itself, unless it says something else for that."""
    instead = settlement.if_cancelled
    if instead is None:
        return settlement
    outcome = msgspec.structs.replace(settlement.outcome, kind=instead.outcome, code=instead.outcome_code)
    return Settlement(settlement.attempt, outcome, JobState.CANCELLED, instead.code)


def _check_move(state: str, settlement: Settlement) -> None:
    if settlement.state not in _LEGAL[state]:
        raise SettlementRejected(
            "settlement_rejected",
            f"job {id_text(settlement.attempt.job_id)} is {state} and cannot become {settlement.state.value}; "
            "begin the attempt first, or release it",
        )


def _detail(outcome: Outcome) -> tuple[object, ...]:
    """error, result, black_box."""
    return _json(outcome.error), outcome.result, _json(outcome.black_box)


def _json(value: ErrorDetail | Death | BlackBox | None) -> str | None:
    return None if value is None else json_text(value)
