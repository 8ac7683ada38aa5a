"""Which older payloads can be run, and what is no upgrade."""

from typing import Any

import pytest

from runwick import ConfigurationError, Job, JobContext, Problem, Runwick
from runwick.contracts.attempts import Kind


class WelcomeV1(Job):
    user: int


class WelcomeV2(Job):
    user: int
    name: str


class Welcome(Job):
    user: int
    name: str
    locale: str


def named(old: WelcomeV1) -> WelcomeV2:
    return WelcomeV2(old.user, "you")


def with_locale(old: WelcomeV2) -> Welcome:
    return Welcome(old.user, old.name, "en")


def an_app(version: int = 3, *, handled: bool = True) -> Runwick:
    rw = Runwick("shop", store="memory://")
    rw.job("email.welcome", version=version)(Welcome)
    if handled:

        @rw.handler
        def welcome(job: Welcome) -> None: ...

    return rw


def messages(rw: Runwick) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    assert {problem.code for problem in caught.value.problems} == {"invalid_upgrade"}
    return [problem.message for problem in caught.value.problems]


def kinds(rw: Runwick) -> set[int]:
    return {kind.version for kind in rw.catalog.decodable if kind.name == "email.welcome"}


def test_every_version_that_leads_to_the_current_one_can_be_run() -> None:
    rw = an_app()
    assert kinds(rw) == {3}
    rw.upgrade(Welcome, from_version=2)(with_locale)
    assert kinds(rw) == {2, 3}
    rw.upgrade(Welcome, from_version=1)(named)
    assert kinds(rw) == {1, 2, 3}
    decodable = rw.catalog.decodable
    assert decodable[Kind("email.welcome", 3)] is None
    for version, functions in ((1, [named, with_locale]), (2, [with_locale])):
        route = decodable[Kind("email.welcome", version)]
        assert route is not None
        assert route.kind == Kind("email.welcome", 3)
        assert [step.function for step in route.steps] == functions


def test_without_a_handler_nothing_can_be_run() -> None:
    rw = an_app(handled=False)
    rw.upgrade(Welcome, from_version=2)(with_locale)
    assert kinds(rw) == set()


def test_an_unchanged_shape_may_be_upgraded_into_itself() -> None:
    rw = an_app(version=2)

    @rw.upgrade(Welcome, from_version=1)
    def from_numbers(old: Welcome) -> Welcome:
        return old

    assert kinds(rw) == {1, 2}


def test_a_task_stands_for_its_record() -> None:
    rw = Runwick("shop", store="memory://")

    @rw.task("stats.count", version=2)
    def count(day: int, shop: str) -> None: ...

    class CountV1(Job):
        day: int

    @rw.upgrade(count, from_version=1)
    def with_shop(old: CountV1) -> Job:
        return count.job(old.day, "all")

    route = rw.catalog.decodable[Kind("stats.count", 1)]
    assert route is not None
    assert route.steps[0].gives is count.record


def test_a_gap_is_told() -> None:
    rw = an_app()
    rw.upgrade(Welcome, from_version=1)(named)
    [message] = messages(rw)
    assert message.startswith("upgrade named (at ")
    assert message.endswith("leads to version 2, from where none leads to version 3; declare it.")


def test_everything_wrong_is_told_at_once() -> None:
    rw = an_app()
    rw.upgrade(Welcome, from_version=2)(with_locale)
    rw.upgrade(Welcome, from_version=3)(with_locale)
    rw.upgrade(Welcome, from_version=2)(with_locale)
    rw.upgrade(Welcome, from_version=1)(with_locale)
    found = messages(rw)
    assert len(found) == 3
    assert any("starts at version 2, as does upgrade with_locale at " in each for each in found)
    assert any(each.endswith("returns Welcome, and version 2 is WelcomeV2.") for each in found)
    assert any(each.endswith("starts at version 3, and email.welcome is at version 3; raise that.") for each in found)


class Loose(Job):
    anything: Any


def untyped(old) -> Welcome: ...  # type: ignore[no-untyped-def, empty-body]
def unreturning(old: WelcomeV2): ...  # type: ignore[no-untyped-def]
def of_text(old: str) -> Welcome: ...  # type: ignore[empty-body]
def to_text(old: WelcomeV2) -> str: ...  # type: ignore[empty-body]
def two(old: WelcomeV2, ctx: JobContext) -> Welcome: ...  # type: ignore[empty-body]
def unknown(old: "Unknown") -> Welcome: ...  # type: ignore[name-defined, empty-body]  # noqa: F821
def loose(old: Loose) -> Welcome: ...  # type: ignore[empty-body]
def to_itself(old: WelcomeV2) -> WelcomeV2: ...  # type: ignore[empty-body]
def to_any_job(old: WelcomeV2) -> Job: ...  # type: ignore[empty-body]
def yielding(old: WelcomeV2) -> Any:
    yield 1


async def waiting(old: WelcomeV2) -> Welcome: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (untyped, "does not say what it takes; annotate it with the record."),
        (unreturning, "does not say what it returns; annotate it with the record."),
        (of_text, "takes str; old and new shapes derive from runwick.Job."),
        (to_text, "returns str; old and new shapes derive from runwick.Job."),
        (two, "takes the old record and nothing else."),
        (unknown, "cannot resolve its annotation 'Unknown'"),
        (loose, "takes Loose: "),
        (to_itself, "returns WelcomeV2, and version 3 is Welcome."),
        (to_any_job, "returns Job, and version 3 is Welcome."),
        (yielding, "yields; an upgrade returns the next record."),
        (waiting, "is async; an upgrade is a pure function of the old record."),
        (5, "is no function."),
    ],
)
def test_what_is_no_upgrade(function: Any, sentence: str) -> None:
    rw = an_app()
    rw.upgrade(Welcome, from_version=2)(function)
    [message] = messages(rw)
    assert sentence in message


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0], ids=repr)
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    rw = an_app()
    rw.upgrade(Welcome, from_version=version)(with_locale)
    assert "it is a whole number from 1." in messages(rw)[0]


@pytest.mark.parametrize("target", [str, "Welcome", None], ids=repr)
def test_an_upgrade_is_for_a_record_or_a_task(target: Any) -> None:
    rw = an_app()
    rw.upgrade(target, from_version=2)(with_locale)
    assert "; name the record or the task whose payloads it upgrades." in messages(rw)[0]


def test_a_record_without_a_name_has_nothing_to_upgrade() -> None:
    rw = Runwick("shop", store="memory://")
    rw.upgrade(Welcome, from_version=2)(with_locale)
    assert messages(rw) == ["record Welcome has upgrades but no name."]


def test_what_is_wrong_with_a_record_is_not_told_again_for_its_upgrades() -> None:
    rw = Runwick("shop", store="memory://")
    rw.job("two words", version=3)(Welcome)
    rw.upgrade(Welcome, from_version=2)(with_locale)
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    [found] = caught.value.problems
    assert isinstance(found, Problem)
    assert found.code == "invalid_name"
