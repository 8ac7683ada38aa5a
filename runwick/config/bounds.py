"""What one value may be, and the sentence that refuses it.

An options class annotates each of its options with an `Option`; its class body is the table of units, bounds, defaults
and rules, which everything else reads through `table`. Two options are never compared here: `runwick.config.timings`
does that.
"""

import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, get_type_hints

from runwick.config.durations import MILLISECOND, advice_text, milliseconds_text, parse_duration
from runwick.config.sizes import bytes_text, parse_bytes

ZERO: Final = datetime.timedelta(0)
LONGEST: Final = datetime.timedelta(days=36_500)
"""For durations without a bound of their own, so that they can be added up."""
_A_SIZE: Final = "Write 2 GiB as 2 * 2**30 in code and as 2GiB in an environment variable."


class Option(NamedTuple):
    """What one value may be; both bounds are allowed values, None leaves an end open."""

    unit: Literal["duration", "count", "bytes", "switch"]
    minimum: Any = None
    maximum: Any = None
    code: str = "invalid_policy"
    """The code of a problem with it."""
    value_rule: str = ""
    """The number under which a value of the wrong kind is reported: no duration, not positive, not whole."""
    bound_rule: str = ""
    """The number under which a value outside narrower bounds is reported."""
    optional: bool = False
    """Whether None is allowed, because the default depends on something else."""


def duration_option(minimum: str = "1ms", maximum: str | None = None, *, optional: bool = False) -> Option:
    """An option that is a timedelta of whole milliseconds, positive unless `minimum` says ``0s``."""
    most = None if maximum is None else parse_duration(maximum)
    return Option("duration", parse_duration(minimum), most, optional=optional)


def bytes_option(minimum: str, maximum: str, *, optional: bool = False) -> Option:
    """An option that is a number of bytes."""
    return Option("bytes", parse_bytes(minimum), parse_bytes(maximum), optional=optional)


def timing_option(minimum: str = "1ms", maximum: str | None = None, bound_rule: str = "") -> Option:
    """A worker timing: positive and whole (V-01), within bounds that may have a rule of their own."""
    option = duration_option(minimum, maximum)
    return option._replace(code="invalid_timing", value_rule="V-01", bound_rule=bound_rule)


def count_option(minimum: int, maximum: int | None = None, *, optional: bool = False) -> Option:
    """An option that is a whole number."""
    return Option("count", minimum, maximum, optional=optional)


def table(options: type) -> Mapping[str, Option]:
    """The options of an options class by name, in the order of its body."""
    hints = get_type_hints(options, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def refusals(name: str, value: object, option: Option) -> Iterator[str]:
    """Say everything that keeps `value` from being the option `name`: what was expected, what came, what to do."""
    for rule, sentence in _breaches(value, option):
        yield f"{rule}: {name} {sentence}" if rule else f"{name} {sentence}"


def is_comparable(value: object, option: Option) -> bool:
    """Whether comparing this duration with another one means something: it is one, of a length that makes sense."""
    if not isinstance(value, datetime.timedelta) or value > LONGEST:
        return False
    return value > ZERO or value == option.minimum == ZERO


def _breaches(value: object, option: Option) -> Iterator[tuple[str, str]]:
    """Pairs of a rule's number (or nothing) and the sentence after the option's name."""
    rule = option.value_rule
    if value is None and option.optional:
        return
    match option.unit:
        case "switch" if not isinstance(value, bool):
            yield rule, f"({_shown(value)}) must be True or False."
        case "count" if isinstance(value, bool) or not isinstance(value, int):
            yield rule, f"({_shown(value)}) must be a whole number."
        case "count":
            yield from _out_of_bounds(value, option, str, str)
        case "bytes" if isinstance(value, bool) or not isinstance(value, int):
            yield rule, f"({_shown(value)}) must be a whole number of bytes. {_A_SIZE}"
        case "bytes":
            yield from _out_of_bounds(value, option, bytes_text, bytes_text)
        case "duration" if not isinstance(value, datetime.timedelta):
            yield rule, f"({_shown(value)}) must be a datetime.timedelta. Write it as timedelta(seconds=…)."
        case "duration":
            assert isinstance(value, datetime.timedelta)
            yield from _duration_breaches(value, option)


def _duration_breaches(value: datetime.timedelta, option: Option) -> Iterator[tuple[str, str]]:
    figure = milliseconds_text(value)
    if value <= ZERO and option.minimum == MILLISECOND:
        yield option.value_rule, f"({figure}) must be > 0 ms. Give a positive duration."
        return
    if value % MILLISECOND and value <= LONGEST:
        below = value // MILLISECOND * MILLISECOND
        choice = " or ".join(milliseconds_text(end) for end in (below, below + MILLISECOND) if end >= option.minimum)
        advice = f" Round it to {choice}." if choice else ""
        yield option.value_rule, f"({figure}) must be a whole number of milliseconds.{advice}"
    if value > MILLISECOND or option.minimum != MILLISECOND:
        yield from _out_of_bounds(value, option, milliseconds_text, advice_text)


def _out_of_bounds(
    value: Any, option: Option, figure: Callable[[Any], str], advice: Callable[[Any], str]
) -> Iterator[tuple[str, str]]:
    """`figure` writes a value for the rule, `advice` one for what to do."""
    rule = option.bound_rule or option.value_rule
    least, most = option.minimum, option.maximum
    if most is None and option.unit == "duration":
        most = LONGEST
    if least is not None and value < least:
        yield rule, f"({figure(value)}) must be ≥ {figure(least)}. Raise it to {advice(least)} or more."
    if most is not None and value > most:
        yield rule, f"({figure(value)}) must be ≤ {figure(most)}. Lower it to {advice(most)} or less."


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r}"
