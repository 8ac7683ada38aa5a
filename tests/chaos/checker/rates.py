"""Rate windows: in no stretch of a window's length do more runs begin than it allows, and every run is charged."""

import collections
import itertools
from collections.abc import Iterator
from typing import Final

from runwick.contracts.limits import DEFER_JITTER_MS, DEFER_MIN_MS, LimitKind, RateNeed
from runwick.policy.limit_ids import rate_id
from tests.chaos.history import History, LimitChange, StoredWindow

_FLOOR_MS: Final = DEFER_MIN_MS + DEFER_JITTER_MS + 10
_WITHIN_AN_ACT_MS: Final = 50


def rates_are_kept(history: History) -> Iterator[str]:
    """At each grant at most so many lie within the window that ends with it; each claim is one grant of each of its
    windows, never given back; and no job is promised a leaving that is another's."""
    grants: dict[bytes, list[int]] = collections.defaultdict(list)
    for change in history.limit_log:
        if change.what == "grant" and change.limit is not None:
            grants[change.limit].append(change.value or 0)
    claims = _claims(history)
    for window in history.windows:
        times = grants[window.id]
        for wrong in _within(window, times):
            yield f"window {window.key}: {wrong}"
        if not len(times) == window.granted == claims[window.id]:
            yield f"window {window.key}: {window.granted} counted, {len(times)} grants for {claims[window.id]} claims"
        if window.line and not any(not job.record.state.terminal for job in history.jobs):
            yield f"window {window.key}: {window.line} stand in line at rest"
    yield from _promised_once(history)


def _within(window: StoredWindow, times_ms: list[int]) -> Iterator[str]:
    for earlier, later in itertools.pairwise(times_ms):
        if later < earlier:
            yield f"a grant at {later} after one at {earlier}"
    for first, past in zip(times_ms, times_ms[window.most :], strict=False):
        if past - first < window.window_ms:
            yield f"{window.most + 1} grants within {past - first} ms, of {window.most} in {window.window_ms}"


def _claims(history: History) -> collections.Counter[bytes]:
    """How often each window was to be charged. A claim of a job with windows begins it, so it left its row, or it was
    given back."""
    claims: collections.Counter[bytes] = collections.Counter()
    for job in history.jobs:
        wanted = history.wanted.get(job.record.job_id)
        times = len(job.record.attempts) + history.given_back.get(job.record.job_id, 0)
        for limit in {_id(history, need) for need in wanted.rates} if wanted is not None else ():
            claims[limit] += times
    return claims


def _id(history: History, need: RateNeed) -> bytes:
    length_ms = need.window_ms if need.kind is LimitKind.RESOURCE else None
    return rate_id(history.application, need.kind, need.key, length_ms)


def _promised_once(history: History) -> Iterator[str]:
    """The leaving of one grant is promised to one job. A promise that its job gave up is given again for the latest
    leaving, while somebody else may use the room that is there earlier; so those under way may be more than the window
    allows, but never twice as many. It has to stand for a while: within one act the log's lines are in any order."""
    windows = {window.id: window for window in history.windows}
    promises = _Promises()
    since_ms: dict[bytes, int] = {}
    for at_ms, changes in itertools.groupby(history.limit_log, lambda change: change.at_ms):
        for change in changes:
            promises.take_in(change)
        crowds = {limit: promises.later_than(limit, at_ms) for limit in windows}
        excess = {limit for limit, jobs in crowds.items() if jobs > 2 * windows[limit].most}
        since_ms = {limit: since_ms.get(limit, at_ms) for limit in excess}
        for limit in [limit for limit in since_ms if at_ms - since_ms[limit] > _WITHIN_AN_ACT_MS]:
            yield f"window {windows[limit].key}: {crowds[limit]} jobs are promised what leaves later than {at_ms}"
            return


class _Promises:
    """Who is promised what, line by line. A due time that keeps the least distance from now is no promise of a moment:
    it may be anybody's."""

    def __init__(self) -> None:
        self._dues_ms: dict[bytes, dict[bytes, int]] = collections.defaultdict(dict)
        """By limit and job."""
        self._limits: dict[bytes, bytes] = {}

    def take_in(self, change: LimitChange) -> None:
        if change.job_id is None or change.what not in ("promise", "settled", "over"):
            return
        if (before := self._limits.pop(change.job_id, None)) is not None:
            del self._dues_ms[before][change.job_id]
        due_ms = change.value or 0
        if change.what == "promise" and change.limit is not None and due_ms > change.at_ms + _FLOOR_MS:
            self._limits[change.job_id] = change.limit
            self._dues_ms[change.limit][change.job_id] = due_ms

    def later_than(self, limit: bytes, at_ms: int) -> int:
        return sum(due_ms > at_ms for due_ms in self._dues_ms[limit].values())
