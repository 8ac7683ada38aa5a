import functools
from collections.abc import Callable
from typing import Any

import pytest

from runwick import ConfigurationError, Job, JobContext, Problem, Runwick
from runwick.contracts.attempts import Kind
from runwick.declarations.handlers import HandlerBinding
from runwick.declarations.signatures import Parameter
from tests.declarations import annotated


class Shrink(Job):
    width: int


class Mailer:
    pass


class Clockwork:
    pass


def an_app() -> Runwick:
    rw = Runwick("shop", store="memory://")
    rw.job("images.shrink")(Shrink)
    return rw


def bound(rw: Runwick) -> HandlerBinding:
    [binding] = rw.catalog.handlers.values()
    return binding


def problem(rw: Runwick) -> Problem:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    [found] = caught.value.problems
    return found


def test_a_function_is_bound_by_its_first_parameter() -> None:
    rw = an_app()

    @rw.handler
    def shrink(work: Shrink, ctx: JobContext) -> dict[str, int]:
        return {"width": work.width}

    assert rw.catalog.handlers[Kind("images.shrink", 1)] == HandlerBinding(
        record=Shrink,
        target=shrink,
        is_async=False,
        parameters=(Parameter("work", "job"), Parameter("ctx", "context")),
        needs_loop=False,
        takes_context=True,
    )


def test_how_a_handler_is_interrupted() -> None:
    def seeing(job: Shrink, ctx: JobContext) -> None: ...
    def blind(job: Shrink) -> None: ...

    right: list[tuple[Any, Any, bool]] = [(seeing, "raise", True), (seeing, "token", True), (blind, "raise", False)]
    for target, interrupt, takes_context in right:
        rw = an_app()
        rw.handler(interrupt=interrupt)(target)
        assert (bound(rw).interrupt, bound(rw).takes_context) == (interrupt, takes_context)
    wrong: list[tuple[Any, Any, str]] = [
        (blind, "token", 'has interrupt="token" but no way to see the token; take ctx: JobContext as well.'),
        (seeing, "never", 'has interrupt=\'never\'; it is "raise" or "token".'),
        (seeing, None, 'has interrupt=None; it is "raise" or "token".'),
    ]
    for target, interrupt, sentence in wrong:
        rw = an_app()
        rw.handler(interrupt=interrupt)(target)
        found = problem(rw)
        assert (found.code, found.message.endswith(sentence)) == ("invalid_handler", True)


def test_an_async_function_needs_a_loop() -> None:
    rw = an_app()

    @rw.handler
    async def shrink(job: Shrink) -> None: ...

    assert (bound(rw).is_async, bound(rw).needs_loop) == (True, True)


def test_a_class_with_handle_is_a_handler() -> None:
    rw = an_app()

    @rw.handler
    class Shrinker:
        async def handle(self, job: Shrink, ctx: JobContext) -> None: ...

    found = bound(rw)
    assert (found.target, found.is_async, [each.role for each in found.parameters]) == (
        Shrinker,
        True,
        ["job", "context"],
    )


def test_handle_may_be_static_or_of_the_class() -> None:
    class Static:
        @staticmethod
        def handle(job: Shrink, ctx: JobContext) -> None: ...

    class OfTheClass:
        @classmethod
        def handle(cls, job: Shrink, ctx: JobContext) -> None: ...

    for target in (Static, OfTheClass):
        rw = an_app()
        rw.handler(target)
        assert [each.name for each in bound(rw).parameters] == ["job", "ctx"]


def test_a_method_of_an_object_is_a_handler() -> None:
    class Shrinker:
        def shrink(self, job: Shrink) -> None: ...

    rw = an_app()
    rw.handler(Shrinker().shrink)
    assert [each.name for each in bound(rw).parameters] == ["job"]


def test_a_wrapped_function_keeps_its_signature() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    rw = an_app()

    @rw.handler
    @logged
    def shrink(job: Shrink, ctx: JobContext) -> None: ...

    assert [each.role for each in bound(rw).parameters] == ["job", "context"]


def test_what_is_taken_beside_the_job_comes_from_providers() -> None:
    rw = an_app()

    @rw.provider
    def mailer() -> Mailer:
        return Mailer()

    @rw.handler
    def shrink(
        job: Shrink, *, mailer: Mailer, retries: int = 3, clock: Clockwork | None = None, **more: Any
    ) -> None: ...

    assert bound(rw).parameters == (Parameter("job", "job"), Parameter("mailer", "provided", Mailer))


def test_an_async_provider_makes_a_plain_handler_need_a_loop() -> None:
    rw = an_app()

    @rw.provider
    async def clockwork() -> Clockwork:
        return Clockwork()

    @rw.provider
    def mailer(clock: Clockwork) -> Mailer:
        return Mailer()

    @rw.handler
    def shrink(job: Shrink, mailer: Mailer) -> None: ...

    assert (bound(rw).is_async, bound(rw).needs_loop) == (False, True)


def test_a_handler_registers_a_record_that_is_named_elsewhere() -> None:
    from tests.declarations.shared import Welcome

    rw = Runwick("shop", store="memory://")

    @rw.handler
    def welcome(job: Welcome) -> None: ...

    assert Kind("mail.welcome", 1) in rw.catalog.jobs


def test_a_handler_of_a_record_that_nobody_named() -> None:
    rw = Runwick("shop", store="memory://")

    @rw.handler
    def shrink(job: Shrink) -> None: ...

    found = problem(rw)
    assert found.code == "job_not_registered"
    assert found.text.startswith("record Shrink is not declared; name it with @rw.job(…)")


def test_two_handlers_of_one_job() -> None:
    rw = an_app()

    @rw.handler
    def first(job: Shrink) -> None: ...

    @rw.handler
    def second(job: Shrink) -> None: ...

    found = problem(rw)
    assert (found.code, found.setting) == ("duplicate_handler", "job Shrink")
    assert ".first (" in found.message
    assert ".second (" in found.message


def nothing() -> None: ...
def unannotated(job) -> None: ...  # type: ignore[no-untyped-def]
def of_text(job: str) -> None: ...
def any_number(*jobs: Shrink) -> None: ...
def by_name(*, job: Shrink) -> None: ...
def in_place(job: Shrink, /) -> None: ...
def yielding(job: Shrink) -> Any:
    yield 1


async def yielding_async(job: Shrink) -> Any:
    yield 1


class Demanding:
    def __init__(self, mailer: Mailer) -> None: ...
    def handle(self, job: Shrink) -> None: ...


class Idle:
    pass


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (nothing, "takes no parameter; the first is the job, annotated with its record."),
        (unannotated, "has no annotation on its first parameter; write job: with the job's record."),
        (of_text, "takes str first; the first parameter is a record that derives from runwick.Job."),
        (any_number, "takes *jobs: tests.declarations.test_handlers.Shrink first; the first parameter is the job"),
        (by_name, "first; the first parameter is the job, an ordinary one."),
        (in_place, "first; the first parameter is the job, an ordinary one."),
        (yielding, "yields; a handler returns its result."),
        (yielding_async, "yields; a handler returns its result."),
        (Demanding, "has a constructor with parameters; take them in handle, where they are injected."),
        (Idle, "is neither a function nor a class with a method handle."),
        (Mailer(), "is neither a function nor a class with a method handle."),
    ],
)
def test_what_is_no_handler(target: Any, sentence: str) -> None:
    rw = an_app()
    rw.handler(target)
    found = problem(rw)
    assert found.code == "invalid_handler"
    assert sentence in found.message
    assert found.message.startswith(found.setting)


def test_a_parameter_that_nothing_can_fill() -> None:
    rw = an_app()

    @rw.provider
    def mailer() -> Mailer:
        return Mailer()

    class Maile: ...

    @rw.handler
    def shrink(job: Shrink, mailer: Maile) -> None: ...

    found = problem(rw)
    assert found.code == "unknown_dependency"
    assert "parameter mailer needs " in found.message
    assert "which no provider yields; declare one with @rw.provider." in found.message


def test_a_near_provider_is_suggested() -> None:
    rw = an_app()

    @rw.provider
    def mailer() -> Mailer:
        return Mailer()

    near = type("Mailr", (), {})

    def shrink(job: Shrink, mailer: Any) -> None: ...

    shrink.__annotations__["mailer"] = near
    rw.handler(shrink)
    assert problem(rw).message.endswith('Did you mean "Mailer"?')


def test_a_parameter_without_annotation() -> None:
    rw = an_app()

    @rw.handler
    def shrink(job: Shrink, mailer) -> None: ...  # type: ignore[no-untyped-def]

    found = problem(rw)
    assert (found.code, "parameter mailer has no annotation" in found.message) == ("invalid_handler", True)


def test_annotations_as_text_may_name_what_comes_later() -> None:
    catalog = annotated.rw.catalog
    shrink = catalog.handlers[Kind("images.shrink", 1)]
    assert shrink.record is annotated.Shrink
    assert [(each.name, each.role, each.provides) for each in shrink.parameters] == [
        ("job", "job", None),
        ("ctx", "context", None),
        ("images", "provided", annotated.Images),
    ]
    assert catalog.handlers[Kind("images.rename", 1)].record is annotated.rename.record


def test_annotations_as_text_may_name_what_only_their_function_knows() -> None:
    rw = Runwick("shop", store="memory://")
    record = annotated.declare_locally(rw)
    assert bound(rw).record is record
    assert [each.role for each in bound(rw).parameters] == ["job", "provided"]


def test_names_that_are_not_there_are_told() -> None:
    rw = Runwick("shop", store="memory://")
    rw.job("images.shrink")(annotated.Shrink)
    annotated.declare_with_unknown_names(rw)
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    found = {each.setting.split(" (")[0].rpartition(".")[2]: each for each in caught.value.problems}
    assert {each.code for each in caught.value.problems} == {"invalid_handler", "invalid_provider"}
    assert "cannot resolve its annotation 'Payment': the name 'Payment' is not known there." in found["pay"].message
    for label in ("charge", "purse", "round"):
        message = next(each.message for each in caught.value.problems if label in each.setting)
        assert "cannot resolve its annotation 'Decimal': the name 'Decimal' is not known there." in message
        assert "Import it for real (not under TYPE_CHECKING)" in message
