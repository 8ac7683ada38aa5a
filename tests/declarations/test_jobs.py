import types
from typing import Any

import pytest

from runwick import ConfigurationError, InvalidArgument, Job, Problem, Runwick, job
from runwick.contracts.attempts import Kind
from tests.declarations import shared


class Report(Job):
    number: int


class Bill(Job):
    number: int


def an_app(application: str = "shop") -> Runwick:
    return Runwick(application, store="memory://")


def problems(rw: Runwick) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    return list(caught.value.problems)


def codes(rw: Runwick) -> list[str]:
    return [problem.code for problem in problems(rw)]


def test_a_job_is_known_by_its_name_and_version() -> None:
    rw = an_app()
    rw.job("reports.build", version=2)(Report)
    catalog = rw.catalog
    assert list(catalog.jobs) == [Kind("reports.build", 2)]
    assert catalog.jobs[Kind("reports.build", 2)] is catalog.by_record[Report]


def test_a_module_of_shared_types_is_added_as_a_whole() -> None:
    rw = an_app()
    rw.add_jobs(shared)
    assert {entry.kind.name: entry.record for entry in rw.catalog.jobs.values()} == {
        "mail.welcome": shared.Welcome,
        "mail.reset": shared.Reset,
    }
    assert rw.catalog.by_record[shared.Welcome].policy.max_executions == 7
    assert rw.catalog.queues == {"mail", "default"}


def test_adding_twice_changes_nothing() -> None:
    rw = an_app()
    rw.add_jobs(shared, shared)
    rw.job("mail.welcome")(shared.Welcome)
    assert len(rw.catalog.jobs) == 2


@pytest.mark.parametrize("given", [None, 5, "shop.jobs", []], ids=repr)
def test_what_is_declared_is_of_the_right_kind(given: Any) -> None:
    rw = an_app()
    rw.add_jobs(given)
    rw.configure_job(given, max_executions=2)
    found = [(problem.code, problem.message.partition(" (")[0]) for problem in problems(rw)]
    kind = type(given).__name__
    assert found == [
        ("job_not_registered", f"add_jobs takes modules, this is {kind}"),
        ("invalid_payload_type", f"configure_job takes a record derived from runwick.Job, this is {kind}"),
    ]


@pytest.mark.parametrize("name", [None, 5, [], {}], ids=repr)
def test_a_queue_is_named_by_text(name: Any) -> None:
    rw = an_app()
    rw.queue(name)
    [problem] = problems(rw)
    assert problem.code == "invalid_name"
    assert problem.message.endswith(f"is not a name: a name is text, this is {type(name).__name__}.")


def test_a_module_without_jobs_was_probably_meant_to_have_some() -> None:
    rw = an_app()
    rw.add_jobs(types.ModuleType("shop.empty"))
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("job_not_registered", "shop.empty")
    assert "names no job with @runwick.job" in problem.message


def test_settings_given_with_the_free_decorator_and_by_the_application_are_one_layer() -> None:
    rw = an_app()
    rw.job("mail.welcome", queue="post")(shared.Welcome)
    [problem] = problems(rw)
    assert problem.code == "setting_conflict"
    assert "queue is 'mail' at" in problem.message
    assert "shared.py:" in problem.message


@pytest.mark.parametrize(("name", "version"), [("mail.greeting", 1), ("mail.welcome", 2)])
def test_name_and_version_must_agree(name: str, version: int) -> None:
    rw = an_app()
    rw.job(name, version=version)(shared.Welcome)
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("identity_conflict", 'job "mail.welcome"')
    assert f'but "{name}" version {version} at' in problem.message


def test_two_records_cannot_share_a_name() -> None:
    rw = an_app()
    rw.job("reports.build")(Report)
    rw.job("reports.build", version=2)(Bill)
    [problem] = problems(rw)
    assert problem.code == "duplicate_job_name"
    assert "tests.declarations.test_jobs.Report and tests.declarations.test_jobs.Bill" in problem.message


def test_configuring_alone_registers_nothing() -> None:
    rw = an_app()
    rw.configure_job(Report, max_executions=2)
    [problem] = problems(rw)
    assert problem.code == "job_not_registered"
    assert problem.text.startswith("record Report is not declared")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        ("x" * 201, "it has 201 characters, the limit is 200"),
        ("two words", "it must be letters, digits"),
        (".hidden", "starting with a letter or digit"),
        ("émail", "(ASCII)"),
        ("mail\n", "it must be letters"),
    ],
)
def test_a_name_that_is_none(name: str, why: str) -> None:
    rw = an_app()
    rw.job(name)(Report)
    [problem] = problems(rw)
    assert problem.code == "invalid_name"
    assert why in problem.message


def test_the_longest_name_is_one() -> None:
    rw = an_app()
    rw.job("x" * 200)(Report)
    assert Kind("x" * 200, 1) in rw.catalog.jobs


@pytest.mark.parametrize("version", [0, -1, True, "1"])
def test_a_version_that_is_none(version: Any) -> None:
    rw = an_app()
    rw.job("reports.build", version=version)(Report)
    [problem] = problems(rw)
    assert problem.code == "invalid_policy"
    assert problem.message == f"version ({version!r}) must be a whole number from 1."


def test_a_payload_type_is_refused_when_it_is_declared() -> None:
    class Loose(Job):
        options: dict[str, Any]

    rw = an_app()
    rw.job("reports.loose")(Loose)
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("invalid_payload_type", 'job "reports.loose"')
    assert problem.message.startswith("$.options{}: a value of any type has no fixed shape")


def test_only_a_record_can_be_a_job() -> None:
    rw = an_app()
    rw.job("reports.build")(dict)  # type: ignore[type-var]
    [problem] = problems(rw)
    assert problem.code == "invalid_payload_type"
    assert problem.message == "dict is no record; derive it from runwick.Job."


def test_the_name_of_a_job_cannot_be_left_out() -> None:
    rw = an_app()
    with pytest.raises(InvalidArgument, match=r'invalid_name: @rw.job takes the stored name: write @rw.job\("'):
        rw.job(Report)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r'invalid_name: @rw.task takes the stored name: write @rw.task\("'):
        rw.task(lambda: None)  # type: ignore[arg-type]


def test_an_unknown_setting_is_an_error_of_the_call() -> None:
    rw = an_app()
    with pytest.raises(TypeError, match="max_execution"):
        rw.job("reports.build", max_execution=3)  # type: ignore[call-arg]


def test_everything_wrong_is_told_at_once() -> None:
    rw = an_app("my shop")
    rw.job("reports build", queue="two words", max_executions=0)(Report)
    rw.job("bills.send", version=0)(Bill)
    rw.queue("a queue")
    rw.pool("main", queues=("bils",))
    rw.pool("main", concurrency=2)

    @rw.handler
    def without_a_job() -> None: ...

    @rw.provider
    def nothing() -> None: ...

    assert sorted(codes(rw)) == sorted(
        [
            "invalid_name",  # the application
            "invalid_name",  # the job
            "invalid_name",  # its queue
            "invalid_policy",  # its executions
            "invalid_policy",  # a version
            "invalid_name",  # a queue
            "invalid_pool",  # an unknown queue
            "invalid_pool",  # two pools of one name
            "invalid_handler",
            "invalid_provider",
        ]
    )


def test_a_pool_that_subscribes_to_a_queue_nobody_uses() -> None:
    rw = an_app()
    rw.job("images.shrink", queue="images")(Report)
    rw.pool("main", queues=("imgaes",))
    [problem] = problems(rw)
    assert problem.text == (
        'pool "main" subscribes to queue "imgaes", which no job uses and nothing declares. Did you mean "images"?'
    )


def test_queues_that_are_declared_or_used_are_known() -> None:
    rw = an_app()
    rw.job("images.shrink", queue="images")(Report)
    rw.queue("bulk")
    rw.pool("main", queues=("bulk", "images"), concurrency=2)
    rw.pool("main", queues=("bulk", "images"), concurrency=2)
    assert rw.catalog.queues == {"images", "bulk"}
    assert [(pool.name, pool.queues, pool.concurrency) for pool in rw.catalog.pools] == [
        ("main", ("bulk", "images"), 2)
    ]


def test_several_pools_in_the_order_of_their_declaration() -> None:
    rw = an_app()
    rw.job("images.shrink", queue="images")(Report)
    rw.pool("main")
    rw.pool("images", queues=("images",), concurrency=2)
    assert [(pool.name, pool.concurrency) for pool in rw.catalog.pools] == [("main", 4), ("images", 2)]


def test_without_a_pool_there_is_one_on_every_queue() -> None:
    [pool] = an_app().catalog.pools
    assert (pool.name, pool.queues, pool.concurrency) == ("main", None, 4)


def test_what_is_declared_after_a_look_counts_at_the_next() -> None:
    rw = an_app()
    rw.job("reports.build")(Report)
    first = rw.catalog
    assert rw.catalog is first
    rw.job("bills.send")(Bill)
    assert len(rw.catalog.jobs) == 2
    assert len(first.jobs) == 1


def test_one_record_may_have_another_name_in_another_application() -> None:
    ours, theirs = an_app("ours"), an_app("theirs")
    ours.job("reports.build")(Report)
    theirs.job("reports.make")(Report)
    assert Kind("reports.build", 1) in ours.catalog.jobs
    assert Kind("reports.make", 1) in theirs.catalog.jobs


def test_a_declaration_is_not_inherited() -> None:
    @job("reports.base")
    class Base(Job):
        number: int

    class Derived(Base):
        pass

    rw = an_app()

    @rw.handler
    def build(work: Derived) -> None: ...

    assert codes(rw) == ["job_not_registered"]
