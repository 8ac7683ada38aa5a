"""What the process backend tells people: one event per birth, death and refusal, each with a sentence."""

import enum

import msgspec

from runwick.contracts.attempts import Attempt


class EventKind(enum.StrEnum):
    """What happened."""

    EXECUTOR_DIED = "executor_died"
    """Not because it was asked to end. `attempt` is the run that it took with it."""
    EXECUTOR_STOPPED = "executor_stopped"
    """It was killed on purpose; the text says why. `attempt` is the run that was stopped by it."""
    EXECUTOR_RECYCLED = "executor_recycled"
    """Another one has its place, `milliseconds` after it became free for that; the text says why."""
    LIMIT_TOO_TIGHT = "limit_too_tight"
    """Executors reach the memory limit that replaces them with their first attempts: each serves for one or two."""
    EXECUTOR_REPLACED = "executor_replaced"
    """The replacement is ready, `milliseconds` after the death."""
    EXECUTOR_CONDEMNED = "executor_condemned"
    """It wrote what it may not into the hand-off, and is killed for it."""
    RESTART_DELAYED = "restart_delayed"
    """It died too often in a short time; the next one waits `milliseconds`."""
    BIRTH_FAILED = "birth_failed"
    """No replacement could be made; it is tried again."""
    ZYGOTE_DIED = "zygote_died"
    """Executors live on; replacements wait for the next zygote."""
    ZYGOTE_REPLACED = "zygote_replaced"
    """A new zygote is ready, `milliseconds` after the death of the last."""
    ZYGOTE_FAILED = "zygote_failed"
    """The application could not be imported again; it is tried again."""


class ExecutorEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event. It carries no payload, no result and no error text of a handler."""

    kind: EventKind
    text: str
    """One sentence for people, without the executor's number."""
    executor: int | None = None
    """The number of the executor's place, kept by its replacements; None for a zygote."""
    pid: int | None = None
    attempt: Attempt | None = None
    milliseconds: float | None = None


def ignore(event: ExecutorEvent) -> None:
    """For who does not listen."""
