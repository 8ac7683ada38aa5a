"""The rules that tie worker timings together, as one table, and the sentences that say which of them are broken.

Every rule compares two sums of options. A rule whose options are not all durations that can be compared says
nothing, since their own problems (V-01) come first; every other rule is reported, whatever else is broken.
"""

import datetime
from collections.abc import Iterator
from typing import Final, NamedTuple

from runwick.config.bounds import ZERO, is_comparable, table
from runwick.config.durations import advice_text, milliseconds_text
from runwick.config.options import WorkerOptions
from runwick.contracts.errors import Problem

Sum = tuple[tuple[int, str], ...]
"""Options with their factors: ``((1, "lease_duration"), (-1, "lease_safety_margin"))``."""


class Rule(NamedTuple):
    """`left` must be less than `right`, or at most equal to it unless `strictly`."""

    number: str
    setting: str
    """The option the problem is reported for."""
    left: Sum
    strictly: bool
    right: Sum
    up: str
    """The option of `right` that the advice raises, by as much as is missing."""
    down: str
    """The option of `left` that the advice lowers instead."""
    after: str = ""
    """The number of a rule without which this one means nothing."""


def _sum(*names: str) -> Sum:
    return tuple((1, name) for name in names)


def _pair(number: str, setting: str, smaller: str, strictly: bool, larger: str) -> Rule:
    return Rule(number, setting, _sum(smaller), strictly, _sum(larger), up=larger, down=smaller)


_ANSWERED: Final[Sum] = (
    (2, "control_request_timeout"),
    (1, "control_retry_max_backoff"),
    (1, "scheduler_allowance"),
)
"""The longest way to a confirmed answer: a call that times out, the pause, the call that is answered, late timers."""

RULES: Final = (
    _pair("V-02", "lease_safety_margin", "lease_safety_margin", True, "lease_duration"),
    _pair("V-03", "renewal_jitter", "renewal_jitter", True, "renewal_interval"),
    Rule(
        "V-04",
        "lease_duration",
        left=(*_sum("renewal_interval", "renewal_jitter"), *_ANSWERED),
        strictly=True,
        right=((1, "lease_duration"), (-1, "lease_safety_margin")),
        up="lease_duration",
        down="renewal_interval",
        after="V-02",
    ),
    Rule(
        "V-05",
        "minimum_invocation_margin",
        left=_ANSWERED,
        strictly=False,
        right=_sum("minimum_invocation_margin"),
        up="minimum_invocation_margin",
        down="control_request_timeout",
    ),
    _pair("V-07", "control_retry_initial_backoff", "control_retry_initial_backoff", False, "control_retry_max_backoff"),
    Rule(
        "V-09",
        "shutdown_budget",
        left=_sum("shutdown_drain", "shutdown_cancellation", "shutdown_finalization"),
        strictly=False,
        right=_sum("shutdown_budget"),
        up="shutdown_budget",
        down="shutdown_drain",
    ),
    *(
        _pair("V-10", budget, "control_request_timeout", False, budget)
        for budget in ("claim_resolution_budget", "begin_resolution_budget", "completion_resolution_budget")
    ),
    _pair("V-11", "recovery_scan_jitter", "recovery_scan_jitter", True, "recovery_scan_interval"),
)
"""V-01 (positive whole milliseconds), V-06 and V-12 (bounds of one option) stand in the table of `WorkerOptions`."""


def broken_rules(options: WorkerOptions) -> Iterator[Problem]:
    """The rules that `options` break, in their order."""
    declared = table(WorkerOptions)
    comparable = {name for name, option in declared.items() if is_comparable(getattr(options, name), option)}
    broken: set[str] = set()
    for rule in RULES:
        if rule.after in broken or not comparable.issuperset(name for _, name in (*rule.left, *rule.right)):
            continue
        missing = _value(rule.left, options) - _value(rule.right, options)
        if missing > ZERO or (rule.strictly and missing == ZERO):
            broken.add(rule.number)
            yield Problem("invalid_timing", rule.setting, _sentence(rule, options, missing))


def _value(side: Sum, options: WorkerOptions) -> datetime.timedelta:
    values: Iterator[datetime.timedelta] = (factor * getattr(options, name) for factor, name in side)
    return sum(values, ZERO)


def _sentence(rule: Rule, options: WorkerOptions, missing: datetime.timedelta) -> str:
    sign, bound = ("<", "more than") if rule.strictly else ("≤", "at least")
    enough: datetime.timedelta = getattr(options, rule.up) + missing
    return (
        f"{rule.number}: {_written(rule.left, options)} must be {sign} {_written(rule.right, options)}. "
        f"Raise {rule.up} to {bound} {advice_text(enough)}, or lower {rule.down}."
    )


def _written(side: Sum, options: WorkerOptions) -> str:
    """A sum with its value: ``a + 2 × b − c (31000 ms)``."""
    text = ""
    for factor, name in side:
        operator = ("− " if factor < 0 else "+ ") if text else ""
        times = f"{abs(factor)} × " if abs(factor) != 1 else ""
        text += f"{operator}{times}{name} "
    return f"{text}({milliseconds_text(_value(side, options))})"
