"""What wraps which job's runs, in which order, and what is no middleware."""

import types
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import pytest

from runwick import ConfigurationError, Job, JobContext, Next, NextAsync, Problem, Result, Runwick, UseMiddleware, job
from runwick.contracts.attempts import Kind

KIND = Kind("images.shrink", 1)


class Shrink(Job):
    width: int


class Rename(Job):
    name: str


class Mailer:
    pass


def an_app(*aliases: str | UseMiddleware) -> Runwick:
    rw = Runwick("shop", store="memory://")
    rw.job("images.shrink", middleware=aliases)(Shrink)
    return rw


def with_handler(rw: Runwick) -> Runwick:
    @rw.handler
    def shrink(job: Shrink) -> None: ...

    return rw


def layer(name: str) -> Callable[..., Any]:
    def yielding(ctx: JobContext) -> Generator[None, Result, Result]:
        return (yield)

    yielding.__qualname__ = yielding.__name__ = name
    return yielding


def around(rw: Runwick, kind: Kind = KIND) -> list[str]:
    assert rw.catalog.unknown_aliases == ()
    return [binding.target.__name__ for binding in rw.catalog.middleware[kind]]


def problems(rw: Runwick) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    return list(caught.value.problems)


def problem(rw: Runwick) -> Problem:
    [found] = problems(rw)
    return found


# Order ----------------------------------------------------------------------------------------------------------------


def test_the_order_of_all_layers() -> None:
    rw = with_handler(an_app(UseMiddleware("late", order=10), "b", "a", UseMiddleware("early", order=-1)))
    rw.configure_job(Shrink, middleware=[layer("own 1"), layer("own 2")])
    for alias in ("a", "b", "early", "late"):
        rw.middleware(alias=alias)(layer(alias))
    rw.middleware(layer("everywhere 1"))
    rw.configure_job(Shrink, max_executions=4, middleware=[layer("own 3")])
    rw.middleware()(layer("everywhere 2"))
    assert around(rw) == ["everywhere 1", "everywhere 2", "early", "a", "b", "late", "own 1", "own 2", "own 3"]


def test_an_alias_wraps_only_the_jobs_that_name_it() -> None:
    rw = with_handler(an_app())
    rw.job("images.rename", middleware=("audit",))(Rename)

    @rw.handler
    def rename(job: Rename) -> None: ...

    rw.middleware(alias="audit")(layer("audit"))
    assert around(rw) == []
    assert around(rw, Kind("images.rename", 1)) == ["audit"]


def test_a_task_and_the_free_decorator_name_aliases_as_well() -> None:
    @job("mail.greet", middleware=("audit", UseMiddleware("tenant", order=-5)))
    class Greet(Job):
        name: str

    module = types.ModuleType("jobs")
    module.Greet = Greet  # type: ignore[attr-defined]
    rw = Runwick("shop", store="memory://")
    rw.add_jobs(module)
    rw.job("mail.greet", middleware=("audit", "trace"))(Greet)  # layers add up

    @rw.handler
    def greet(job: Greet) -> None: ...

    @rw.task("stats.count", middleware=("trace",))
    def count(day: int) -> None: ...

    for alias in ("audit", "tenant", "trace"):
        rw.middleware(alias=alias)(layer(alias))
    assert around(rw, Kind("mail.greet", 1)) == ["tenant", "audit", "trace"]
    assert around(rw, Kind("stats.count", 1)) == ["trace"]


def test_it_takes_what_providers_yield() -> None:
    rw = with_handler(an_app())

    @rw.provider
    async def mailer() -> AsyncIterator[Mailer]:
        yield Mailer()

    @rw.middleware
    async def waiting(context, proceed: NextAsync) -> Result:  # type: ignore[no-untyped-def]
        return await proceed()

    @rw.middleware
    class Noting:
        def handle(self, ctx: JobContext, proceed: Next, *, mailer: Mailer, count: int = 3) -> Result:
            return proceed()

    second, first = rw.catalog.middleware[KIND]
    assert (first.form, first.needs_loop, [each.name for each in first.parameters]) == ("plain", True, ["mailer"])
    assert (second.form, second.needs_loop, second.parameters) == ("async", True, ())


# Aliases --------------------------------------------------------------------------------------------------------------


def test_an_alias_that_nobody_registered_is_for_a_worker_to_refuse() -> None:
    rw = with_handler(an_app("audot", "trace"))
    rw.middleware(alias="audit")(layer("audit"))
    first, second = rw.catalog.unknown_aliases
    assert (first.code, first.setting) == ("unknown_middleware_alias", "job Shrink")
    assert first.message == 'job Shrink uses the middleware "audot", which nobody registered. Did you mean "audit"?'
    assert '"trace"' in second.message


def test_a_producer_need_not_know_an_alias() -> None:
    assert an_app("audit").catalog.unknown_aliases == ()


def test_a_name_is_suggested_where_there_is_none() -> None:
    [found] = with_handler(an_app("audit")).catalog.unknown_aliases
    assert found.message.endswith('Register it with @rw.middleware(alias="audit").')


@pytest.mark.parametrize("alias", ["", "two words", "x" * 129, 5])
def test_an_alias_is_a_name(alias: Any) -> None:
    rw = with_handler(an_app())
    rw.middleware(alias=alias)(layer("audit"))
    assert problem(rw).code == "invalid_name"
    assert problem(with_handler(an_app(alias))).code == "invalid_name"
    assert problem(with_handler(an_app(UseMiddleware(alias)))).code == "invalid_name"


@pytest.mark.parametrize("aliases", ["audit", None, {"audit"}], ids=repr)
def test_aliases_come_in_a_tuple(aliases: Any) -> None:
    rw = Runwick("shop", store="memory://")
    rw.job("images.shrink", middleware=aliases)(Shrink)
    assert "must be a tuple of aliases" in problem(with_handler(rw)).message


def test_what_is_said_twice_must_agree() -> None:
    rw = with_handler(an_app("audit", UseMiddleware("audit"), UseMiddleware("audit", order=5)))
    rw.middleware(alias="audit")(layer("first"))
    rw.middleware(alias="audit")(layer("second"))
    found = problems(rw)
    assert {each.code for each in found} == {"invalid_middleware"}
    assert sorted(each.message.partition(" (")[0] for each in found) == [
        'job Shrink uses the middleware "audit" with two orders; give it one.',
        "middleware second",
    ]


def test_an_order_is_a_number() -> None:
    rw = with_handler(an_app(UseMiddleware("audit", order="first")))  # type: ignore[arg-type]
    assert "order of middleware \"audit\" ('first') must be a whole number" in problem(rw).message


# What is none ---------------------------------------------------------------------------------------------------------


def nothing() -> None: ...
def only_context(ctx: JobContext) -> Any: ...
def job_first(job: Shrink, proceed: Next) -> Any: ...
def unknown_first(ctx: "Unknown", proceed: Next) -> Any: ...  # type: ignore[name-defined]  # noqa: F821
def no_next(ctx: JobContext, mailer: Mailer) -> Any: ...
def two_contexts(ctx: JobContext, again: JobContext) -> Any: ...
def by_name(*, ctx: JobContext, proceed: Next) -> Any: ...
async def yielding_async(ctx: JobContext) -> Any:
    yield 1


class Demanding:
    def __init__(self, mailer: Mailer) -> None: ...
    def handle(self, ctx: JobContext, proceed: Next) -> Any: ...


class Idle:
    pass


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (nothing, "takes 0 parameters by position; the first are the context and next, which runs the rest."),
        (only_context, "takes 1 parameters by position"),
        (job_first, "takes Shrink first; the first parameter is the context: job: JobContext."),
        (unknown_first, "cannot resolve its annotation 'Unknown'"),
        (no_next, "takes Mailer second; the second parameter is next, which runs the rest."),
        (two_contexts, "takes JobContext second"),
        (by_name, "takes 0 parameters by position"),
        (yielding_async, "is an async generator, which cannot return a result"),
        (Demanding, "has a constructor with parameters; take them in handle"),
        (Idle, "is neither a function nor a class with a method handle."),
        (Mailer(), "is neither a function nor a class with a method handle."),
    ],
)
def test_what_is_no_middleware(target: Any, sentence: str) -> None:
    rw = with_handler(an_app())

    @rw.provider
    def mailer() -> Mailer:
        return Mailer()

    rw.middleware(target)
    found = problem(rw)
    assert found.code == "invalid_middleware"
    assert sentence in found.message


def test_what_nothing_can_fill_is_told_also_of_one_that_wraps_no_job() -> None:
    rw = with_handler(an_app())

    @rw.middleware(alias="unused")
    def noting(ctx: JobContext, mailer: Mailer) -> Generator[None, Result, Result]:
        return (yield)

    assert problem(rw).code == "unknown_dependency"


def calling(ctx: JobContext, proceed: Next) -> Result:
    return proceed()


async def awaiting(ctx: JobContext, proceed: NextAsync) -> Result:
    return await proceed()


def test_a_plain_one_cannot_wrap_what_is_async() -> None:
    rw = an_app()

    @rw.handler
    async def shrink(job: Shrink) -> None: ...

    rw.middleware(awaiting)
    rw.middleware(calling)
    found = problem(rw)
    assert found.code == "invalid_middleware"
    assert "middleware calling (" in found.message
    assert ") is plain and wraps handler test_a_plain_one" in found.message
    assert found.message.endswith("(result = yield; return result), which fits everywhere, or as async def.")


def test_a_plain_one_cannot_wrap_async_middleware_or_async_providers() -> None:
    rw = with_handler(an_app())
    rw.middleware(calling)
    rw.middleware(awaiting)
    assert "wraps middleware awaiting (" in problem(rw).message

    rw = an_app()

    @rw.provider
    async def mailer() -> Mailer:
        return Mailer()

    @rw.handler
    def shrink(job: Shrink, mailer: Mailer) -> None: ...

    rw.middleware(calling)
    assert "wraps handler test_a_plain_one" in problem(rw).message


def test_outside_of_it_anything_fits() -> None:
    rw = with_handler(an_app())
    rw.middleware(awaiting)
    rw.middleware(layer("yielding"))
    rw.middleware(calling)
    assert around(rw) == ["awaiting", "yielding", "calling"]
