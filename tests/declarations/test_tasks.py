import asyncio
import datetime
from typing import Any

import pytest

from runwick import ConfigurationError, InvalidArgument, Job, JobContext, Receipt, Runwick
from runwick.contracts.attempts import Kind
from runwick.wire.profile import Codec


def an_app() -> Runwick:
    return Runwick("shop", store="memory://")


def test_a_task_stays_the_function_it_is() -> None:
    rw = an_app()

    @rw.task("stats.recalculate")
    def recalculate(day: datetime.date, shop: str = "all") -> str:
        """Count again."""
        return f"{shop} {day}"

    assert recalculate(datetime.date(2026, 1, 2)) == "all 2026-01-02"
    assert (getattr(recalculate, "__name__", None), recalculate.__doc__) == ("recalculate", "Count again.")
    assert repr(recalculate).startswith(f"Task({__name__}.")


def test_its_parameters_are_the_payload() -> None:
    rw = an_app()

    @rw.task("stats.recalculate", version=3, queue="stats", max_executions=9)
    def recalculate(day: datetime.date, only_shop: str = "all", *, tags: list[str] = ["a"]) -> None: ...  # noqa: B006

    entry = rw.catalog.jobs[Kind("stats.recalculate", 3)]
    assert entry.record is recalculate.record
    assert (entry.lane.queue, entry.policy.max_executions) == ("stats", 9)
    job = recalculate.job(datetime.date(2026, 1, 2), only_shop="north")
    assert entry.codec.encode(job) == b'{"day":"2026-01-02","onlyShop":"north","tags":["a"]}'


def test_a_default_that_can_change_is_never_shared() -> None:
    rw = an_app()

    @rw.task("stats.recalculate")
    def recalculate(tags: list[str] = ["a"]) -> None: ...  # noqa: B006

    first: Any = recalculate.job()
    first.tags.append("b")
    assert recalculate.job() == recalculate.job(["a"])


def test_a_worker_calls_it_with_the_members_of_its_record() -> None:
    rw = an_app()

    @rw.task("stats.add")
    def add(first: int, /, second: int, *, third: int = 3) -> int:
        return 100 * first + 10 * second + third

    binding = rw.catalog.handlers[Kind("stats.add", 1)]
    assert [(each.name, each.role) for each in binding.parameters] == [("job", "job")]
    assert binding.target(job=add.job(1, second=2)) == 123
    assert not binding.needs_loop


def test_an_async_task_is_awaited() -> None:
    rw = an_app()

    @rw.task("stats.add")
    async def add(first: int, second: int) -> int:
        return first + second

    binding = rw.catalog.handlers[Kind("stats.add", 1)]
    assert binding.is_async
    assert binding.needs_loop
    assert asyncio.run(binding.target(job=add.job(1, second=2))) == 3
    assert asyncio.run(add(1, 2)) == 3


def test_wrong_arguments_are_errors_of_the_call() -> None:
    rw = an_app()

    @rw.task("stats.add")
    def add(first: int, second: int) -> int:
        return first + second

    with pytest.raises(TypeError, match=r"^\w+\(\): missing a required argument: 'second'"):
        add.job(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'third'"):
        add.job(1, 2, third=3)  # type: ignore[call-arg]


class Sent:
    """Keeps what it is asked to dispatch."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def dispatch(self, job: Job) -> Receipt:
        self.jobs.append(job)
        return Receipt(b"j" * 16, b"o" * 16, "created", "none")  # type: ignore[arg-type]

    async def dispatch_async(self, job: Job) -> Receipt:
        return self.dispatch(job)


def test_it_is_dispatched_with_its_own_arguments() -> None:
    from runwick.declarations.tasks import Task

    def add(first: int, second: int = 2) -> int:
        return first + second

    sent = Sent()
    task = Task(add, {}, sent)
    task.dispatch(1)
    asyncio.run(task.dispatch_async(3, second=4))
    assert [Codec(task.record).encode(job) for job in sent.jobs] == [
        b'{"first":1,"second":2}',
        b'{"first":3,"second":4}',
    ]


def with_context(ctx: JobContext) -> None: ...
def without_types(day) -> None: ...  # type: ignore[no-untyped-def]
def with_anything(*days: int) -> None: ...
def yields(day: int) -> Any:
    yield day


def colliding(shop_name: str, shopName: str) -> None: ...  # noqa: N803


@pytest.mark.parametrize(
    ("function", "code", "sentence"),
    [
        (with_context, "invalid_handler", "a task's parameters are its payload; to take the context, bind a record"),
        (without_types, "invalid_handler", "parameter day has no annotation, which says what is stored."),
        (with_anything, "invalid_handler", "*days: int has no name and type of its own; name each parameter."),
        (yields, "invalid_handler", "a task is a function that returns; this is none."),
        (dict, "invalid_handler", "a task is a function that returns; this is none."),
        (colliding, "invalid_payload_type", "its parameters make no record: "),
    ],
)
def test_what_is_no_task(function: Any, code: str, sentence: str) -> None:
    rw = an_app()
    rw.task("stats.example")(function)
    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    [problem] = caught.value.problems
    assert (problem.code, problem.setting) == (code, 'task "stats.example"')
    assert sentence in problem.message


def test_a_payload_type_is_refused_as_for_every_record() -> None:
    rw = an_app()

    @rw.task("stats.example")
    def example(options: dict[int, str]) -> None: ...

    with pytest.raises(ConfigurationError) as caught:
        _ = rw.catalog
    [problem] = caught.value.problems
    assert (problem.code, problem.setting) == ("invalid_payload_type", 'job "stats.example"')


def test_a_record_that_cannot_be_made_is_told_at_once_when_it_is_used() -> None:
    rw = an_app()
    task = rw.task("stats.example")(without_types)
    with pytest.raises(InvalidArgument, match="invalid_handler: parameter day has no annotation"):
        task.job(1)
