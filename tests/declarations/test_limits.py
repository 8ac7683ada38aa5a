"""Limits, keys and weights as they are declared: which layer wins, what is refused, what the catalog holds."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from runwick import (
    ConfigurationError,
    Job,
    JobDefaults,
    LaneSelection,
    PerResource,
    Problem,
    RollingWindow,
    RollingWindowPerResource,
    Runwick,
    UniqueWithinWindow,
    job,
)
from runwick.contracts.jobs import JobSettings
from runwick.contracts.limits import DeclaredLimits, LimitKind, ScopeNeed
from runwick.declarations.limits import UNLIMITED, JobLimits
from runwick.declarations.settings import SettingArguments

MINUTE = datetime.timedelta(minutes=1)


class Render(Job):
    page: int


def by_page(job: Render) -> str:
    return f"page:{job.page}"


def by_book(job: Render) -> str:
    return "book"


EVERYTHING = JobLimits(
    max_concurrent=5,
    per_resource=(PerResource(by_page, 1), PerResource(by_book, 9)),
    rolling_window=RollingWindow(100, MINUTE),
    rolling_window_per_resource=(RollingWindowPerResource(by_page, 10, MINUTE),),
    unique_while_active=by_page,
    unique_within_window=UniqueWithinWindow(by_book, MINUTE),
)


def an_app(**options: Any) -> Runwick:
    return Runwick("shop", store="memory://", **options)


def problems(rw: Runwick) -> list[Problem]:
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    return list(caught.value.problems)


def limits(rw: Runwick) -> JobLimits:
    return rw.catalog.by_record[Render].limits


def test_a_job_has_no_limits_unless_it_says_so() -> None:
    rw = an_app()
    rw.job("pdf.render")(Render)
    assert limits(rw) == UNLIMITED == JobLimits(None, (), None, (), None, None)
    assert (rw.catalog.limits, rw.catalog.queue_limits) == (DeclaredLimits(), {})


def by_free_decorator(rw: Runwick, given: Any) -> type[Job]:
    class Free(Job):
        page: int

    job("pdf.render", **given)(Free)
    rw.handler(handling(Free))
    return Free


def handling(record: type[Job]) -> Any:
    def handle(job: Any) -> None: ...

    handle.__annotations__["job"] = record
    return handle


def by_application(rw: Runwick, given: Any) -> type[Job]:
    rw.job("pdf.render", **given)(Render)
    return Render


def by_configuring(rw: Runwick, given: Any) -> type[Job]:
    rw.job("pdf.render")(Render)
    rw.configure_job(Render, **given)
    return Render


def by_task(rw: Runwick, given: Any) -> type[Job]:
    @rw.task("pdf.render", **given)
    def render(page: int) -> None: ...

    return render.record


@pytest.mark.parametrize("declare", [by_free_decorator, by_application, by_configuring, by_task])
def test_every_way_of_declaring_takes_every_limit(declare: Any) -> None:
    rw = an_app()
    record = declare(rw, EVERYTHING._asdict())
    assert rw.catalog.by_record[record].limits == EVERYTHING


def test_defaults_of_the_application_take_every_limit() -> None:
    given: Any = EVERYTHING._asdict()
    rw = an_app(job_defaults=JobDefaults(**given))
    rw.job("pdf.render")(Render)
    assert limits(rw) == EVERYTHING


def test_every_setting_can_be_given_in_every_way() -> None:
    assert set(SettingArguments.__annotations__) == set(JobSettings.__struct_fields__)
    assert set(JobLimits._fields) <= set(JobSettings.__struct_fields__)


LAYERS: list[tuple[str, tuple[Any, Any, Any]]] = [
    ("max_concurrent", (5, 6, 7)),
    ("per_resource", ((PerResource(by_page, 1),), (PerResource(by_page, 2),), ())),
    ("rolling_window", (RollingWindow(1, MINUTE), RollingWindow(2, MINUTE), None)),
    ("rolling_window_per_resource", ((), (RollingWindowPerResource(by_page, 1, MINUTE),), ())),
    ("unique_while_active", (by_page, by_book, None)),
    ("unique_within_window", (UniqueWithinWindow(by_page, MINUTE), UniqueWithinWindow(by_book, MINUTE), None)),
]


@pytest.mark.parametrize(("setting", "values"), LAYERS, ids=lambda value: value if isinstance(value, str) else "")
def test_later_layers_win_and_none_turns_a_limit_off(setting: str, values: tuple[Any, Any, Any]) -> None:
    def made(*layers: Any) -> Any:
        defaults, declared, configured = ({} if each is ... else {setting: each} for each in layers)
        rw = an_app(job_defaults=JobDefaults(**defaults))
        rw.job("pdf.render", **declared)(Render)
        rw.configure_job(Render, **configured)
        return getattr(limits(rw), setting)

    first, second, third = values
    assert made(first, ..., ...) == first
    assert made(first, second, ...) == second
    assert made(first, second, third) == third
    assert {name for name, _ in LAYERS} == set(JobLimits._fields)


def test_two_places_of_one_layer_must_agree() -> None:
    rw = an_app()
    rw.job("pdf.render", max_concurrent=5)(Render)
    rw.configure_job(Render, per_resource=(PerResource(by_page, 1),))
    rw.configure_job(Render, per_resource=(PerResource(by_page, 2),))
    [problem] = problems(rw)
    assert problem.code == "setting_conflict"
    assert problem.message.startswith("per_resource is (PerResource(")


REFUSED: list[tuple[str, object, list[str]]] = [
    (
        "per_resource",
        PerResource(by_page, 1),
        ["must be a tuple of PerResource. Write it as (PerResource(…),)."],
    ),
    ("per_resource", [PerResource(by_page, 1)], ["must be a tuple of PerResource."]),
    ("per_resource", (by_page,), ["must be a tuple of PerResource."]),
    ("per_resource", None, ["per_resource (NoneType None) must be a tuple of PerResource."]),
    ("rolling_window", 5, ["rolling_window (int 5) must be RollingWindow(…), or None."]),
    ("rolling_window_per_resource", (RollingWindow(1, MINUTE),), ["must be a tuple of RollingWindowPerResource."]),
    ("unique_within_window", by_page, ["must be UniqueWithinWindow(…), or None."]),
    ("unique_while_active", "page", ["unique_while_active (str 'page') must be a function of the record"]),
    ("unique_while_active", lambda: "", ["unique_while_active must take the record and nothing else; it takes ()."]),
    ("unique_while_active", lambda job, other: "", ["must take the record and nothing else"]),
]


@pytest.mark.parametrize(("setting", "value", "sentences"), REFUSED, ids=lambda value: "")
@pytest.mark.parametrize("layer", ["declared", "configured", "defaults"])
def test_what_is_no_limit_is_refused_in_every_layer(layer: str, setting: str, value: Any, sentences: list[str]) -> None:
    rw = an_app(job_defaults=JobDefaults(**{setting: value}) if layer == "defaults" else None)
    declared: Any = {setting: value} if layer == "declared" else {}
    rw.job("pdf.render", **declared)(Render)
    if layer == "configured":
        rw.configure_job(Render, **{setting: value})
    found = problems(rw)
    assert [problem.code for problem in found] == ["invalid_policy"] * len(sentences)
    assert all(each in problem.message for each, problem in zip(sentences, found, strict=True))


async def asynchronously(job: Render) -> str:
    return ""


def generating(job: Render) -> Iterator[str]:
    yield ""


def counting(job: Render) -> int:
    return job.page


class Selects:
    def __call__(self, job: Render) -> str:
        return f"page:{job.page}"

    def method(self, job: Render) -> str:
        return f"page:{job.page}"


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (asynchronously, "must return its key; it is async or a generator."),
        (generating, "must return its key; it is async or a generator."),
        (counting, "must return str; it is annotated to return int."),
        (Selects, "must take the record and nothing else; it takes ()."),
        (0, "(int 0) must be a function of the record that returns its key."),
    ],
    ids=["async", "generator", "number", "class", "no function"],
)
def test_a_selector_that_gives_no_key(selector: Any, why: str) -> None:
    rw = an_app()
    rw.job(
        "pdf.render",
        unique_while_active=selector,
        unique_within_window=UniqueWithinWindow(selector, MINUTE),
        per_resource=(PerResource(by_page, 1), PerResource(selector, 1)),
        rolling_window_per_resource=(RollingWindowPerResource(selector, 1, MINUTE),),
    )(Render)
    assert [problem.message for problem in problems(rw)] == [
        f"per_resource[1] selector {why}",
        f"rolling_window_per_resource[0] selector {why}",
        f"unique_while_active {why}",
        f"unique_within_window selector {why}",
    ]


@pytest.mark.parametrize(
    "selector",
    [by_page, lambda job: "", Selects(), Selects().method, str, repr],
    ids=["function", "lambda", "object", "method", "class", "built-in"],
)
def test_a_selector_is_whatever_takes_the_record(selector: Any) -> None:
    rw = an_app()
    rw.job("pdf.render", unique_while_active=selector)(Render)
    assert limits(rw).unique_while_active is selector


def test_a_selector_is_not_called_before_a_job_is_dispatched() -> None:
    def fails(job: Render) -> str:
        raise AssertionError

    rw = an_app()
    rw.job("pdf.render", unique_while_active=fails)(Render)
    assert limits(rw).unique_while_active is fails


def test_a_queue_may_be_limited() -> None:
    rw = an_app()
    rw.job("pdf.render", queue="pdf", max_concurrent=5)(Render)
    rw.queue("pdf", max_concurrent=20)
    rw.queue("pdf")
    rw.queue("pdf", 20)
    rw.queue("bulk")
    assert rw.catalog.queues == {"pdf", "bulk"}
    assert rw.catalog.queue_limits == {"pdf": 20}
    assert rw.catalog.limits.scopes == (
        ScopeNeed(LimitKind.JOB_TYPE, "pdf.render", 5),
        ScopeNeed(LimitKind.QUEUE, "pdf", 20),
    )


def test_a_queue_has_one_limit() -> None:
    rw = an_app()
    rw.queue("pdf", 20)
    rw.queue("pdf", 21)
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("setting_conflict", 'queue "pdf"')
    assert problem.message.startswith("max_concurrent is 20 at ")
    assert problem.message.count("test_limits.py:") == 2


def test_more_limits_than_a_claim_judges() -> None:
    def declared(resources: int, windows: int, *, capped: bool) -> Runwick:
        rw = an_app()
        rw.queue("pdf", 20 if capped else None)
        rw.job(
            "pdf.render",
            queue="pdf",
            max_concurrent=5,
            per_resource=tuple(PerResource(by_page, 1 + each) for each in range(resources)),
            rolling_window=RollingWindow(1, MINUTE),
            rolling_window_per_resource=tuple(
                RollingWindowPerResource(by_page, 1, (1 + each) * MINUTE) for each in range(windows)
            ),
        )(Render)
        return rw

    assert len(limits(declared(6, 7, capped=True)).per_resource) == 6
    assert len(limits(declared(7, 7, capped=False)).per_resource) == 7
    assert [(each.code, each.setting, each.message) for each in problems(declared(7, 8, capped=True))] == [
        (
            "too_many_scopes",
            'job "pdf.render"',
            "it needs 9 concurrency limits (queue, type and resources); the limit is 8.",
        ),
        ("too_many_scopes", 'job "pdf.render"', "it needs 9 rate windows; the limit is 8."),
    ]


def test_a_capped_default_queue_counts_for_a_job_that_names_none() -> None:
    rw = an_app()
    rw.queue("default", 3)
    rw.job("pdf.render", per_resource=tuple(PerResource(by_page, 1) for _ in range(8)))(Render)
    assert [problem.code for problem in problems(rw)] == ["too_many_scopes"]


def test_everything_wrong_with_limits_is_told_at_once() -> None:
    rw = an_app()
    rw.queue("pdf", 0)
    rw.queue("a queue", -1)
    rw.job(
        "pdf.render",
        queue="pdf",
        max_concurrent=0,
        per_resource=(PerResource(by_page, 0),) * 9,
        rolling_window=RollingWindow(0, datetime.timedelta(0)),
        unique_within_window=UniqueWithinWindow(by_page, datetime.timedelta(0)),
    )(Render)
    rw.pool("main", queues={"pdf": 0}, lane_weights=(0, 1, 1))
    codes = [problem.code for problem in problems(rw)]
    assert codes.count("invalid_policy") == 2 + 1 + 9 + 2 + 1
    assert codes.count("too_many_scopes") == 1
    assert codes.count("invalid_name") == 1
    assert codes.count("invalid_pool") == 2


def test_a_pool_shares_its_slots_by_weights() -> None:
    rw = an_app()
    rw.job("pdf.render", queue="pdf")(Render)
    rw.queue("reports")
    weights = {"reports": 1, "pdf": 3}
    rw.pool(
        "heavy", queues=weights, lane_weights=(10, 3, 1), lane_selection=LaneSelection.STRICT_WITH_AGING, concurrency=2
    )
    rw.pool("rest")
    weights["pdf"] = 1000
    heavy, rest = rw.catalog.pools
    assert (heavy.queues, heavy.weights) == (("reports", "pdf"), (("reports", 1), ("pdf", 3)))
    assert (heavy.weight_of("pdf"), heavy.weight_of("other")) == (3, 1)
    assert (heavy.lane_weights, heavy.lane_selection) == ((10, 3, 1), LaneSelection.STRICT_WITH_AGING)
    assert (rest.queues, rest.weights, rest.lane_weights, rest.lane_selection) == (None, (), (6, 3, 1), "weighted")
    assert len({heavy, rest}) == 2  # nothing in it can change


# F101: 0, "", False and None are values. None means what the option says it means; nothing becomes a default.
MAY_BE_NONE = {"execution_timeout", "max_concurrent", "rolling_window", "unique_while_active", "unique_within_window"}


@pytest.mark.parametrize("value", [0, "", False, None], ids=repr)
@pytest.mark.parametrize("setting", JobSettings.__struct_fields__)
def test_an_empty_setting_is_refused_and_never_a_default_f101(setting: str, value: Any) -> None:
    rw = an_app(job_defaults=JobDefaults(**{setting: value}))
    rw.job("pdf.render", **{setting: value})(Render)
    rw.configure_job(Render, **{setting: value})
    if value is None and setting in MAY_BE_NONE:
        entry = rw.catalog.by_record[Render]
        assert entry.policy.execution_timeout_ms is None
        assert entry.limits == UNLIMITED
        return
    found = problems(rw)
    assert [problem.setting for problem in found] == ["job_defaults", *['job "pdf.render"'] * 2]
    assert {problem.code for problem in found} <= {"invalid_policy", "invalid_name", "invalid_priority"}
    assert all(setting in problem.message for problem in found)


@pytest.mark.parametrize("value", [0, "", False], ids=repr)
def test_an_empty_limit_of_a_queue_f101(value: Any) -> None:
    rw = an_app()
    rw.queue("pdf", max_concurrent=value)
    [problem] = problems(rw)
    assert (problem.code, problem.setting) == ("invalid_policy", 'queue "pdf"')
    assert problem.message.startswith("max_concurrent (")


@pytest.mark.parametrize("value", [0, "", False, None], ids=repr)
@pytest.mark.parametrize("option", ["queues", "concurrency", "lane_weights", "lane_selection"])
def test_an_empty_option_of_a_pool_f101(option: str, value: Any) -> None:
    rw = an_app()
    rw.job("pdf.render")(Render)
    rw.pool("main", **{option: value})
    if option == "queues" and value is None:
        assert rw.catalog.pools[0].queues is None
        return
    [problem] = problems(rw)
    assert problem.code == "invalid_pool"
    assert option in problem.message


@pytest.mark.parametrize("value", [0, "", False, None], ids=repr)
def test_an_empty_member_of_a_limit_f101(value: Any) -> None:
    rw = an_app()
    rw.job(
        "pdf.render",
        per_resource=(PerResource(value, value),),
        rolling_window=RollingWindow(value, value),
        rolling_window_per_resource=(RollingWindowPerResource(value, value, value),),
        unique_within_window=UniqueWithinWindow(value, value),
    )(Render)
    found = problems(rw)
    assert [problem.code for problem in found] == ["invalid_policy"] * 9
    assert len({problem.message.partition(" (")[0] for problem in found}) == 9
