"""What of dispatches goes to the server, in columns."""

from collections.abc import Sequence
from typing import Final

from runwick.contracts.dispatching import Command
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.policy.limit_ids import rate_id, scope_id
from runwick.policy.uniqueness import Answer, Create, Reuse
from runwick.stores.postgres import packed
from runwick.stores.postgres.names import Wanted

_NO_NUMBER: Final = packed.numbers(())
_NO_TEXT: Final = packed.texts(())


def wanted(application: str, commands: Sequence[Command]) -> Wanted:
    """The names in these commands of one application."""
    lanes = tuple(dict.fromkeys(command.lane for command in commands))
    kinds = tuple(dict.fromkeys(command.kind for command in commands))
    policies = tuple(dict.fromkeys(command.policy for command in commands))
    return Wanted(application, lanes, kinds, policies)


def job_columns(commands: Sequence[Command]) -> tuple[packed.Packed, ...]:
    """What jobs are told behind their names: most executions, times, metadata, payload."""
    return (
        packed.numbers([command.policy.max_executions for command in commands]),
        packed.numbers([command.deadline_ms for command in commands]),
        packed.numbers([command.not_before_ms for command in commands]),
        packed.numbers([command.delay_ms for command in commands]),
        packed.numbers([command.expires_at_ms for command in commands]),
        packed.numbers([command.expires_in_ms for command in commands]),
        packed.texts([command.tenant for command in commands]),
        packed.texts([command.traceparent for command in commands]),
        packed.texts([command.tracestate for command in commands]),
        packed.blobs([command.metadata for command in commands]),
        packed.blobs([command.payload for command in commands]),
    )


def job_facts(command: Command) -> tuple[packed.Packed, ...]:
    """The same of one job, each by itself; what may be missing in an array of one."""
    times_ms = command.not_before_ms, command.delay_ms, command.expires_at_ms, command.expires_in_ms
    texts = command.tenant, command.traceparent, command.tracestate
    return (
        packed.number(command.policy.max_executions),
        packed.number(command.deadline_ms),
        *[_NO_NUMBER if time_ms is None else packed.numbers((time_ms,)) for time_ms in times_ms],
        *[_NO_TEXT if text is None else packed.texts((text,)) for text in texts],
        packed.blobs((command.metadata,)),
        packed.Blob(command.payload),
    )


def late_columns(late: Sequence[tuple[Command, int]]) -> tuple[packed.Packed, ...]:
    """Ids, operations, and by how many milliseconds each is late."""
    commands, by_ms = zip(*late, strict=True)
    return (
        packed.ids([command.job_id for command in commands]),
        packed.ids([command.operation_id for command in commands]),
        packed.numbers(by_ms),
    )


def needs_columns(commands: Sequence[Command]) -> tuple[packed.Packed, ...]:
    """What of its own each job needs."""
    places = list(enumerate(commands, start=1))
    scopes = [
        (place, scope_id(command.application, need.kind, need.key))
        for place, command in places
        for need in command.scopes
        if need.kind is LimitKind.RESOURCE
    ]
    rates = [(place, window_of(command.application, need)) for place, command in places for need in command.rates]
    return (
        packed.numbers([place for place, _ in scopes]),
        packed.ids([scope for _, scope in scopes]),
        packed.numbers([place for place, _ in rates]),
        packed.ids([window for _, window in rates]),
    )


def limits_columns(commands: Sequence[Command]) -> tuple[packed.Packed, ...]:
    """The limits that come to be with these jobs unless they are there, each as the first declares it."""
    scopes: dict[bytes, ScopeNeed] = {}
    windows: dict[bytes, RateNeed] = {}
    for command in commands:
        for scope in command.scopes:
            scopes.setdefault(scope_id(command.application, scope.kind, scope.key), scope)
        for rate in command.rates:
            windows.setdefault(window_of(command.application, rate), rate)
    return (
        packed.ids([*scopes]),
        packed.texts([need.kind.value for need in scopes.values()]),
        packed.texts([need.key for need in scopes.values()]),
        packed.numbers([need.capacity for need in scopes.values()]),
        packed.ids([*windows]),
        packed.texts([need.kind.value for need in windows.values()]),
        packed.texts([need.key for need in windows.values()]),
        packed.numbers([need.max_executions for need in windows.values()]),
        packed.numbers([need.window_ms for need in windows.values()]),
    )


def window_of(application: str, need: RateNeed) -> bytes:
    """The id of a rate window."""
    return rate_id(application, need.kind, need.key, need.window_ms if need.kind is LimitKind.RESOURCE else None)


def window_key_columns(answers: Sequence[Answer]) -> tuple[packed.Packed, ...]:
    """The window keys that are given to new jobs, or linked with existing ones."""
    given: list[tuple[bytes, bytes, Command]] = []
    for answer in answers:
        item = answer.item
        if item.window is None:
            continue
        if isinstance(answer, Create):
            given.append((item.window, item.command.job_id, item.command))
        elif isinstance(answer, Reuse) and answer.links:
            given.append((item.window, answer.job, item.command))
    return (
        packed.ids([window for window, _, _ in given]),
        packed.ids([job for _, job, _ in given]),
        packed.numbers([command.window_ms for _, _, command in given]),
        packed.blobs([command.fingerprint for _, _, command in given]),
    )


def reuse_columns(answers: Sequence[Answer]) -> tuple[packed.Packed, ...]:
    """The dispatches that found existing jobs."""
    reuses = [answer for answer in answers if isinstance(answer, Reuse)]
    commands = [answer.item.command for answer in reuses]
    return (
        packed.ids([command.operation_id for command in commands]),
        packed.ids([answer.job for answer in reuses]),
        packed.numbers([command.deadline_ms for command in commands]),
        packed.texts([answer.match.value for answer in reuses]),
        packed.numbers([int(answer.drift) for answer in reuses]),
    )
