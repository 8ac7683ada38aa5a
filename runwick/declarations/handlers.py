"""Handlers: the functions that do the work, each bound to one job by the annotation of its first parameter."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from runwick.contracts.errors import Problem
from runwick.contracts.jobs import Job
from runwick.declarations.places import place_of
from runwick.declarations.providers import Provider, needed
from runwick.declarations.signatures import MISSING, Parameter, Signature, Unresolved, injected, type_name, unresolved

Interrupt = Literal["raise", "token"]
"""How a run on an executor is stopped before it is killed: ``raise`` raises `JobCancelled` in the handler, or cancels
its task; ``token`` leaves it to look at ``ctx.cancellation``."""

INTERRUPTS: Final = ("raise", "token")


@dataclasses.dataclass(frozen=True, slots=True)
class HandlerBinding:
    """What runs a job and what it is called with."""

    record: type[Job]
    target: Callable[..., Any]
    """The function; for a class with ``handle`` the class, of which each attempt makes an instance without arguments
    and calls its ``handle``."""
    is_async: bool
    """Whether the call has to be awaited."""
    parameters: tuple[Parameter, ...]
    """What is passed, by name; the first is the job."""
    needs_loop: bool
    """Whether it or a provider that it needs is async."""
    takes_context: bool = False
    """Whether it can see for itself that it is asked to stop."""
    interrupt: Interrupt = "raise"


class DeclaredHandler:
    """A handler as the user wrote it: a function, or a class with a method ``handle``."""

    def __init__(
        self, target: Callable[..., Any], local_names: Mapping[str, Any], interrupt: Interrupt = "raise"
    ) -> None:
        self.target = target
        self.interrupt = interrupt
        self.label = f"handler {getattr(target, '__qualname__', repr(target))}"
        self.function: Any = target
        takes_self = False
        if inspect.isclass(target):
            self.function = getattr(target, "handle", None)
            takes_self = inspect.isfunction(inspect.getattr_static(target, "handle", None))
        self._signature: Signature | None = None
        if inspect.isroutine(self.function):
            self._signature = Signature(self.function, local_names, takes_self=takes_self)
            self.label = f"{self.label} ({place_of(inspect.unwrap(self.function))})"

    def record(self, problems: list[Problem]) -> type[Job] | None:
        """The job it takes; None with a problem when that cannot be told."""
        why = self._refusal()
        if why is not None:
            problems.append(Problem("invalid_handler", self.label, f"{self.label} {why}"))
            return None
        assert self._signature is not None
        found: type[Job] = self._signature.annotation(self._signature.parameters[0].name)
        return found

    def bind(self, record: type[Job], providers: Mapping[Any, Provider], problems: list[Problem]) -> HandlerBinding:
        """The binding; everything wrong with the further parameters is added to `problems`."""
        assert self._signature is not None
        further = injected(self._signature, 1, providers, self.label, "invalid_handler", problems)
        takes_context = any(each.role == "context" for each in further)
        problems += self._interrupt_problems(takes_context)
        is_async = inspect.iscoroutinefunction(self.function)
        return HandlerBinding(
            record=record,
            target=self.target,
            is_async=is_async,
            parameters=(Parameter(self._signature.parameters[0].name, "job"), *further),
            needs_loop=is_async or any(provider.is_async for provider in needed(further, providers)),
            takes_context=takes_context,
            interrupt=self.interrupt,
        )

    def _interrupt_problems(self, takes_context: bool) -> Iterator[Problem]:
        if self.interrupt not in INTERRUPTS:
            sentence = f'{self.label} has interrupt={self.interrupt!r}; it is "raise" or "token".'
            yield Problem("invalid_handler", self.label, sentence)
        elif self.interrupt == "token" and not takes_context:
            sentence = f'{self.label} has interrupt="token" but no way to see the token; take ctx: JobContext as well.'
            yield Problem("invalid_handler", self.label, sentence)

    def _refusal(self) -> str | None:
        """Why it is no handler."""
        if self._signature is None:
            return "is neither a function nor a class with a method handle."
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            return "yields; a handler returns its result."
        if inspect.isclass(self.target) and wants_arguments(self.target):
            return "has a constructor with parameters; take them in handle, where they are injected."
        if not self._signature.parameters:
            return "takes no parameter; the first is the job, annotated with its record."
        first = self._signature.parameters[0]
        annotation = self._signature.annotation(first.name)
        if first.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            return f"takes {first} first; the first parameter is the job, an ordinary one."
        if annotation is MISSING:
            return f"has no annotation on its first parameter; write {first.name}: with the job's record."
        if isinstance(annotation, Unresolved):
            return f"has a first parameter {first.name}: {unresolved(annotation)}"
        if not (isinstance(annotation, type) and issubclass(annotation, Job)):
            return (
                f"takes {type_name(annotation)} first; the first parameter is a record that derives from runwick.Job."
            )
        return None


def wants_arguments(cls: type) -> bool:
    """Whether its instances cannot be made without arguments."""
    try:
        inspect.signature(cls).bind()
    except TypeError:
        return True
    except ValueError:  # a builtin constructor tells nothing; the call will
        return False
    return False
