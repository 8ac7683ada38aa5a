"""Providers: what makes the things that handlers take as parameters, opened before a run and closed after it.

::

    scope "attempt"   opened for each attempt that needs it, closed when the attempt ends
    scope "process"   opened once per executor at first need, closed when the executor ends; for a worker inside an
                      application once for all its pools and threads, so it must be safe to share

A provider is found by the type that it says it returns or yields, exactly. It may take the context and what other
providers yield; one that lives as long as the process cannot take what lives for an attempt. Opening and closing is
the work of `runwick.execution`.
"""

import collections.abc
import contextlib
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from runwick.contracts.context import JobContext
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import Job
from runwick.declarations.places import place_of
from runwick.declarations.signatures import (
    MISSING,
    Parameter,
    Signature,
    Unresolved,
    injected,
    type_name,
    unresolved,
)

Scope = Literal["attempt", "process"]
Form = Literal["function", "generator", "context_manager"]

SCOPES: Final = ("attempt", "process")

_ITERATORS: Final = (collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator)
_ASYNC_ITERATORS: Final = (
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """How to open one thing that handlers and other providers take."""

    provides: Any
    """The type it is found by."""
    source: Callable[..., Any]
    scope: Scope
    form: Form
    """``function``: what it returns; ``generator``: what it yields, closed by resuming it; ``context_manager``: what
    entering the returned manager gives."""
    is_async: bool
    parameters: tuple[Parameter, ...]
    opener: Callable[..., Any] = dataclasses.field(init=False, repr=False, compare=False)
    """What is called for the value, or for the context manager that gives it."""

    def __post_init__(self) -> None:
        opener = self.source
        if self.form == "generator":
            manager = contextlib.asynccontextmanager if self.is_async else contextlib.contextmanager
            opener = manager(self.source)
        object.__setattr__(self, "opener", opener)


class DeclaredProvider:
    """A provider as the user wrote it."""

    def __init__(self, source: Callable[..., Any], scope: str, local_names: Mapping[str, Any]) -> None:
        self.source = source
        self.scope = scope
        self.label = f"provider {getattr(source, '__qualname__', repr(source))}"
        self.where = place_of(inspect.unwrap(source))
        self.signature = Signature(source, local_names) if inspect.isroutine(source) else None

    def read(self) -> tuple[Any, Form, bool] | str:
        """(what it provides, its form, whether it is async), or the sentence that refuses it."""
        if self.signature is None:
            return "is no function; write one that returns or yields the thing and says so in its annotation."
        if self.scope not in SCOPES:
            return f'has scope {self.scope!r}; it is "attempt" or "process".'
        returns = self.signature.return_type()
        if isinstance(returns, Unresolved):
            return unresolved(returns)
        provides, form, is_async = _taken_apart(self.source, returns)
        if provides is MISSING:
            kind = {"generator": "Iterator[Session]", "context_manager": "Iterator[Session]"}.get(form, "Session")
            return f"does not say what it provides; annotate what it gives, such as -> {'Async' * is_async}{kind}."
        if provides in (None, type(None), Any, object, JobContext) or _is_job(provides):
            return f"cannot provide {type_name(provides)}; give the thing a type of its own."
        try:
            hash(provides)
        except TypeError:
            return f"cannot provide {type_name(provides)}, which cannot be looked up; give it a type of its own."
        return provides, form, is_async


def _taken_apart(source: Callable[..., Any], returns: Any) -> tuple[Any, Form, bool]:
    """What a source gives, how, and whether it has to be awaited; the first is `MISSING` when it does not say."""
    origin, arguments = typing.get_origin(returns), typing.get_args(returns)
    given = arguments[0] if arguments else MISSING
    written = inspect.unwrap(source)
    if inspect.isasyncgenfunction(written):
        form: Form = "generator" if written is source else "context_manager"
        return given if origin in _ASYNC_ITERATORS else MISSING, form, True
    if inspect.isgeneratorfunction(written):
        form = "generator" if written is source else "context_manager"
        return given if origin in _ITERATORS else MISSING, form, False
    if inspect.iscoroutinefunction(source):
        return returns, "function", True
    if origin is contextlib.AbstractContextManager:
        return given, "context_manager", False
    if origin is contextlib.AbstractAsyncContextManager:
        return given, "context_manager", True
    return returns, "function", False


def _is_job(provides: Any) -> bool:
    return isinstance(provides, type) and issubclass(provides, Job)


def resolve(declared: Iterable[DeclaredProvider], problems: list[Problem]) -> dict[Any, Provider]:
    """The providers by the type they provide; what is wrong with them, alone or together, is added to `problems`."""
    found: dict[Any, tuple[DeclaredProvider, Form, bool]] = {}
    for each in declared:
        read = each.read()
        if isinstance(read, str):
            problems.append(Problem("invalid_provider", each.label, f"{each.label} ({each.where}) {read}"))
            continue
        provides, form, is_async = read
        if (first := found.get(provides)) is not None:
            sentence = f"provides {type_name(provides)}, as does {first[0].label} ({first[0].where}); keep one."
            problems.append(Problem("invalid_provider", each.label, f"{each.label} ({each.where}) {sentence}"))
            continue
        found[provides] = each, form, is_async
    providers = {}
    for provides, (each, form, is_async) in found.items():
        assert each.signature is not None
        parameters = injected(each.signature, 0, found, each.label, "invalid_provider", problems)
        scope: Scope = "process" if each.scope == "process" else "attempt"
        providers[provides] = Provider(provides, each.source, scope, form, is_async, parameters)
    problems += _scope_problems(providers)
    problems += _cycle_problems(providers)
    return providers


def needed(parameters: Iterable[Parameter], providers: Mapping[Any, Provider]) -> Iterator[Provider]:
    """Every provider that these parameters need, directly or through others; each once."""
    waiting = [each.provides for each in parameters if each.role == "provided"]
    seen = set()
    while waiting:
        provides = waiting.pop()
        if provides not in seen and provides in providers:
            seen.add(provides)
            yield providers[provides]
            waiting += [each.provides for each in providers[provides].parameters if each.role == "provided"]


def _scope_problems(providers: Mapping[Any, Provider]) -> Iterator[Problem]:
    for provider in providers.values():
        if provider.scope == "attempt":
            continue
        for parameter in provider.parameters:
            source = providers.get(parameter.provides)
            if parameter.role == "context" or (source is not None and source.scope == "attempt"):
                what = "JobContext" if source is None else type_name(source.provides)
                label = f"provider {provider.source.__qualname__}"
                yield Problem(
                    "invalid_provider",
                    label,
                    f'{label} has scope "process" and takes {what}, which lives for one attempt only; '
                    'give it scope "attempt", or take what lives as long as the process.',
                )


def _cycle_problems(providers: Mapping[Any, Provider]) -> Iterator[Problem]:
    """One problem per ring of providers that need each other."""
    finished: set[Any] = set()

    def search(provides: Any, path: list[Any]) -> list[Any] | None:
        if provides in path:
            return path[path.index(provides) :]
        if provides in finished or provides not in providers:
            return None
        rings = (search(each.provides, [*path, provides]) for each in providers[provides].parameters)
        ring = next((ring for ring in rings if ring), None)
        finished.add(provides)
        return ring

    for provides in providers:
        if ring := search(provides, []):
            label = f"provider {providers[ring[0]].source.__qualname__}"
            way = " → ".join(type_name(each) for each in [*ring, ring[0]])
            yield Problem("invalid_provider", label, f"{label} needs itself ({way}); break the ring.")
