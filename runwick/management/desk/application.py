"""What the desk needs of an application's own code, beyond its store."""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from runwick.contracts.dispatching import DispatchOptions, Prepared


class Setting(msgspec.Struct, frozen=True):
    """One option as it holds in the process that shows it."""

    name: str
    value: str
    """For people, without secrets."""
    source: str
    """``code``, ``default``, or the environment variable's name."""


class Application(Protocol):
    """The application as far as an operator deals with its code; `runwick.app.deskside` provides it."""

    @property
    def name(self) -> str: ...

    def declared_queues(self) -> Collection[str]: ...

    def declared_names(self) -> Collection[str]:
        """The stored names of its job types."""
        ...

    def prepare(self, name: str, payload: bytes, options: DispatchOptions) -> Prepared:
        """The dispatch of a job of that name, from a payload that comes from outside.

        Raises:
            InvalidArgument: no such job is declared (code ``unknown_job``), the payload is not strict JSON of its
                record, or an option breaks a rule; nothing was sent.
        """
        ...

    def time_limit_ms(self, name: str) -> int | None:
        """The execution timeout that jobs of that name get now; None without one, or where it is not declared."""
        ...

    def settings(self) -> Sequence[Setting]:
        """The options of this process, by name."""
        ...
