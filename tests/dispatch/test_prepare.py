import datetime
from typing import Any

import pytest

from runwick import BatchItem, DispatchOptions, DispatchValidationError, Job, JobDefaults, Priority, Runwick
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import Command
from runwick.contracts.identity import job_of_operation
from runwick.contracts.policies import JobPolicy
from runwick.dispatch.prepare import NO_CHANGES, Validity, prepare, prepare_many
from runwick.dispatch.trace import Trace
from tests.ambient import FakeIds

MS = datetime.timedelta(milliseconds=1)
US = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
VALIDITY = Validity(1_750_000_300_000)


class Report(Job):
    title: str
    rows: int = 0


class Undeclared(Job):
    title: str


rw = Runwick("shop", store="memory://", job_defaults=JobDefaults(max_executions=4))
rw.job("reports.build", queue="reports")(Report)
rw.queue("bulk")


def prepared(job: Job | None = None, **options: Any) -> Command:
    return prepare(rw.catalog, job or Report("May"), DispatchOptions(**options), FakeIds(), VALIDITY)


def refusal(job: Job | None = None, **options: Any) -> DispatchValidationError:
    with pytest.raises(DispatchValidationError) as caught:
        prepared(job, **options)
    return caught.value


def test_a_command_carries_all_that_the_store_needs() -> None:
    command = prepare(rw.catalog, Report("May", 3), NO_CHANGES, FakeIds(), VALIDITY, Trace("00-aa-bb-01", "vendor=1"))
    assert command == Command(
        operation_id=(1).to_bytes(16),
        job_id=(0).to_bytes(16),
        application="shop",
        kind=Kind("reports.build", 1),
        lane=Lane("reports", Priority.MEDIUM),
        policy=JobPolicy(max_executions=4),
        payload=b'{"title":"May","rows":3}',
        deadline_ms=1_750_000_300_000,
        traceparent="00-aa-bb-01",
        tracestate="vendor=1",
    )


def test_a_command_says_until_when_and_where_it_is_good() -> None:
    command = prepare(rw.catalog, Report("May"), NO_CHANGES, FakeIds(), Validity(5, b"s" * 16))
    assert (command.deadline_ms, command.store_id) == (5, b"s" * 16)
    assert command.job_id == job_of_operation(command.operation_id)


def test_options_change_one_dispatch() -> None:
    command = prepared(queue="bulk", priority="high", metadata={"b": "2", "a": "é"}, tenant="acme")
    assert command.lane == Lane("bulk", Priority.HIGH)
    assert command.metadata == '{"a":"é","b":"2"}'.encode()
    assert command.tenant == "acme"


@pytest.mark.parametrize(
    ("not_before", "milliseconds"),
    [
        (EPOCH, 0),
        (EPOCH + 5 * MS, 5),
        (EPOCH + 5 * MS + US, 6),
        (EPOCH - 5 * MS, 0),  # long past means now
        (datetime.datetime(2026, 3, 29, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))), 1_774_742_400_000),
        (datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC), 253_402_214_400_000),
    ],
)
def test_a_time_is_rounded_up_to_a_millisecond(not_before: datetime.datetime, milliseconds: int) -> None:
    command = prepared(not_before=not_before)
    assert (command.not_before_ms, command.delay_ms) == (milliseconds, None)


@pytest.mark.parametrize(("delay", "milliseconds"), [(0 * MS, 0), (US, 1), (1500 * MS, 1500), (1500 * MS + US, 1501)])
def test_a_delay_counts_by_the_stores_clock(delay: datetime.timedelta, milliseconds: int) -> None:
    command = prepared(not_before=delay)
    assert (command.not_before_ms, command.delay_ms) == (None, milliseconds)


def test_an_expiry_is_a_time_or_a_delay() -> None:
    assert prepared(expires_at=EPOCH + 7 * MS).expires_at_ms == 7
    assert prepared(expires_at=7 * MS).expires_in_ms == 7


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"not_before": datetime.datetime(2026, 1, 1)}, "not_before is 2026-01-01T00:00:00 without a time zone"),
        ({"not_before": -MS}, "a delay is from zero to 36,500 days"),
        ({"not_before": datetime.timedelta(days=36_501)}, "a delay is from zero to 36,500 days"),
        ({"not_before": 5}, "not_before is 5; give an aware datetime or a timedelta"),
        (
            {"not_before": datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=1)))},
            "which is after the year 9999 in UTC",
        ),
        ({"expires_at": 0 * MS}, "expires_at is datetime.timedelta(0); a delay is from a millisecond to 36,500 days"),
        ({"expires_at": datetime.date(2026, 1, 1)}, "give an aware datetime or a timedelta"),
        ({"not_before": 5 * MS, "expires_at": 5 * MS}, "expires_at is not after not_before"),
        ({"not_before": EPOCH + 5 * MS, "expires_at": EPOCH + 4 * MS}, "expires_at is not after not_before"),
    ],
)
def test_times_that_cannot_mean_anything(options: dict[str, Any], sentence: str) -> None:
    error = refusal(**options)
    assert error.code == "invalid_time"
    assert sentence in error.message


@pytest.mark.parametrize(
    ("metadata", "code", "sentence"),
    [
        ({"a": 1}, "invalid_metadata", 'the value of "a" is int, values are text'),
        ({1: "a"}, "invalid_metadata", "the key 1 is not a name: a name is text, this is int"),
        ({"two words": "a"}, "invalid_metadata", 'the key "two words" is not a name'),
        ({"": "a"}, "invalid_metadata", 'the key "" is not a name: it is empty'),
        ({"x" * 129: "a"}, "invalid_metadata", "it has 129 characters, the limit is 128"),
        ({"a": "line\nbreak"}, "invalid_metadata", 'the value of "a" holds the control character U+000A'),
        ({"a": "\x85"}, "invalid_metadata", "holds the control character U+0085"),
        ({"a": "\0"}, "invalid_text", 'the metadata value of "a" holds U+0000'),
        ({"a": "\udfff"}, "invalid_text", 'the metadata value of "a" holds U+DFFF'),
        ({str(i): "" for i in range(33)}, "invalid_metadata", "it has 33 entries, the limit is 32"),
        ({"a": "x" * 16 * 1024}, "invalid_metadata", "have 16,385 bytes of UTF-8, the limit is 16,384"),
        ({"a": "é" * 8 * 1024}, "invalid_metadata", "have 16,385 bytes of UTF-8, the limit is 16,384"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_metadata_is_little_and_text(metadata: Any, code: str, sentence: str) -> None:
    error = refusal(metadata=metadata)
    assert error.code == code
    assert sentence in error.message


def test_metadata_at_its_limits() -> None:
    assert prepared(metadata={"a": "x" * (16 * 1024 - 1)}).metadata is not None
    assert prepared(metadata={str(i): "" for i in range(32)}).metadata is not None
    assert prepared(metadata={}).metadata is None


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (
            {"queue": "reprots"},
            "unknown_queue",
            'queue "reprots" is used by no job and not declared with rw.queue. Did',
        ),
        ({"queue": "x"}, "unknown_queue", 'Known: "bulk", "reports".'),
        ({"queue": None}, "unknown_queue", "queue None is used by no job"),
        ({"priority": "urgent"}, "invalid_priority", 'priority "urgent" must be high, medium or low'),
        ({"tenant": ""}, "invalid_name", 'the tenant "" is not a name: it is empty'),
        ({"tenant": "a\0"}, "invalid_name", 'the tenant "a\\u0000" is not a name'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_options_that_name_nothing(options: dict[str, Any], code: str, sentence: str) -> None:
    error = refusal(**options)
    assert error.code == code
    assert sentence in error.message


def test_only_declared_records_are_dispatched() -> None:
    error = refusal(Undeclared("May"))
    assert error.code == "unknown_job"
    assert error.message == 'the record Undeclared is not declared in application shop. Known: "Report".'


def test_only_records_are_dispatched() -> None:
    error = refusal({"title": "May"})  # type: ignore[arg-type]
    assert error.code == "unknown_job"
    assert error.message == "a job is an instance of a record that derives from runwick.Job, this is dict"
    assert refusal(Report).message.endswith("this is the class Report")  # type: ignore[arg-type]


def test_a_payload_is_checked_after_the_options() -> None:
    wrong: Any = Report(5)  # type: ignore[arg-type]
    assert refusal(wrong, queue="x").code == "unknown_queue"
    error = refusal(wrong)
    assert (error.code, error.message) == ("invalid_payload", "Report $.title: expected `str`, got `int`")


def test_a_refused_dispatch_takes_no_id() -> None:
    ids = FakeIds()
    with pytest.raises(DispatchValidationError):
        prepare(rw.catalog, Report("\0"), NO_CHANGES, ids, VALIDITY)
    assert prepare(rw.catalog, Report("May"), NO_CHANGES, ids, VALIDITY).operation_id == (1).to_bytes(16)


def test_a_batch_keeps_its_order() -> None:
    items: list[Job | BatchItem] = [
        Report("a"),
        BatchItem(Report("b"), DispatchOptions(priority="low")),
        BatchItem(Report("c")),
    ]
    commands = prepare_many(rw.catalog, items, FakeIds(), VALIDITY)
    assert [command.payload[10:11] for command in commands] == [b"a", b"b", b"c"]
    assert [command.lane.priority for command in commands] == [Priority.MEDIUM, Priority.LOW, Priority.MEDIUM]
    assert len({command.job_id for command in commands}) == len({command.operation_id for command in commands}) == 3


def test_every_invalid_item_of_a_batch_is_told() -> None:
    items: list[Job | BatchItem] = [
        Report("fine"),
        Report("\0"),
        BatchItem(Report("fine"), DispatchOptions(queue="nowhere")),
        Undeclared("x"),
        Report("fine"),
    ]
    with pytest.raises(DispatchValidationError) as caught:
        prepare_many(rw.catalog, items, FakeIds(), VALIDITY)
    failures = caught.value.item_failures
    assert [(failure.ordinal, failure.code) for failure in failures] == [
        (1, "invalid_text"),
        (2, "unknown_queue"),
        (3, "unknown_job"),
    ]
    assert caught.value.code == "invalid_text"
    assert caught.value.message.startswith("3 of 5 items are invalid, nothing was written: item 1: Report $.title: ")


@pytest.mark.parametrize("number", [99, 100, 101])
def test_a_batch_has_at_most_100_items(number: int) -> None:
    items = [Report("a")] * number
    if number <= 100:
        assert len(prepare_many(rw.catalog, items, FakeIds(), VALIDITY)) == number
        return
    with pytest.raises(DispatchValidationError, match="a batch holds 100 items, this has 101; split it") as caught:
        prepare_many(rw.catalog, items, FakeIds(), VALIDITY)
    assert caught.value.code == "batch_too_large"


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_a_batch_has_at_most_2_mib(over: int) -> None:
    frame = len(prepared(Report("")).payload)
    titles = ["x" * (200_000 - frame)] * 10
    titles.append("x" * (2 * 1024 * 1024 + over - 10 * 200_000 - frame))
    items = [Report(title) for title in titles]
    if over <= 0:
        assert sum(len(each.payload) for each in prepare_many(rw.catalog, items, FakeIds(), VALIDITY)) == 2**21 + over
        return
    with pytest.raises(DispatchValidationError, match="this has 2,097,153; split it") as caught:
        prepare_many(rw.catalog, items, FakeIds(), VALIDITY)
    assert caught.value.code == "batch_too_large"


@pytest.mark.parametrize("metadata", [0, "", False, [], 5, "text", [("a", "b")]], ids=repr)
def test_metadata_that_is_no_mapping(metadata: Any) -> None:
    error = refusal(metadata=metadata)
    assert error.code == "invalid_metadata"
    assert error.message == f"metadata: it is {type(metadata).__name__}, give a mapping of text to text"


@pytest.mark.parametrize("queue", [None, 0, [], {"reports": 1}], ids=repr)
def test_a_queue_that_is_no_text(queue: Any) -> None:
    error = refusal(queue=queue)
    assert error.code == "unknown_queue"
    assert error.message.startswith(f"queue {queue!r} is used by no job")


@pytest.mark.parametrize("options", [0, "", False, {"queue": "bulk"}], ids=repr)
def test_the_options_of_an_item_that_are_none(options: Any) -> None:
    with pytest.raises(DispatchValidationError) as caught:
        prepare_many(rw.catalog, [BatchItem(Report("a"), options)], FakeIds(), VALIDITY)
    (failure,) = caught.value.item_failures
    assert failure.code == "invalid_argument"
    assert failure.message == f"its options are {type(options).__name__}, give DispatchOptions(…) or None"
