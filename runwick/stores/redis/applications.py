"""Which application an attempt's job is of: its number holds the application's.

Where no claim of this store object has told it yet (another object claimed the attempt), the server is asked once.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from runwick.stores.redis import packed
from runwick.stores.redis.calls import Call, Calls

_JOB_BITS: Final = 40
_answered: Final = msgspec.msgpack.Decoder(list[tuple[str, int]]).decode


class Applications:
    """The applications of one store, by number. A number is given once and for good; threads may share this."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def learn(self, job: int, application: str) -> None:
        """A job is of that application."""
        self._names[job >> _JOB_BITS] = application

    def places(self, jobs: Iterable[int]) -> Calls[dict[str, list[int]]]:
        """Where these jobs stand in their order, from 0, by application. Those of no known application are left out."""
        numbers = [job >> _JOB_BITS for job in jobs]
        if not self._names.keys() >= set(numbers):
            yield from self._ask()
        places: dict[str, list[int]] = {}
        for place, number in enumerate(numbers):
            if (name := self._names.get(number)) is not None:
                places.setdefault(name, []).append(place)
        return places

    def _ask(self) -> Calls[None]:
        answer = yield Call("applications", "", packed.arguments(), is_preparation=True)
        self._names.update((number, name) for name, number in _answered(answer))
