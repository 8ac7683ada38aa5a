"""A task: a function whose parameters are its payload, for the small case that needs no record of its own.

The function stays callable as it is. Its record is made from its parameters when it is first needed, so that their
types may be defined further down; stored as JSON with camelCase members like every record.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

import msgspec

from runwick.contracts.context import JobContext
from runwick.contracts.dispatching import Receipt
from runwick.contracts.errors import InvalidArgument
from runwick.contracts.jobs import Job
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.signatures import MISSING, Parameter, Signature, Unresolved, unresolved

P = ParamSpec("P")
R = TypeVar("R")

_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Dispatches(Protocol):
    """Where a task sends its jobs: the application."""

    def dispatch(self, job: Job, /) -> Receipt: ...
    def dispatch_async(self, job: Job, /) -> Coroutine[Any, Any, Receipt]: ...


class Task(Generic[P, R]):
    """A function that can be called, as ever, or dispatched with the same arguments."""

    def __init__(self, function: Callable[P, R], local_names: Mapping[str, Any], application: Dispatches) -> None:
        self._function = function
        self._application = application
        self._signature = Signature(function, local_names)
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now; nothing is stored."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Task({self._function.__module__}.{self._function.__qualname__})"

    def dispatch(self, *args: P.args, **kwargs: P.kwargs) -> Receipt:
        """Store a job that calls the function with these arguments; see `Runwick.dispatch`."""
        return self._application.dispatch(self.job(*args, **kwargs))

    async def dispatch_async(self, *args: P.args, **kwargs: P.kwargs) -> Receipt:
        """The same on an event loop; see `Runwick.dispatch_async`."""
        return await self._application.dispatch_async(self.job(*args, **kwargs))

    def job(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """The record with these arguments, for a dispatch with options or in a batch."""
        try:
            bound = self._signature.described.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._function.__name__}(): {error}") from None
        return self.record(**bound.arguments)

    @functools.cached_property
    def record(self) -> type[Job]:
        """The record made from the function's parameters.

        Raises:
            InvalidArgument: it cannot be made (code ``invalid_handler`` or ``invalid_payload_type``).
        """
        fields = [(each.name, self._type(each), _default(each)) for each in self._signature.parameters]
        try:
            made = msgspec.defstruct(
                self._function.__name__,
                [(name, type_) if default is MISSING else (name, type_, default) for name, type_, default in fields],
                bases=(Job,),
                module=self._function.__module__,
                kw_only=True,
            )
        except (TypeError, ValueError) as error:
            raise InvalidArgument("invalid_payload_type", f"its parameters make no record: {error}") from None
        return cast("type[Job]", made)

    @functools.cached_property
    def binding(self) -> HandlerBinding:
        """How a worker calls it: with the record, whose members are the arguments.

        Raises:
            InvalidArgument: it is no function that a worker can call, or `record` cannot be made.
        """
        if not inspect.isroutine(self._function) or _yields(self._function):
            raise InvalidArgument("invalid_handler", "a task is a function that returns; this is none")
        by_position = [each.name for each in self._signature.parameters if each.kind is each.POSITIONAL_ONLY]
        by_name = [each.name for each in self._signature.parameters if each.kind is not each.POSITIONAL_ONLY]
        function: Callable[..., Any] = self._function
        is_async = inspect.iscoroutinefunction(function)

        def run(job: Job) -> Any:
            given = (getattr(job, name) for name in by_position)
            return function(*given, **{name: getattr(job, name) for name in by_name})

        async def run_async(job: Job) -> Any:
            return await run(job)

        target = functools.wraps(function)(run_async if is_async else run)
        return HandlerBinding(self.record, target, is_async, (Parameter("job", "job"),), needs_loop=is_async)

    def _type(self, parameter: inspect.Parameter) -> Any:
        annotation = self._signature.annotation(parameter.name)
        if parameter.kind in _VARIABLE:
            why = f"{parameter} has no name and type of its own; name each parameter"
        elif annotation is MISSING:
            why = f"parameter {parameter.name} has no annotation, which says what is stored"
        elif isinstance(annotation, Unresolved):
            why = f"parameter {parameter.name}: {unresolved(annotation)}"
        elif annotation is JobContext:
            why = "a task's parameters are its payload; to take the context, bind a record with @rw.handler"
        else:
            return annotation
        raise InvalidArgument("invalid_handler", why)


def _yields(function: Callable[..., Any]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _default(parameter: inspect.Parameter) -> Any:
    if isinstance(parameter.default, list | dict | set):  # each job gets its own
        return msgspec.field(default_factory=functools.partial(copy.deepcopy, parameter.default))
    return parameter.default
