"""Opens what handlers ask for and closes it again, in reverse order, whatever happened in between.

An attempt scope lives for one attempt and opens each provider at most once, with what it depends on opened before it.
The process scope lives as long as its `Invoker`; a provider of process scope is opened when an attempt first needs it
and closed at the end of the process. `runwick.execution.shared` is the one for attempts on several threads.

    open     source(...)            function: the value is what it returns, there is nothing to close
             next / enter           generator, context manager: the value is what it yields or enters
    close    resume or throw        a failed attempt's error is thrown into its providers, so that they roll back

A provider sees the failure but cannot swallow it, and one that fails while closing never keeps the others open.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

from runwick.contracts.context import JobContext
from runwick.contracts.jobs import Job
from runwick.declarations.providers import Provider
from runwick.declarations.signatures import Parameter

_traceback_of: Final = vars(BaseException)["__traceback__"].__get__
"""The traceback of an error whose class may forbid to ask it for one."""


Visit = Callable[[Awaitable[Any]], Awaitable[Any]]
"""How something async is awaited from where a scope is: on its own loop, or by somebody on another one."""


async def directly(awaitable: Awaitable[Any]) -> Any:
    """Await it here."""
    return await awaitable


class ProcessValues(Protocol):
    """Where values of process scope come from."""

    async def provide(self, wanted: Any) -> Any:
        """The value of the provider of `wanted`, opened now if it is not open yet."""
        ...

    async def close(self, failure: BaseException | None) -> list[BaseException]:
        """Close what is open, last opened first; answers what was raised by it."""
        ...


class _Scope:
    """What is open, in the order of opening."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._values: dict[Any, Any] = {}
        self._managers: list[tuple[Any, bool]] = []

    async def _open(self, provider: Provider, arguments: Mapping[str, Any]) -> Any:
        opened = provider.opener(**arguments)
        if provider.form == "function":
            value = await self._visit(opened) if provider.is_async else opened
        else:
            value = await self._visit(opened.__aenter__()) if provider.is_async else opened.__enter__()
            self._managers.append((opened, provider.is_async))
        self._values[provider.provides] = value
        return value

    async def close(self, failure: BaseException | None) -> list[BaseException]:
        """Close everything, last opened first; answers what was raised by it.

        Args:
            failure: what ended the attempt, thrown into each provider; None when it succeeded. Once closing one of
                them fails, the rest see that.
        """
        raised: list[BaseException] = []
        while self._managers:
            manager, is_async = self._managers.pop()
            told = (None, None, None) if failure is None else (type(failure), failure, _traceback_of(failure))
            try:
                if is_async:
                    await self._visit(manager.__aexit__(*told))
                else:
                    manager.__exit__(*told)
            except BaseException as error:
                if error is not failure:
                    raised.append(error)
                    failure = error if failure is None else failure
        self._values.clear()
        failure = None  # it may hold this frame through its traceback
        return raised


class ProcessScope(_Scope):
    """Values that live as long as the process.

    Args:
        providers: all that are declared.
        turn: held while one is opened, so that attempts which share an event loop open it once.
        visit: how what is async is awaited.
    """

    def __init__(
        self, providers: Mapping[Any, Provider], turn: AbstractAsyncContextManager[Any], visit: Visit = directly
    ) -> None:
        super().__init__(visit)
        self._providers = providers
        self._turn = turn

    @property
    def open(self) -> Mapping[Any, Any]:
        """The values that are open, by type."""
        return self._values

    async def provide(self, wanted: Any) -> Any:
        if wanted in self._values:
            return self._values[wanted]
        async with self._turn:
            return await self._provide(wanted)

    async def _provide(self, wanted: Any) -> Any:
        if wanted in self._values:
            return self._values[wanted]
        provider = self._providers[wanted]
        arguments = {}
        for parameter in provider.parameters:
            arguments[parameter.name] = await self._provide(parameter.provides)
        return await self._open(provider, arguments)


class AttemptScope(_Scope):
    """Values that live as long as one attempt.

    Args:
        process: where values of process scope come from.
        providers: all that are declared.
        context: makes the attempt's context; called at most once, when somebody asks for it.
        visit: how what is async is awaited.
    """

    def __init__(
        self,
        process: ProcessValues,
        providers: Mapping[Any, Provider],
        context: Callable[[], JobContext],
        visit: Visit = directly,
    ) -> None:
        super().__init__(visit)
        self._process = process
        self._providers = providers
        self._make_context = context
        self._context: JobContext | None = None

    async def arguments(self, parameters: Iterable[Parameter], job: Job | None = None) -> dict[str, Any]:
        """What a handler, or a provider, with these parameters is called with. A provider takes no job."""
        arguments: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.role == "job":
                arguments[parameter.name] = job
            elif parameter.role == "context":
                arguments[parameter.name] = self.context()
            else:
                arguments[parameter.name] = await self._provide(parameter.provides)
        return arguments

    async def _provide(self, wanted: Any) -> Any:
        if wanted in self._values:
            return self._values[wanted]
        provider = self._providers[wanted]
        if provider.scope == "process":
            return await self._process.provide(wanted)
        return await self._open(provider, await self.arguments(provider.parameters))

    def context(self) -> JobContext:
        """The attempt's context, one for all who take it."""
        if self._context is None:
            self._context = self._make_context()
        return self._context
