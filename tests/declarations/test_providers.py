import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest

from runwick import ConfigurationError, Job, JobContext, Problem, Runwick
from runwick.declarations.providers import Provider
from runwick.declarations.signatures import Parameter


class Shrink(Job):
    width: int


class Engine:
    pass


class Session:
    pass


def an_app(*providers: Callable[..., Any], scope: Any = "attempt") -> Runwick:
    rw = Runwick("shop", store="memory://")
    for provider in providers:
        rw.provider(scope=scope)(provider)
    return rw


def problems(rw: Runwick) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    return list(caught.value.problems)


def function() -> Session:
    return Session()


async def async_function() -> Session:
    return Session()


def generator() -> Iterator[Session]:
    yield Session()


def full_generator() -> Generator[Session, None, None]:
    yield Session()


async def async_generator() -> AsyncIterator[Session]:
    yield Session()


@contextlib.contextmanager
def decorated() -> Iterator[Session]:
    yield Session()


@contextlib.asynccontextmanager
async def decorated_async() -> AsyncIterator[Session]:
    yield Session()


def manager() -> AbstractContextManager[Session]:
    return decorated()


def async_manager() -> AbstractAsyncContextManager[Session]:
    return decorated_async()


@pytest.mark.parametrize(
    ("source", "form", "is_async"),
    [
        (function, "function", False),
        (async_function, "function", True),
        (generator, "generator", False),
        (full_generator, "generator", False),
        (async_generator, "generator", True),
        (decorated, "context_manager", False),
        (decorated_async, "context_manager", True),
        (manager, "context_manager", False),
        (async_manager, "context_manager", True),
    ],
)
def test_the_form_is_read_from_the_function(source: Callable[..., Any], form: Any, is_async: bool) -> None:
    assert an_app(source).catalog.providers == {Session: Provider(Session, source, "attempt", form, is_async, ())}


def test_a_provider_takes_the_context_and_other_providers() -> None:
    def engine() -> Engine:
        return Engine()

    def session(engine: Engine, ctx: JobContext) -> Session:
        return Session()

    found = an_app(engine, session).catalog.providers[Session]
    assert found.parameters == (Parameter("engine", "provided", Engine), Parameter("ctx", "context"))


def test_the_decorator_works_with_and_without_arguments() -> None:
    rw = Runwick("shop", store="memory://")

    @rw.provider
    def session(engine: Engine) -> Session:
        return Session()

    @rw.provider(scope="process")
    def engine() -> Engine:
        return Engine()

    assert {type_: each.scope for type_, each in rw.catalog.providers.items()} == {
        Engine: "process",
        Session: "attempt",
    }
    assert isinstance(session(engine()), Session)


def unannotated():  # type: ignore[no-untyped-def]
    return Session()


def vague() -> Any:
    return Session()


def empty() -> None: ...


def of_a_job() -> Shrink:
    return Shrink(1)


def of_the_context() -> JobContext:
    raise NotImplementedError


def generator_of_what() -> Any:
    yield Session()


class NoFunction:
    def __call__(self) -> Session:
        return Session()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (unannotated, "does not say what it provides; annotate what it gives, such as -> Session."),
        (generator_of_what, "does not say what it provides; annotate what it gives, such as -> Iterator[Session]."),
        (vague, "Any; give the thing a type of its own."),
        (empty, "cannot provide NoneType; give the thing a type of its own."),
        (of_a_job, "cannot provide Shrink; give the thing a type of its own."),
        (of_the_context, "cannot provide JobContext; give the thing a type of its own."),
        (NoFunction(), "is no function; write one that returns or yields the thing"),
        (Session, "is no function; write one that returns or yields the thing"),
    ],
)
def test_what_is_no_provider(source: Callable[..., Any], sentence: str) -> None:
    [problem] = problems(an_app(source))
    assert problem.code == "invalid_provider"
    assert sentence in problem.message
    assert problem.message.startswith(problem.setting)


def test_a_scope_that_is_none() -> None:
    [problem] = problems(an_app(function, scope="request"))
    assert problem.code == "invalid_provider"
    assert 'has scope \'request\'; it is "attempt" or "process".' in problem.message


def test_two_providers_of_one_type() -> None:
    [problem] = problems(an_app(function, generator))
    assert problem.code == "invalid_provider"
    assert "provides Session, as does provider function (" in problem.message


def test_a_provider_needs_what_nobody_provides() -> None:
    def session(engine: Engine) -> Session:
        return Session()

    [problem] = problems(an_app(session))
    assert problem.code == "unknown_dependency"
    assert "parameter engine needs Engine, which no provider yields" in problem.message


def test_process_scope_cannot_depend_on_an_attempt() -> None:
    rw = Runwick("shop", store="memory://")

    @rw.provider
    def session() -> Session:
        return Session()

    @rw.provider(scope="process")
    def engine(session: Session) -> Engine:
        return Engine()

    [problem] = problems(rw)
    assert problem.code == "invalid_provider"
    assert 'has scope "process" and takes Session, which lives for one attempt only' in problem.message


def test_process_scope_cannot_depend_on_the_context() -> None:
    def engine(ctx: JobContext) -> Engine:
        return Engine()

    [problem] = problems(an_app(engine, scope="process"))
    assert 'has scope "process" and takes JobContext, which lives for one attempt only' in problem.message


def test_providers_that_need_each_other() -> None:
    def engine(session: Session) -> Engine:
        return Engine()

    def session(engine: Engine) -> Session:
        return Session()

    [problem] = problems(an_app(engine, session))
    assert problem.code == "invalid_provider"
    assert problem.message.endswith("needs itself (Engine → Session → Engine); break the ring.")


def test_a_provider_that_needs_itself() -> None:
    def session(session: Session) -> Session:
        return session

    [problem] = problems(an_app(session))
    assert problem.message.endswith("needs itself (Session → Session); break the ring.")
