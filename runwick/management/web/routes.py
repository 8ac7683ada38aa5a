"""The table of routes: every way into the web parts is one row, with the rule that says who may take it.

The pages, the JSON API, its OpenAPI document and the test of the permission matrix all read such tables. A row without
a rule cannot be written, and a table that contradicts itself cannot be built.
"""

import enum
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from runwick.management.permissions import Permission
from runwick.management.web.reading import NoQuery

if TYPE_CHECKING:
    from runwick.management.web.calls import Call

Handler = Callable[["Call"], Awaitable[Any]]
"""Answers one call: with a body that its face writes, or with a Starlette response that is sent as it is."""


class Access(enum.Enum):
    """Rules that are no permission."""

    OPEN = "open"
    """Whoever asks: files that are the same for all."""
    SIGNED_IN = "signed in"
    """Whoever has proven who he is, whatever his grants."""


Needs = Permission | frozenset[Permission] | Access
"""One permission; one of several, where the handler's desk decides which; or no permission at all."""


class Kind(enum.StrEnum):
    """What a request does, which decides what it is counted as and whether it needs an antiforgery token."""

    READ = "read"
    CHANGE = "change"
    REVEAL = "reveal"
    """A read that leaves a trace: a POST, like a change."""


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One row.

    Raises:
        ValueError: reads are GET and all else is POST; only reads are open; no set of permissions is empty.
    """

    method: Literal["GET", "POST"]
    path: str
    """Below the mount, with parameters in braces as Starlette reads them: ``/v1/jobs/{job_id}``."""
    needs: Needs
    handler: Handler
    kind: Kind = Kind.READ
    query: type[msgspec.Struct] = NoQuery
    """What may stand behind the ``?``. Unknown parameters are refused by name."""
    body: type[msgspec.Struct] | None = None
    """Of a POST; None: whatever is sent is not read."""
    answer: Any = None
    """The type that the handler answers with, for the OpenAPI document."""
    summary: str = ""
    """What it is for, as one clause."""

    def __post_init__(self) -> None:
        where = f"{self.method} {self.path}"
        if not isinstance(self.needs, Permission | frozenset | Access) or self.needs == frozenset():
            raise ValueError(f"{where} has no rule; name the permission it needs")
        if (self.method == "GET") is not (self.kind is Kind.READ):
            raise ValueError(f"{where} is a {self.kind}; reads are GET, changes and reveals are POST")
        if self.needs is Access.OPEN and self.kind is not Kind.READ:
            raise ValueError(f"{where} is open to everybody; only reads can be")

    @property
    def permissions(self) -> frozenset[Permission]:
        """Those of which one is needed; empty where none is."""
        if isinstance(self.needs, Access):
            return frozenset()
        return frozenset((self.needs,)) if isinstance(self.needs, Permission) else self.needs


class Table:
    """The rows of one face.

    Args:
        rows: in the order in which paths are tried.

    Raises:
        ValueError: one method and path has two rows.
    """

    def __init__(self, rows: Iterable[Route]) -> None:
        self._by_path: dict[str, dict[str, Route]] = {}
        for row in rows:
            methods = self._by_path.setdefault(row.path, {})
            if methods.setdefault(row.method, row) is not row:
                raise ValueError(f"{row.method} {row.path} has two rows")

    def __iter__(self) -> Iterator[Route]:
        return (row for methods in self._by_path.values() for row in methods.values())

    @property
    def by_path(self) -> dict[str, dict[str, Route]]:
        """For each path its rows, by method."""
        return self._by_path
