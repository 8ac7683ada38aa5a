"""The bus: whoever has something to say publishes a typed event, whoever cares listens to its type.

Publishing is synchronous and cheap; a listener must return at once. A listener that raises is logged once by its
name and cannot hurt the publisher.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E")

_log = logging.getLogger("runwick.telemetry")


class Bus:
    """Delivers each event to the listeners of its exact type, in the order in which they began to listen."""

    def __init__(self) -> None:
        self._listeners: dict[type[Any], list[Callable[[Any], None]]] = {}

    def listen(self, event_type: type[E], listener: Callable[[E], None]) -> None:
        """Call `listener` with every event of exactly this type."""
        self._listeners.setdefault(event_type, []).append(listener)

    def publish(self, event: object) -> None:
        """Tell the listeners of this event's type."""
        for listener in self._listeners.get(type(event), ()):
            try:
                listener(event)
            except Exception:
                _log.exception("a listener of %s failed", type(event).__name__)
