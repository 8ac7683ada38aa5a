"""Keys and limits of a command that comes from outside, held against what `prepare` could have made."""

import datetime
from collections.abc import Sequence

from runwick.config.bounds import Option, refusals
from runwick.config.limits import CAPACITY, RATE, RATE_WINDOW
from runwick.contracts.dispatching import UNIQUE_WINDOW_MAX_MS, Command
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.dispatch.fingerprint import fingerprint
from runwick.dispatch.keys import checked_key
from runwick.dispatch.needs import Needs, check_number

_MILLISECOND = datetime.timedelta(milliseconds=1)
_ORDER = (LimitKind.QUEUE, LimitKind.JOB_TYPE, LimitKind.RESOURCE)


def check_keys(command: Command) -> None:
    """Refuse keys that cannot stand together, or break the rules of keys.

    Raises:
        InvalidArgument: with what is wrong.
    """
    if command.active_key is not None:
        checked_key("active key", command.active_key)
    if command.window_key is None:
        _require(command.window_ms is None, "there is a window without its key")
        _require(command.fingerprint is None, "there is a fingerprint without a window key")
        return
    checked_key("window key", command.window_key)
    window_ms = command.window_ms
    _require(window_ms is not None and 1 <= window_ms <= UNIQUE_WINDOW_MAX_MS, "the window is out of bounds")
    _require(command.delay_ms is None, "there is a delay beside a window key")
    _require(command.fingerprint == fingerprint(command), "the fingerprint is another request's")


def check_needs(command: Command) -> None:
    """Refuse limits that are not this job's, come twice or are out of bounds.

    Raises:
        InvalidArgument: with what is wrong.
    """
    check_number(Needs(command.scopes, command.rates))
    _check_identities(command, command.scopes, [(need.kind, need.key) for need in command.scopes])
    for scope in command.scopes:
        _check_bound("capacity", scope.capacity, CAPACITY)
    _check_identities(command, command.rates, [(need.kind, need.key, need.window_ms) for need in command.rates])
    _require(all(rate.kind is not LimitKind.QUEUE for rate in command.rates), "a rate window is a queue's")
    _require(sum(rate.kind is LimitKind.JOB_TYPE for rate in command.rates) <= 1, "the type has two rate windows")
    for rate in command.rates:
        _check_bound("max_executions", rate.max_executions, RATE)
        _check_bound("rate window", _duration(rate.window_ms), RATE_WINDOW)


def _check_identities(
    command: Command, needs: Sequence[ScopeNeed] | Sequence[RateNeed], identities: Sequence[object]
) -> None:
    _require(len(set(identities)) == len(identities), "a limit is there twice")
    places = [_ORDER.index(need.kind) for need in needs]
    _require(places == sorted(places), "limits are not in the order of a declaration")
    for need in needs:
        match need.kind:
            case LimitKind.QUEUE:
                _require(need.key == command.lane.queue, "a limit is another queue's")
            case LimitKind.JOB_TYPE:
                _require(need.key == command.kind.name, "a limit is another job's")
            case LimitKind.RESOURCE:
                checked_key("resource key", need.key)


def _check_bound(name: str, value: object, option: Option) -> None:
    for sentence in refusals(name, value, option):
        raise InvalidArgument("invalid_prepared", sentence)


def _duration(milliseconds: int) -> datetime.timedelta:
    try:
        return milliseconds * _MILLISECOND
    except OverflowError:
        raise InvalidArgument("invalid_prepared", f"a rate window has {milliseconds:,} ms") from None


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidArgument("invalid_prepared", otherwise)
