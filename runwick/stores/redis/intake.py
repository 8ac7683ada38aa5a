"""How commands travel to the function that dispatches them: what many have in common once, and each by itself."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from runwick.contracts.attempts import PAYLOAD_INLINE_MAX_BYTES, Kind, Lane
from runwick.contracts.dispatching import Command
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.policy.limit_ids import active_id, rate_id, scope_id, window_id
from runwick.stores.redis import packed

_encode: Final = msgspec.msgpack.Encoder().encode
_PLAIN: Final = 7
"""How many fields every item has; those behind them may be left out where nothing follows."""


class Intake:
    """The commands of one call: hand them in one by one, then take the tables that they refer to.

    Args:
        application: whose they are.
    """

    def __init__(self, application: str) -> None:
        self.application: Final = application
        self._lanes: dict[Lane, int] = {}
        self._kinds: dict[Kind, int] = {}
        self._policies: dict[JobPolicy, int] = {}
        self._scopes: dict[ScopeNeed, int] = {}
        self._rates: dict[RateNeed, int] = {}

    def item(self, command: Command) -> list[Any]:
        """One command as a list, in the order in which the function reads it."""
        payload = command.payload
        is_apart = len(payload) > PAYLOAD_INLINE_MAX_BYTES
        body = (None if is_apart else payload, command.metadata, command.traceparent, command.tracestate)
        item: list[Any] = [
            packed.binary(command.job_id),
            self._lanes.setdefault(command.lane, len(self._lanes) + 1),
            self._kinds.setdefault(command.kind, len(self._kinds) + 1),
            self._policies.setdefault(command.policy, len(self._policies) + 1),
            len(payload),
            command.deadline_ms,
            packed.binary(_encode(body)),
            *self._rest(command, payload if is_apart else None),
        ]
        while len(item) > _PLAIN and item[-1] is None:
            item.pop()
        return item

    def _rest(self, command: Command, payload: bytes | None) -> Sequence[Any]:
        operation_id = command.operation_id
        return (
            command.tenant,
            None if command.job_id == job_of_operation(operation_id) else packed.binary(operation_id),
            command.delay_ms,
            command.not_before_ms,
            command.expires_at_ms,
            command.expires_in_ms,
            packed.optional_binary(payload),
            *self._keys(command),
            [self._scopes.setdefault(need, len(self._scopes) + 1) for need in command.scopes] or None,
            [self._rates.setdefault(need, len(self._rates) + 1) for need in command.rates] or None,
            [
                (need.key, packed.binary(scope_id(self.application, need.kind, need.key)))
                for need in command.scopes
                if need.kind is LimitKind.RESOURCE
            ]
            or None,
        )

    def _keys(self, command: Command) -> Sequence[Any]:
        """Its uniqueness keys: active, window, how long that one is held, fingerprint."""
        application, name = self.application, command.kind.name
        return (
            None if command.active_key is None else packed.binary(active_id(application, name, command.active_key)),
            None if command.window_key is None else packed.binary(window_id(application, name, command.window_key)),
            command.window_ms,
            packed.optional_binary(command.fingerprint),
        )

    def tables(self) -> Sequence[Any]:
        """Lanes, kinds, retry settings, scopes and windows; an item names them by their places, from 1."""
        return (
            [packed.lane_text(self.application, lane) for lane in self._lanes],
            [packed.kind_text(self.application, kind) for kind in self._kinds],
            [(packed.policy_text(policy), policy.max_executions) for policy in self._policies],
            scopes(self.application, self._scopes),
            [
                (
                    packed.binary(_rate_id(self.application, need)),
                    need.kind,
                    need.key,
                    need.max_executions,
                    need.window_ms,
                )
                for need in self._rates
            ],
        )


def scopes(application: str, needs: Iterable[ScopeNeed]) -> list[Any]:
    """Scopes as they are declared."""
    return [
        (packed.binary(scope_id(application, need.kind, need.key)), need.kind, need.key, need.capacity)
        for need in needs
    ]


def _rate_id(application: str, need: RateNeed) -> bytes:
    length_ms = need.window_ms if need.kind is LimitKind.RESOURCE else None
    return rate_id(application, need.kind, need.key, length_ms)
