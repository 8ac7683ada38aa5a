"""What a user's function takes and returns, read from its signature.

Annotations may be text (``from __future__ import annotations``), may name classes of the function they stand in, or
classes that are defined further down. So each is resolved by itself: once when the function is declared, with the
names of that place, and again when the declarations are frozen, with what the module holds by then.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from runwick.contracts.context import JobContext
from runwick.contracts.errors import Problem
from runwick.declarations.suggestions import did_you_mean

MISSING: Final = inspect.Parameter.empty
"""No annotation, or no default."""

_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that is passed, by its name, whenever a handler or a provider is called."""

    name: str
    role: Literal["job", "context", "provided"]
    provides: Any = None
    """For ``provided``: the type whose provider is asked."""


class Unresolved(NamedTuple):
    """An annotation that names something unknown so far."""

    written: object
    why: str


class Signature:
    """The parameters and the return type of one function."""

    def __init__(
        self, function: Callable[..., Any], local_names: Mapping[str, Any], *, takes_self: bool = False
    ) -> None:
        """Read `function`.

        Args:
            local_names: what names mean where it is declared, besides its module's own.
            takes_self: whether the first parameter is ``self``.
        """
        try:
            described = inspect.signature(function)
        except (TypeError, ValueError):  # it tells nothing of itself, which is refused further on
            described = inspect.Signature()
        self.described: Final = described
        self._globals: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
        self.parameters = tuple(described.parameters.values())[1 if takes_self else 0 :]
        self.returns = self._resolve(described.return_annotation, local_names)
        self._annotations = {each.name: self._resolve(each.annotation, local_names) for each in self.parameters}

    def annotation(self, name: str) -> Any:
        """The type of a parameter, `MISSING`, or an `Unresolved`."""
        return self._again(self._annotations[name])

    def return_type(self) -> Any:
        """What it says it returns, `MISSING`, or an `Unresolved`."""
        return self._again(self.returns)

    def _again(self, annotation: Any) -> Any:
        return self._resolve(annotation.written, {}) if isinstance(annotation, Unresolved) else annotation

    def _resolve(self, annotation: object, local_names: Mapping[str, Any]) -> Any:
        if annotation is MISSING:
            return MISSING
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(holder, self._globals, dict(local_names), include_extras=True)["it"]
        except NameError as error:
            return Unresolved(annotation, f"the name {error.name!r} is not known there")
        except Exception as error:  # an annotation is foreign code
            return Unresolved(annotation, f"{type(error).__name__}: {error}")


def injected(
    signature: Signature, skipped: int, provided: Mapping[Any, object], owner: str, code: str, problems: list[Problem]
) -> tuple[Parameter, ...]:
    """The parameters that are passed: the context and what providers yield.

    A parameter that has a default and whose type nothing provides keeps its default.

    Args:
        skipped: leading parameters that are passed in another way.
        provided: what can be provided, by type.
        owner: what the function is, for messages.
        code: the code of a parameter that cannot be understood.
        problems: where everything wrong is added.
    """
    passed: list[Parameter] = []
    for declared in signature.parameters[skipped:]:
        if declared.kind in _VARIABLE:
            continue
        wanted = signature.annotation(declared.name)
        where = f"parameter {declared.name}"
        if declared.kind is inspect.Parameter.POSITIONAL_ONLY:
            problems.append(Problem(code, owner, f"{where} is positional only; leave out the '/'."))
        elif wanted is JobContext:
            passed.append(Parameter(declared.name, "context"))
        elif not isinstance(wanted, Unresolved) and _is_known(wanted, provided):
            passed.append(Parameter(declared.name, "provided", wanted))
        elif declared.default is not MISSING:
            continue
        elif wanted is MISSING:
            problems.append(Problem(code, owner, f"{where} has no annotation, which says what to pass."))
        elif isinstance(wanted, Unresolved):
            problems.append(Problem(code, owner, f"{where}: {unresolved(wanted)}"))
        else:
            near = did_you_mean(type_name(wanted), [type_name(each) for each in provided])
            message = f"{where} needs {type_name(wanted)}, which no provider yields; declare one with @rw.provider."
            problems.append(Problem("unknown_dependency", owner, f"{message} {near}".rstrip()))
    return tuple(passed)


def unresolved(annotation: Unresolved) -> str:
    """One sentence about an annotation that cannot be resolved."""
    return (
        f"cannot resolve its annotation {annotation.written!r}: {annotation.why}. "
        "Import it for real (not under TYPE_CHECKING), at module level or before the declaration."
    )


def type_name(annotation: Any) -> str:
    """How messages call a type."""
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _is_known(wanted: Any, provided: Mapping[Any, object]) -> bool:
    try:
        return wanted in provided
    except TypeError:  # an annotation that cannot be hashed is nobody's type
        return False
