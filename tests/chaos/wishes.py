"""What the clients of a campaign ask for: jobs of which a quarter or so is plain, has keys, has scopes, has rates; and
now and then a queue paused or a capacity changed."""

import datetime
import random
from typing import Final

from runwick.contracts.controls import SteerAction
from runwick.contracts.dispatching import DispatchOptions, DispatchUniqueness
from runwick.contracts.jobs import Job, Unset
from runwick.contracts.limits import LimitKind
from runwick.dispatch.options import OptionArguments
from tests.chaos.jobs import QUEUES, WINDOW, Alone, Die, Fail, Keyed, Metered, Scoped, Wait, Work

_SHORTLY: Final = datetime.timedelta(milliseconds=40)
_ACCOUNTS: Final = ("a", "b", "c", "d", "e", "f")
_REQUESTS: Final = tuple(f"r{number}" for number in range(12))
_PRINTERS: Final = ("printer-1", "printer-2")
_SCANNERS: Final = ("scanner-1", "scanner-2")
_CAPACITIES: Final = (
    (LimitKind.RESOURCE, "printer-2", (1, 1, 2)),
    (LimitKind.RESOURCE, "scanner-1", (1, 2, 3)),
    (LimitKind.QUEUE, "narrow", (2, 3, 4)),
    (LimitKind.JOB_TYPE, "chaos.scoped", (1, 2, 3)),
)


def some_job(dice: random.Random, *, limited: bool) -> tuple[Job, DispatchOptions]:
    """One job, mostly short work, with what its dispatch says besides; one with scopes or rates only if `limited`."""
    throw = dice.random()
    if throw < 0.25:
        return _keyed(dice)
    if throw < 0.45 and limited:
        return _scoped(dice), _options(dice)
    if throw < 0.65 and limited:
        ballast = "x" * 70_000 if dice.random() < 0.05 else ""
        return Metered(dice.choice(("p", "q", "r")), dice.choice((0.5, 2.0)), ballast), _options(dice)
    return _plain(dice), _options(dice)


def some_steering(dice: random.Random) -> tuple[SteerAction, LimitKind, str, int | None]:
    """What an operator does. Queues are resumed much more often than paused."""
    if dice.random() < 0.8:
        action = SteerAction.PAUSE if dice.random() < 0.15 else SteerAction.RESUME
        return action, LimitKind.QUEUE, dice.choice(QUEUES), None
    kind, key, values = dice.choice(_CAPACITIES)
    return SteerAction.SET_CAPACITY, kind, key, dice.choice(values)


def as_arguments(options: DispatchOptions) -> OptionArguments:
    """The options of a batch's item, as a single dispatch takes them."""
    given: OptionArguments = {
        "not_before": options.not_before,
        "expires_at": options.expires_at,
        "uniqueness": options.uniqueness,
    }
    if not isinstance(options.priority, Unset):
        given["priority"] = options.priority
    return given


def _options(dice: random.Random) -> DispatchOptions:
    throw = dice.random()
    return DispatchOptions(
        priority=dice.choice(("high", "medium", "medium", "low")),
        not_before=_SHORTLY if throw < 0.15 else None,
        expires_at=_SHORTLY if 0.15 < throw < 0.3 else None,
    )


def _plain(dice: random.Random) -> Job:
    throw = dice.random()
    if throw < 0.5:
        ballast = "x" * 70_000 if dice.random() < 0.05 else ""
        return Work(milliseconds=dice.choice((0.5, 2.0, 4.0, 8.0)), leaves=dice.random() < 0.08, ballast=ballast)
    if throw < 0.75:
        return Fail(odds=dice.choice((0.1, 0.5, 1.0)))
    if throw < 0.85:
        return Die(odds=dice.choice((0.3, 1.0)), where=dice.choice(("kill", "exit", "abort")))
    return Wait(milliseconds=dice.choice((20.0, 100.0, 300.0)), listens=dice.random() < 0.5)


def _keyed(dice: random.Random) -> tuple[Job, DispatchOptions]:
    """By the keys that its job declares, or by its own; of one request now and then in two versions."""
    number = dice.randrange(len(_REQUESTS))
    milliseconds = dice.choice((1.0, 4.0, 9.0)) if dice.random() < 0.1 else 2.0
    if dice.random() < 0.6:
        account = _ACCOUNTS[number % len(_ACCOUNTS)] if dice.random() < 0.7 else dice.choice(_ACCOUNTS)
        return Keyed(account, _REQUESTS[number], milliseconds, odds=0.3), DispatchOptions()
    active_key = dice.choice((None, *_ACCOUNTS[:3]))
    window_key = _REQUESTS[number % 4] if active_key is None or dice.random() < 0.3 else None
    window = None if window_key is None else WINDOW
    uniqueness = DispatchUniqueness(active_key=active_key, window_key=window_key, window=window)
    return Work(milliseconds=milliseconds), DispatchOptions(uniqueness=uniqueness)


def _scoped(dice: random.Random) -> Job:
    if dice.random() < 0.3:
        return Alone(dice.choice(_PRINTERS), dice.choice((0.5, 3.0)), odds=0.2)
    return Scoped(dice.choice(_PRINTERS), dice.choice(_SCANNERS), dice.choice((0.5, 5.0, 40.0)))
