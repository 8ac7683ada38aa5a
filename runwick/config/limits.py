"""What may be declared of limits and uniqueness keys, and the sentences that refuse it. Selectors are looked at, and
never called."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runwick.config.bounds import Option, count_option, duration_option, refusals
from runwick.contracts.jobs import UNSET, JobSettings
from runwick.contracts.limits import (
    CAPACITY_MAX,
    RATE_MAX,
    PerResource,
    RollingWindow,
    RollingWindowPerResource,
    UniqueWithinWindow,
)
from runwick.contracts.policies import WEIGHT_MAX

CAPACITY: Final = count_option(1, CAPACITY_MAX)
RATE: Final = count_option(1, RATE_MAX)
RATE_WINDOW: Final = duration_option("1s", "24h")
UNIQUE_WINDOW: Final = duration_option("1ms", "87600h")
WEIGHT: Final = count_option(1, WEIGHT_MAX)

_RATE: Final[Mapping[str, Option]] = {"max_executions": RATE, "window": RATE_WINDOW}
_BOUNDS: Final[Mapping[type, Mapping[str, Option]]] = {
    PerResource: {"capacity": CAPACITY},
    RollingWindow: _RATE,
    RollingWindowPerResource: _RATE,
    UniqueWithinWindow: {"window": UNIQUE_WINDOW},
}


def limit_refusals(settings: JobSettings) -> Iterator[str]:
    """Say everything that is wrong with the limits and keys of one layer; what it does not give is not checked."""
    if settings.max_concurrent is not UNSET and settings.max_concurrent is not None:
        yield from refusals("max_concurrent", settings.max_concurrent, CAPACITY)
    yield from _several("per_resource", settings.per_resource, PerResource)
    yield from _one("rolling_window", settings.rolling_window, RollingWindow)
    name = "rolling_window_per_resource"
    yield from _several(name, settings.rolling_window_per_resource, RollingWindowPerResource)
    if settings.unique_while_active is not UNSET and settings.unique_while_active is not None:
        yield from _selector_refusals("unique_while_active", settings.unique_while_active)
    yield from _one("unique_within_window", settings.unique_within_window, UniqueWithinWindow)


def _one(name: str, value: object, kind: type) -> Iterator[str]:
    if value is UNSET or value is None:
        return
    if isinstance(value, kind):
        yield from _value_refusals(name, value)
    else:
        yield f"{name} ({_shown(value)}) must be {kind.__name__}(…), or None."


def _several(name: str, value: object, kind: type) -> Iterator[str]:
    if value is UNSET:
        return
    if not isinstance(value, tuple) or not all(isinstance(each, kind) for each in value):
        yield f"{name} ({_shown(value)}) must be a tuple of {kind.__name__}. Write it as ({kind.__name__}(…),)."
        return
    for place, each in enumerate(value):
        yield from _value_refusals(f"{name}[{place}]", each)


def _value_refusals(label: str, value: Any) -> Iterator[str]:
    if not isinstance(value, RollingWindow):
        yield from _selector_refusals(f"{label} selector", value.selector)
    for field, option in _BOUNDS[type(value)].items():
        yield from refusals(f"{label} {field}", getattr(value, field), option)


def _selector_refusals(label: str, selector: object) -> Iterator[str]:
    """What a look at it tells: that it cannot be called with a record, or would not return text."""
    if not callable(selector):
        yield f"{label} ({_shown(selector)}) must be a function of the record that returns its key."
        return
    try:
        signature = inspect.signature(selector)
    except (TypeError, ValueError):  # it tells nothing of itself
        return
    try:
        signature.bind(object())
    except TypeError:
        yield f"{label} must take the record and nothing else; it takes {signature}."
    returns = signature.return_annotation
    is_lazy = inspect.iscoroutinefunction(selector) or inspect.isasyncgenfunction(selector)
    if is_lazy or inspect.isgeneratorfunction(selector):
        yield f"{label} must return its key; it is async or a generator."
    elif isinstance(returns, type) and returns is not inspect.Signature.empty and not issubclass(returns, str):
        yield f"{label} must return str; it is annotated to return {returns.__name__}."


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r}"
