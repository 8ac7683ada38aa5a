"""Uniqueness keys: one live job per active key, one job per window key and window, and answers that are true.

When a dispatch was applied is known to lie between its first sending and its answer. So what is judged here is what
cannot have been true at any moment between the two.
"""

import collections
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runwick.contracts.dispatching import DuplicateMatch
from runwick.contracts.identity import id_text
from tests.chaos.history import Given, History, Wanted

Key = tuple[str, str]
"""A job's name and a key."""
_CONFLICT = "uniqueness_conflict"


def one_live_job_per_active_key(history: History) -> Iterator[str]:
    """At every commit at most one job with an active key is live; at rest no key is held by a job that has ended."""
    live: dict[Key, set[bytes]] = collections.defaultdict(set)
    for change in history.limit_log:
        wanted = history.wanted.get(change.job_id or b"")
        if change.what not in ("live", "over") or wanted is None or wanted.active_key is None:
            continue
        holders = live[wanted.name, wanted.active_key]
        if change.what == "over":
            holders.discard(wanted.job_id)
            continue
        holders.add(wanted.job_id)
        if len(holders) > 1:
            others = ", ".join(id_text(job_id) for job_id in holders)
            yield f"active key {wanted.active_key} of {wanted.name} has {len(holders)} live jobs: {others}"
    with_key = {job_id for job_id, wanted in history.wanted.items() if wanted.active_key is not None}
    lives = {job.record.job_id for job in history.jobs if not job.record.state.terminal} & with_key
    for job_id in set(history.keys_held) ^ lives:
        yield f"job {id_text(job_id)} {'is live without its key' if job_id in lives else 'has ended and holds a key'}"


class Told(NamedTuple):
    """One dispatch that was answered, with the times between which it was applied."""

    wanted: Wanted
    given: Given
    since_ms: int
    until_ms: int
    beside: Sequence[Wanted]
    """What was asked for in the same request."""


def keys_name_one_job(history: History) -> Iterator[str]:
    """A window key names one job for its window, which does not slide and is free right afterwards; an active key names
    one that lives; a conflict names a job that was another request's."""
    told = list(_told(history))
    yield from _created_apart(history)
    links = _links(history, told)
    for one in told:
        if one.given.match in (DuplicateMatch.ACTIVE, DuplicateMatch.ACTIVE_AND_WINDOW):
            yield from _by_active_key(history, one)
        if one.given.match in (DuplicateMatch.WINDOW, DuplicateMatch.ACTIVE_AND_WINDOW):
            yield from _by_window_key(history, one, links)
        if one.given.code == _CONFLICT:
            yield from _in_conflict(one, links)
        if one.given.job_id is not None and one.given.match is DuplicateMatch.NONE:
            yield from _created_in_time(history, one, links)


def _told(history: History) -> Iterator[Told]:
    """The first answer to each operation. A conflict is recorded nowhere, so each of them is an answer of its own."""
    since_ms: dict[bytes, int] = {}
    seen: set[bytes] = set()
    for call in history.dispatches:
        for wanted in call.asked.jobs:
            since_ms.setdefault(wanted.operation_id, call.asked.at_ms)
        if call.answer is None or call.ended == "unknown":
            continue
        for wanted, given in zip(call.asked.jobs, call.answer.given, strict=False):
            if given.code is not None:
                yield Told(wanted, given, call.asked.at_ms, call.answer.at_ms, call.asked.jobs)
            elif given.job_id is not None and wanted.operation_id not in seen:
                seen.add(wanted.operation_id)
                yield Told(wanted, given, since_ms[wanted.operation_id], call.answer.at_ms, call.asked.jobs)


class Link(NamedTuple):
    """One request that gave a window key to a job: by creating it, or by finding it through the active key."""

    job_id: bytes
    fingerprint: bytes | None
    earliest_ms: int
    """When it was applied, at the earliest."""
    latest_ms: float
    window_ms: int

    def may_hold(self, since_ms: int, until_ms: float) -> bool:
        """Whether the key can have been held at some moment between the two."""
        return self.earliest_ms <= until_ms and since_ms < self.latest_ms + self.window_ms


def _links(history: History, told: list[Told]) -> dict[Key, list[Link]]:
    links: dict[Key, list[Link]] = collections.defaultdict(list)
    for job in history.jobs:
        wanted = history.wanted.get(job.record.job_id)
        if wanted is not None and wanted.window_key is not None:
            at_ms = job.record.created_at_ms
            link = Link(wanted.job_id, wanted.fingerprint, at_ms, at_ms, wanted.window_ms)
            links[wanted.name, wanted.window_key].append(link)
    answered = {one.wanted.operation_id for one in told if one.given.job_id is not None}
    for one in told:
        wanted = one.wanted
        if one.given.match is DuplicateMatch.ACTIVE and wanted.window_key is not None and one.given.job_id is not None:
            link = Link(one.given.job_id, wanted.fingerprint, one.since_ms, one.until_ms, wanted.window_ms)
            links[wanted.name, wanted.window_key].append(link)
    for wanted in history.wanted.values():  # one that was never answered may have linked any job
        unknown = wanted.operation_id not in answered and wanted.job_id not in history.by_id
        if unknown and wanted.window_key is not None and wanted.active_key is not None:
            link = Link(b"", wanted.fingerprint, 0, math.inf, wanted.window_ms)
            links[wanted.name, wanted.window_key].append(link)
    return links


def _by_active_key(history: History, one: Told) -> Iterator[str]:
    job = history.by_id.get(one.given.job_id or b"")
    found = None if job is None else history.wanted.get(job.record.job_id)
    who = f"operation {id_text(one.wanted.operation_id)}"
    if job is None or found is None:
        return  # lost, which is told elsewhere
    if (found.name, found.active_key) != (one.wanted.name, one.wanted.active_key):
        yield f"{who} with active key {one.wanted.active_key} found a job with {found.active_key}"
    record = job.record
    ends = [history.ends.get((record.job_id, generation)) for generation in range(1, record.generation + 1)]
    last_ms = math.inf if None in ends else max(end.ended_at_ms for end in ends if end is not None)
    if last_ms < one.since_ms or one.until_ms < record.created_at_ms:
        yield f"{who} found job {id_text(record.job_id)} by its active key, which was not live at the time"


def _by_window_key(history: History, one: Told, links: dict[Key, list[Link]]) -> Iterator[str]:
    key = one.wanted.name, one.wanted.window_key or ""
    who = f"operation {id_text(one.wanted.operation_id)} with window key {one.wanted.window_key}"
    about = [link for link in links[key] if link.job_id in (one.given.job_id, b"")]
    if not about:
        yield f"{who} found a job that never had it"
    elif all(link.fingerprint != one.wanted.fingerprint for link in about):
        yield f"{who} found a job that was another request's"
    elif not any(link.may_hold(one.since_ms, one.until_ms) for link in about):
        late_ms = one.since_ms - max(link.latest_ms + link.window_ms for link in about)
        yield f"{who} found a job {late_ms} ms after its window was over"


def _in_conflict(one: Told, links: dict[Key, list[Link]]) -> Iterator[str]:
    """The other request may be another item of a batch of which nothing was written."""
    if any(_is_another(one.wanted, other) for other in one.beside):
        return
    key = one.wanted.name, one.wanted.window_key or ""
    about = [link for link in links[key] if link.job_id in (one.given.in_the_way, b"")]
    others = [link for link in about if link.fingerprint != one.wanted.fingerprint]
    if not any(link.may_hold(one.since_ms, one.until_ms) for link in others):
        who = f"operation {id_text(one.wanted.operation_id)}"
        yield f"{who} was refused its window key {one.wanted.window_key} for nothing"


def _is_another(wanted: Wanted, other: Wanted) -> bool:
    """Whether that is a different request with the same window key."""
    same_key = (wanted.name, wanted.window_key) == (other.name, other.window_key)
    return same_key and wanted.fingerprint != other.fingerprint


def _created_in_time(history: History, one: Told, links: dict[Key, list[Link]]) -> Iterator[str]:
    """No job was made while its window key was certainly another's."""
    job = history.by_id.get(one.given.job_id or b"")
    if job is None or one.wanted.window_key is None:
        return
    at_ms = job.record.created_at_ms
    for link in links[one.wanted.name, one.wanted.window_key]:
        if link.job_id != job.record.job_id and link.latest_ms < at_ms < link.earliest_ms + link.window_ms:
            yield (
                f"job {id_text(job.record.job_id)} was made with window key {one.wanted.window_key} while it was job "
                f"{id_text(link.job_id)}'s"
            )


def _created_apart(history: History) -> Iterator[str]:
    """Two jobs that were made with the same window key lie a window apart."""
    made: dict[Key, list[tuple[int, Wanted]]] = collections.defaultdict(list)
    for job in history.jobs:
        wanted = history.wanted.get(job.record.job_id)
        if wanted is not None and wanted.window_key is not None:
            made[wanted.name, wanted.window_key].append((job.record.created_at_ms, wanted))
    for (name, key), jobs in made.items():
        ordered = sorted(jobs, key=lambda one: one[0])
        for (first_ms, first), (second_ms, _) in itertools.pairwise(ordered):
            if second_ms - first_ms < first.window_ms:
                yield f"window key {key} of {name} made two jobs within {second_ms - first_ms} ms of {first.window_ms}"
