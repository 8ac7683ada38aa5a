"""What rehearsed jobs ask for besides being run: a quarter of them nothing, a quarter keys, scopes, or rates each."""

import random
from typing import Any, Final

from runwick.contracts.attempts import Lane
from runwick.contracts.controls import SteerAction
from runwick.contracts.limits import LimitKind
from runwick.contracts.states import Priority
from tests.conformance.ground import BUILD, HIGH, LOW, MEDIUM, SEND, capped, capped_type, resource, type_window, window

MAILS: Final = Lane("mails", Priority.MEDIUM)
LANES: Final = (HIGH, MEDIUM, LOW, MAILS)
QUEUES: Final = ("reports", "mails")
KINDS: Final = frozenset({BUILD, SEND})
_WINDOW_MS: Final = 600
_RESOURCES: Final = (resource("printer", 1), resource("till", 1), resource("scanner", 2))
_RATES: Final = (window("bank", 1, _WINDOW_MS), window("post", 8, _WINDOW_MS))
CAPACITIES: Final = (
    (LimitKind.RESOURCE, "printer"),
    (LimitKind.RESOURCE, "scanner"),
    (LimitKind.QUEUE, "mails"),
    (LimitKind.JOB_TYPE, SEND.name),
)
"""Scopes whose capacity operators change."""


def some_needs(dice: random.Random) -> dict[str, Any]:
    """What one command asks for."""
    throw = dice.random()
    if throw < 0.25:
        return {"lane": dice.choice((HIGH, MEDIUM, LOW))}
    if throw < 0.5:
        return {"lane": MEDIUM, **some_keys(dice)}
    if throw < 0.75:
        scopes = dice.sample(_RESOURCES, dice.choice((1, 1, 2)))
        if dice.random() < 0.3:
            return {"lane": MAILS, "kind": SEND, "scopes": (capped("mails", 2), capped_type(SEND.name, 2), *scopes)}
        return {"lane": dice.choice((HIGH, MEDIUM)), "scopes": tuple(scopes)}
    if dice.random() < 0.3:
        return {"lane": MAILS, "kind": SEND, "rates": (type_window(SEND.name, 6, _WINDOW_MS), _RATES[1])}
    some = (dice.choice(_RESOURCES),) if dice.random() < 0.2 else ()
    return {"lane": dice.choice((HIGH, LOW)), "scopes": some, "rates": (dice.choice(_RATES),)}


def some_keys(dice: random.Random) -> dict[str, Any]:
    """An active key, a window key, or both; now and then those of another request."""
    keys: dict[str, Any] = {}
    if (throw := dice.random()) < 0.7:
        keys["active_key"] = dice.choice(("a", "b", "c"))
    if throw > 0.4:
        fingerprint = (b"o" if dice.random() < 0.15 else b"r") * 32
        keys |= {"window_key": dice.choice(("v", "w")), "window_ms": 300, "fingerprint": fingerprint}
    return keys


def some_steering(dice: random.Random) -> tuple[SteerAction, LimitKind, str, int | None]:
    """What an operator does to a queue or a capacity."""
    if dice.random() < 0.5:
        action = dice.choice((SteerAction.PAUSE, SteerAction.RESUME, SteerAction.RESUME))
        return action, LimitKind.QUEUE, dice.choice(QUEUES), None
    kind, key = dice.choice(CAPACITIES)
    return SteerAction.SET_CAPACITY, kind, key, dice.choice((1, 1, 2, 3))
