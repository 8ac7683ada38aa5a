"""Upgrades: how a payload that was stored in an older shape becomes the current record, one version at a time.

::

    version 1 ── decoded as V1 ─▶ step ─▶ V2 ─▶ step ─▶ the record, version 3
                 version 2 ── decoded as V2 ─▶ step ─▶

An old shape is a record that needs no name, any subclass of `Job`. Running steps is the work of `runwick.execution`.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from runwick.contracts.attempts import Kind
from runwick.contracts.errors import InvalidArgument, Problem
from runwick.contracts.jobs import Job
from runwick.declarations.jobs import JobEntry
from runwick.declarations.signatures import MISSING, Signature, Unresolved, type_name, unresolved
from runwick.declarations.tasks import Task
from runwick.wire.profile import Codec
from runwick.wire.types import type_problems


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradeStep:
    """From one version to the next."""

    function: Callable[[Any], Any]
    gives: type[Job]


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    """From a stored payload of an older version to the current record."""

    kind: Kind
    """The current one."""
    codec: Codec[Any]
    """Of the older version."""
    steps: tuple[UpgradeStep, ...]


class DeclaredUpgrade:
    """An upgrade as the user wrote it."""

    def __init__(
        self,
        target: object,
        from_version: int,
        function: Callable[..., Any],
        local_names: Mapping[str, Any],
        where: str,
    ) -> None:
        self.from_version = from_version
        self.function = function
        self.label = f"upgrade {getattr(function, '__qualname__', repr(function))}"
        self.where = where
        self._target = target
        self._signature = Signature(function, local_names) if inspect.isroutine(function) else None

    def record(self) -> type[Job] | str:
        """The record whose payloads it upgrades, or the sentence that refuses it."""
        if isinstance(self._target, Task):
            try:
                return self._target.record
            except InvalidArgument:
                return "is for a task whose parameters make no record."
        if isinstance(self._target, type) and issubclass(self._target, Job):
            return self._target
        shown = self._target.__qualname__ if isinstance(self._target, type) else type(self._target).__name__
        return f"is for {shown}; name the record or the task whose payloads it upgrades."

    def read(self) -> tuple[type[Job], type[Job]] | str:
        """(the shape it takes, the shape it gives), or the sentence that refuses it."""
        if self._signature is None:
            return "is no function."
        if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
            return "is async; an upgrade is a pure function of the old record."
        if inspect.isgeneratorfunction(self.function):
            return "yields; an upgrade returns the next record."
        if isinstance(self.from_version, bool) or not isinstance(self.from_version, int) or self.from_version < 1:
            return f"has from_version {self.from_version!r}; it is a whole number from 1."
        if len(self._signature.parameters) != 1 or self._signature.parameters[0].kind in _NOT_ONE:
            return "takes the old record and nothing else."
        takes = self._signature.annotation(self._signature.parameters[0].name)
        gives = self._signature.return_type()
        for what, found in (("takes", takes), ("returns", gives)):
            if isinstance(found, Unresolved):
                return unresolved(found)
            if found is MISSING:
                return f"does not say what it {what}; annotate it with the record."
            if not (isinstance(found, type) and issubclass(found, Job)):
                return f"{what} {type_name(found)}; old and new shapes derive from runwick.Job."
        if gives is Job and isinstance(self._target, Task):  # whose record has no name that an annotation could use
            gives = self._target.record
        return takes, gives


_NOT_ONE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def routes(
    upgrades: Sequence[DeclaredUpgrade], by_record: Mapping[type[Job], JobEntry], problems: list[Problem]
) -> dict[Kind, Route]:
    """The way of each older version that can be upgraded; what is wrong with them is added to `problems`."""
    chains: dict[type[Job], dict[int, _Link]] = {}
    for upgrade in upgrades:
        record, read = upgrade.record(), upgrade.read()
        why = record if isinstance(record, str) else read
        if isinstance(why, str):
            problems.append(_problem(upgrade, why))
        elif not isinstance(record, str):
            links = chains.setdefault(record, {})
            first = links.setdefault(upgrade.from_version, _Link(upgrade, *why))
            if first.upgrade is not upgrade:
                sentence = f"starts at version {upgrade.from_version}, as does {first.upgrade.label} at "
                problems.append(_problem(upgrade, f"{sentence}{first.upgrade.where}; keep one."))
    found: dict[Kind, Route] = {}
    for record, links in chains.items():
        entry = by_record.get(record)
        if entry is None:
            label = f"record {record.__qualname__}"
            if not problems:  # otherwise why it has no entry is told already
                problems.append(Problem("invalid_upgrade", label, f"{label} has upgrades but no name."))
            continue
        wrong = list(_chain_problems(entry, links))
        problems += wrong
        if not wrong:
            found |= _routes_of(entry, links)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class _Link:
    upgrade: DeclaredUpgrade
    takes: type[Job]
    gives: type[Job]


def _chain_problems(entry: JobEntry, links: Mapping[int, _Link]) -> Iterator[Problem]:
    current = entry.kind.version
    for version, link in sorted(links.items()):
        if version >= current:
            sentence = f"starts at version {version}, and {entry.kind.name} is at version {current}; raise that."
            yield _problem(link.upgrade, sentence)
            continue
        for why in type_problems(link.takes):
            yield _problem(link.upgrade, f"takes {link.takes.__qualname__}: {why}.")
        follower = links.get(version + 1)
        wanted = entry.record if version + 1 == current else None if follower is None else follower.takes
        if wanted is None:
            sentence = f"leads to version {version + 1}, from where none leads to version {version + 2}; declare it."
            yield _problem(link.upgrade, sentence)
        elif link.gives is not wanted:
            given, taken = link.gives.__qualname__, wanted.__qualname__
            yield _problem(link.upgrade, f"returns {given}, and version {version + 1} is {taken}.")


def _routes_of(entry: JobEntry, links: Mapping[int, _Link]) -> dict[Kind, Route]:
    steps: tuple[UpgradeStep, ...] = ()
    found = {}
    for version, link in sorted(links.items(), reverse=True):
        steps = (UpgradeStep(link.upgrade.function, link.gives), *steps)
        found[Kind(entry.kind.name, version)] = Route(entry.kind, Codec(link.takes), steps)
    return found


def _problem(upgrade: DeclaredUpgrade, sentence: str) -> Problem:
    return Problem("invalid_upgrade", upgrade.label, f"{upgrade.label} (at {upgrade.where}) {sentence}")
