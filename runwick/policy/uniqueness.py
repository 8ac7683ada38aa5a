"""What a dispatch with uniqueness keys becomes: a new job, an existing one, or a conflict.

::

    window key held by w     active key held by a     answer
    ─────────────────────    ─────────────────────    ───────────────────────────────────────────────
    no                       no                       Create, both keys are the new job's
    no                       yes                      Reuse a (active); the window key is linked to a
    yes, other request       any                      Conflict uniqueness_conflict, names w
    yes, same request        no                       Reuse w (window)
    yes, same request        a is w                   Reuse w (active_and_window)
    yes, same request        a is another             Conflict uniqueness_composition_conflict, names w

A window key is held until its time is over, an active key as long as its job lives. Whoever calls has read both under
a lock, or proves afterwards that nothing came between.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from runwick.contracts.dispatching import Command, DuplicateMatch
from runwick.contracts.errors import ItemFailure, UniquenessConflict
from runwick.contracts.identity import id_text
from runwick.policy.limit_ids import active_id, window_id


class Item(NamedTuple):
    """One dispatch that was not applied before."""

    ordinal: int
    """Its place in the caller's input, from 0."""
    command: Command
    policy: Hashable
    """The retry settings, or the store's number of them: equal means the same."""
    active: bytes | None
    """The id of its active key; None when it has none."""
    window: bytes | None
    """The id of its window key."""


class ActiveHolder(NamedTuple):
    """The live job that has an active key."""

    job: bytes
    """Its id, 16 bytes."""
    policy: Hashable


class WindowHolder(NamedTuple):
    """The job that a window key was first given to, or linked with; its row may be gone by now."""

    job: bytes
    policy: Hashable | None
    """None where the job is gone: it drifts from nothing."""
    fingerprint: bytes
    until_ms: int
    """Until when the key is held, exclusive, by the store's clock."""


class Create(NamedTuple):
    """A new job. It has the item's active key, and the item's window key from now on."""

    item: Item


class Reuse(NamedTuple):
    """An existing job; nothing is created."""

    item: Item
    job: bytes
    match: DuplicateMatch
    drift: bool
    links: bool
    """Whether the item's window key becomes this job's, from now on."""


class Conflict(NamedTuple):
    """Nothing is done."""

    item: Item
    code: str
    job: bytes
    """The existing job."""


Answer = Create | Reuse | Conflict


def item_of(ordinal: int, command: Command, policy: Hashable) -> Item:
    """One dispatch with the ids of its keys."""
    application, name = command.application, command.kind.name
    return Item(
        ordinal,
        command,
        policy,
        None if command.active_key is None else active_id(application, name, command.active_key),
        None if command.window_key is None else window_id(application, name, command.window_key),
    )


def resolve(
    items: Sequence[Item],
    active: Mapping[bytes, ActiveHolder],
    windows: Mapping[bytes, WindowHolder],
    now_ms: int,
    *,
    continue_on_conflict: bool,
) -> list[Answer]:
    """Decide for each item, in input order; each sees what the items before it made.

    Args:
        items: those that were not applied before; plain ones may be among them.
        active: who holds the items' active keys.
        windows: who holds their window keys; holders whose time is over count as none.
        now_ms: the store's time.

    Raises:
        UniquenessConflict: of the first item that meets one, unless `continue_on_conflict`.
    """
    live, held = dict(active), dict(windows)
    answers: list[Answer] = []
    for item in items:
        answer = _answer(item, live, held, now_ms)
        if isinstance(answer, Conflict) and not continue_on_conflict:
            raise conflict_error(answer)
        _note(answer, live, held, now_ms)
        answers.append(answer)
    return answers


def window_until_ms(item: Item, now_ms: int) -> int:
    """Until when the window key of an item is held that was created or linked now."""
    return now_ms + (item.command.window_ms or 0)


def conflict_error(conflict: Conflict) -> UniquenessConflict:
    """The error of a dispatch, or of a whole batch, that met this conflict."""
    ordinal, message = conflict.item.ordinal, conflict_text(conflict)
    return UniquenessConflict(conflict.code, message, conflicting_job_id=id_text(conflict.job), ordinal=ordinal)


def conflict_failure(conflict: Conflict) -> ItemFailure:
    """The failure of the one item of a batch that goes on without it."""
    return ItemFailure(conflict.item.ordinal, conflict.code, conflict_text(conflict), id_text(conflict.job))


def conflict_text(conflict: Conflict) -> str:
    """What happened, for people: the keys, never the payload."""
    command, other = conflict.item.command, id_text(conflict.job)
    if conflict.code == "uniqueness_conflict":
        return (
            f'window key "{command.window_key}" of job "{command.kind.name}" was given to job {other} by a different '
            "request; nothing was written for it, use a key of its own for each request"
        )
    return (
        f'window key "{command.window_key}" of job "{command.kind.name}" belongs to job {other}, but active key '
        f'"{command.active_key}" to another one; nothing was written for it, wait until that one has ended'
    )


def _answer(item: Item, live: Mapping[bytes, ActiveHolder], held: Mapping[bytes, WindowHolder], now_ms: int) -> Answer:
    holder = None if item.active is None else live.get(item.active)
    first = None if item.window is None else held.get(item.window)
    if first is None or first.until_ms <= now_ms:
        if holder is None:
            return Create(item)
        drift = holder.policy != item.policy
        return Reuse(item, holder.job, DuplicateMatch.ACTIVE, drift, links=item.window is not None)
    if first.fingerprint != item.command.fingerprint:
        return Conflict(item, "uniqueness_conflict", first.job)
    if holder is not None and holder.job != first.job:
        return Conflict(item, "uniqueness_composition_conflict", first.job)
    match = DuplicateMatch.WINDOW if holder is None else DuplicateMatch.ACTIVE_AND_WINDOW
    drift = first.policy is not None and first.policy != item.policy
    return Reuse(item, first.job, match, drift, links=False)


def _note(answer: Answer, live: dict[bytes, ActiveHolder], held: dict[bytes, WindowHolder], now_ms: int) -> None:
    item = answer.item
    if isinstance(answer, Conflict):
        return
    if isinstance(answer, Create):
        job, policy = item.command.job_id, item.policy
        if item.active is not None:
            live[item.active] = ActiveHolder(job, policy)
    elif answer.links and item.active is not None:
        job, policy = answer.job, live[item.active].policy
    else:
        return
    if item.window is not None:
        fingerprint = item.command.fingerprint
        assert fingerprint is not None, "a window key comes with its request's fingerprint"
        held[item.window] = WindowHolder(job, policy, fingerprint, window_until_ms(item, now_ms))
