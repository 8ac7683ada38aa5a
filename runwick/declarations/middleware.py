"""Middleware: what wraps each run of a job, in layers.

::

    global, as registered ─▶ aliases of the declaration, by order ─▶ of this job (configure_job) ─▶ handler

    async def m(ctx, next)   awaits next(); everything inside it runs on an event loop
    def m(ctx, next)         calls next(); nothing inside it may be async
    def m(ctx)               a generator: ``result = yield`` runs the rest; fits everywhere

The first parameter is the context, the second what runs the rest; further ones are passed by their types, as to a
handler. Calling them is the work of `runwick.execution`.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from runwick.contracts.context import JobContext
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import Job, JobDeclaration, UseMiddleware
from runwick.contracts.names import name_problem
from runwick.declarations.handlers import HandlerBinding, wants_arguments
from runwick.declarations.places import place_of
from runwick.declarations.providers import Provider, needed
from runwick.declarations.signatures import MISSING, Parameter, Signature, Unresolved, injected, type_name, unresolved
from runwick.declarations.suggestions import did_you_mean, quoted

Form = Literal["async", "plain", "generator"]

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclasses.dataclass(frozen=True, slots=True)
class MiddlewareBinding:
    """One layer around a job's runs."""

    target: Callable[..., Any]
    """The function; for a class with ``handle`` the class, of which each run gets an instance."""
    form: Form
    parameters: tuple[Parameter, ...]
    """What is passed by name, after the context and what runs the rest."""
    needs_loop: bool
    """Whether it or a provider that it needs is async."""


class DeclaredMiddleware:
    """A middleware as the user wrote it: a function, or a class with a method ``handle``."""

    def __init__(self, target: Callable[..., Any], local_names: Mapping[str, Any]) -> None:
        self.target = target
        self.label = f"middleware {getattr(target, '__qualname__', repr(target))}"
        self._function: Any = target
        takes_self = False
        if inspect.isclass(target):
            self._function = getattr(target, "handle", None)
            takes_self = inspect.isfunction(inspect.getattr_static(target, "handle", None))
        self._signature: Signature | None = None
        if inspect.isroutine(self._function):
            self._signature = Signature(self._function, local_names, takes_self=takes_self)
            self.label = f"{self.label} ({place_of(inspect.unwrap(self._function))})"

    @property
    def form(self) -> Form:
        """How it runs the rest."""
        if inspect.iscoroutinefunction(self._function):
            return "async"
        return "generator" if inspect.isgeneratorfunction(self._function) else "plain"

    def bind(self, providers: Mapping[Any, Provider], problems: list[Problem]) -> MiddlewareBinding | None:
        """The binding; None when anything is wrong with it, which is added to `problems`."""
        if why := self._refusal(providers):
            problems.append(Problem("invalid_middleware", self.label, f"{self.label} {why}"))
            return None
        assert self._signature is not None
        found: list[Problem] = []
        skipped = 1 if self.form == "generator" else 2
        further = injected(self._signature, skipped, providers, self.label, "invalid_middleware", found)
        problems += found
        if found:
            return None
        needs_loop = self.form == "async" or any(provider.is_async for provider in needed(further, providers))
        return MiddlewareBinding(self.target, self.form, further, needs_loop)

    def _refusal(self, providers: Mapping[Any, Provider]) -> str | None:
        """Why it is no middleware."""
        if self._signature is None:
            return "is neither a function nor a class with a method handle."
        if inspect.isasyncgenfunction(self._function):
            return (
                "is an async generator, which cannot return a result; write async def with next, or a plain generator."
            )
        if inspect.isclass(self.target) and wants_arguments(self.target):
            return "has a constructor with parameters; take them in handle, where they are injected."
        wanted = ["the context"] if self.form == "generator" else ["the context", "next, which runs the rest"]
        leading = [each for each in self._signature.parameters[: len(wanted)] if each.kind in _POSITIONAL]
        if len(leading) < len(wanted):
            return f"takes {len(leading)} parameters by position; the first are {' and '.join(wanted)}."
        context, *rest = (self._signature.annotation(each.name) for each in leading)
        if isinstance(context, Unresolved):
            return f"has a first parameter {leading[0].name}: {unresolved(context)}"
        if context is not MISSING and context is not JobContext:
            return (
                f"takes {type_name(context)} first; the first parameter is the context: {leading[0].name}: JobContext."
            )
        if rest and (rest[0] is JobContext or _is_provided(rest[0], providers)):
            return f"takes {type_name(rest[0])} second; the second parameter is next, which runs the rest."
        return None


def _is_provided(annotation: Any, providers: Mapping[Any, Provider]) -> bool:
    try:
        return annotation in providers
    except TypeError:  # cannot be hashed: nobody's type
        return False


class Layers:
    """All middleware of an application, and which of it wraps which job."""

    def __init__(self) -> None:
        self._everywhere: list[DeclaredMiddleware] = []
        self._by_alias: dict[str, DeclaredMiddleware] = {}
        self._by_record: dict[type[Job], list[DeclaredMiddleware]] = {}
        self._misuses: list[Problem] = []

    def add(self, middleware: DeclaredMiddleware, alias: str | None) -> None:
        """Around every job, or where an alias asks for it."""
        if alias is None:
            self._everywhere.append(middleware)
        elif why := name_problem(alias):
            sentence = f"{middleware.label}: alias {quoted(alias)} is not a name: {why}."
            self._misuses.append(Problem("invalid_name", middleware.label, sentence))
        elif (first := self._by_alias.setdefault(alias, middleware)) is not middleware:
            sentence = f"{middleware.label} has the alias {quoted(alias)}, as does {first.label}; rename one."
            self._misuses.append(Problem("invalid_middleware", middleware.label, sentence))

    def add_to(self, record: type[Job], middleware: Iterable[DeclaredMiddleware]) -> None:
        """Around one job alone."""
        self._by_record.setdefault(record, []).extend(middleware)

    def around(
        self,
        handlers: Sequence[HandlerBinding],
        declarations: Mapping[type[Job], Sequence[JobDeclaration]],
        providers: Mapping[Any, Provider],
        problems: list[Problem],
    ) -> tuple[dict[type[Job], tuple[MiddlewareBinding, ...]], list[Problem]]:
        """(what wraps each record's runs, outermost first; the aliases that nobody registered, which a worker minds).

        What is wrong otherwise is added to `problems`.
        """
        problems += self._misuses
        bound: dict[DeclaredMiddleware, MiddlewareBinding | None] = {}
        for each in (*self._everywhere, *self._by_alias.values(), *_flat(self._by_record.values())):
            if each not in bound:
                bound[each] = each.bind(providers, problems)
        around: dict[type[Job], tuple[MiddlewareBinding, ...]] = {}
        unknown: list[Problem] = []
        uses = {record: _uses(record, said, problems) for record, said in declarations.items()}
        for handler in handlers:
            named = [each.alias for each in uses.get(handler.record, ())]
            unknown += self._unknown(handler.record, named)
            chain = [
                *self._everywhere,
                *(self._by_alias[alias] for alias in named if alias in self._by_alias),
                *self._by_record.get(handler.record, ()),
            ]
            problems += _colour_problems(handler, [(each, binding) for each in chain if (binding := bound[each])])
            around[handler.record] = tuple(binding for each in chain if (binding := bound[each]))
        return around, unknown

    def _unknown(self, record: type[Job], named: Sequence[str]) -> Iterator[Problem]:
        for alias in named:
            if alias not in self._by_alias:
                label = f"job {record.__qualname__}"
                advice = (
                    did_you_mean(alias, self._by_alias) or f"Register it with @rw.middleware(alias={quoted(alias)})."
                )
                sentence = f"{label} uses the middleware {quoted(alias)}, which nobody registered. {advice}"
                yield Problem("unknown_middleware_alias", label, sentence)


def _flat(lists: Iterable[Sequence[DeclaredMiddleware]]) -> Iterator[DeclaredMiddleware]:
    for each in lists:
        yield from each


def _uses(record: type[Job], declarations: Sequence[JobDeclaration], problems: list[Problem]) -> list[UseMiddleware]:
    """The aliases that a record's declarations name, in the order of their layers."""
    label = f"job {record.__qualname__}"
    found: dict[str, UseMiddleware] = {}
    for declaration in declarations:
        if not isinstance(declaration.middleware, tuple | list):
            sentence = f"{label}: middleware ({declaration.middleware!r}) must be a tuple of aliases."
            problems.append(Problem("invalid_middleware", label, sentence))
            continue
        for each in declaration.middleware:
            use = each if isinstance(each, UseMiddleware) else UseMiddleware(each)
            if why := name_problem(use.alias):
                sentence = f"{label}: middleware {quoted(use.alias)} is not an alias: {why}."
                problems.append(Problem("invalid_name", label, sentence))
            elif isinstance(use.order, bool) or not isinstance(use.order, int):
                sentence = (
                    f"{label}: the order of middleware {quoted(use.alias)} ({use.order!r}) must be a whole number."
                )
                problems.append(Problem("invalid_middleware", label, sentence))
            elif found.setdefault(use.alias, use) != use:
                sentence = f"{label} uses the middleware {quoted(use.alias)} with two orders; give it one."
                problems.append(Problem("invalid_middleware", label, sentence))
    return sorted(found.values(), key=lambda use: (use.order, use.alias))


def _colour_problems(
    handler: HandlerBinding, chain: Sequence[tuple[DeclaredMiddleware, MiddlewareBinding]]
) -> Iterator[Problem]:
    """Plain middleware with something async inside it, which it could not wait for."""
    inside = f"handler {handler.target.__qualname__}" if handler.needs_loop else None
    for middleware, binding in reversed(chain):
        if inside is not None and binding.form == "plain":
            sentence = (
                f"{middleware.label} is plain and wraps {inside}, which needs an event loop; write it as a generator "
                "(result = yield; return result), which fits everywhere, or as async def."
            )
            yield Problem("invalid_middleware", middleware.label, sentence)
        if binding.needs_loop:
            inside = middleware.label
