"""Exported requests read back: what came out goes in, and nothing else does."""

import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runwick import (
    BatchItem,
    DispatchOptions,
    DispatchUniqueness,
    DispatchValidationError,
    InvalidArgument,
    Job,
    JobDefaults,
    PerResource,
    Prepared,
    PreparedBatch,
    RollingWindow,
    RollingWindowPerResource,
    Runwick,
    UniqueWithinWindow,
)
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import (
    BATCH_MAX_BYTES,
    BATCH_MAX_ITEMS,
    COMMAND_LIFETIME_MAX_MS,
    EXPORT_BATCH,
    EXPORT_ONE,
    METADATA_MAX_BYTES,
    METADATA_MAX_ENTRIES,
    UNIQUE_WINDOW_MAX_MS,
    Command,
    exported,
)
from runwick.contracts.identity import job_of_operation
from runwick.contracts.limits import KEY_MAX_BYTES, LimitKind, RateNeed, ScopeNeed
from runwick.contracts.names import name_problem
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.dispatch.imported import CLOCKS_APART_MAX_MS, imported
from runwick.dispatch.prepare import NO_CHANGES, Validity, prepare, prepare_many
from runwick.dispatch.trace import Trace
from runwick.runtime.ambient import SystemIds
from runwick.wire.limits import PAYLOAD_MAX_BYTES
from runwick.wire.strict import parse_strict

NOW_MS = 1_750_000_000_000
VALIDITY = Validity(NOW_MS + COMMAND_LIFETIME_MAX_MS, b"s" * 16)


class Report(Job):
    title: str
    rows: int = 0
    parts: list[str] = []  # noqa: RUF012 - msgspec copies it
    weights: dict[str, float] = {}  # noqa: RUF012
    free: msgspec.Raw = msgspec.Raw(b"{}")


rw = Runwick("shop", store="memory://", job_defaults=JobDefaults(max_executions=4))
rw.job("reports.build", queue="reports", execution_timeout=datetime.timedelta(hours=1))(Report)
rw.queue("bulk", max_concurrent=3)
ids = SystemIds()


class Bill(Job):
    number: int


def by_number(job: Bill) -> str:
    return f"bill:{job.number}"


HOUR = datetime.timedelta(hours=1)
rw.job(
    "bills.send",
    max_concurrent=5,
    per_resource=(PerResource(by_number, 1), PerResource(lambda job: "printer", 2)),
    rolling_window=RollingWindow(100, HOUR),
    rolling_window_per_resource=(RollingWindowPerResource(by_number, 10, HOUR),),
    unique_while_active=by_number,
    unique_within_window=UniqueWithinWindow(by_number, HOUR),
)(Bill)

text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
reports = st.builds(
    Report,
    text,
    st.integers(-(2**70), 2**70),
    st.lists(text, max_size=4),
    st.dictionaries(text, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    st.sampled_from([b"{}", b'[1, 2.50, {"a": null}]', b"123456789012345678901234567890"]).map(msgspec.Raw),
)
delays = st.timedeltas(datetime.timedelta(milliseconds=1), datetime.timedelta(days=36_500))
times = st.datetimes(timezones=st.just(datetime.UTC))
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
metadata = st.dictionaries(
    names, st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=9), max_size=32
)
keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
windows = st.integers(1, UNIQUE_WINDOW_MAX_MS).map(lambda length_ms: length_ms * datetime.timedelta(milliseconds=1))
options = st.builds(
    DispatchOptions,
    queue=st.sampled_from(["bulk", "reports"]),
    priority=st.sampled_from(["high", "medium", "low"]),
    not_before=st.none() | delays | times,
    metadata=st.none() | metadata,
    tenant=st.none() | names,
    uniqueness=st.none() | st.builds(DispatchUniqueness, st.none() | keys),
) | st.builds(
    DispatchOptions,
    not_before=st.none() | times,
    uniqueness=st.builds(DispatchUniqueness, st.none() | keys, keys, windows),
)
validities = st.builds(Validity, st.integers(1, VALIDITY.deadline_ms), st.none() | st.binary(min_size=16, max_size=16))
traces = st.sampled_from([Trace(), Trace(f"00-{1:032x}-{2:016x}-01"), Trace(f"00-{1:032x}-{2:016x}-01", "a=1,b=2")])
requests = st.builds(
    lambda job, options, validity, trace: Prepared(prepare(rw.catalog, job, options, ids, validity, trace)),
    reports,
    options,
    validities,
    traces,
) | st.builds(
    lambda jobs, validity, goes_on: PreparedBatch(tuple(prepare_many(rw.catalog, jobs, ids, validity)), goes_on),
    st.lists(reports | st.builds(Bill, st.integers()) | st.builds(BatchItem, reports, options), max_size=3),
    validities,
    st.booleans(),
)


def read(data: Any) -> Prepared | PreparedBatch:
    return imported(data, "shop", NOW_MS)


def read_or_refused(data: bytes) -> Prepared | PreparedBatch | str:
    """What was read, or the code of the refusal."""
    try:
        return read(data)
    except InvalidArgument as refused:
        return refused.code


def refusal(data: Any) -> str:
    with pytest.raises(DispatchValidationError) as caught:
        read(data)
    assert caught.value.code == "invalid_prepared"
    return caught.value.message


def a_command(**changes: Any) -> Command:
    command = prepare(rw.catalog, Report("May"), NO_CHANGES, ids, VALIDITY)
    return msgspec.structs.replace(command, **changes)


def a_bill(**changes: Any) -> Command:
    command = prepare(rw.catalog, Bill(7), DispatchOptions(queue="bulk"), ids, VALIDITY)
    return msgspec.structs.replace(command, **changes)


@given(requests)
def test_what_was_exported_is_imported(request: Prepared | PreparedBatch) -> None:
    data = request.export()
    assert read(data) == read(bytearray(data)) == read(memoryview(data)) == request


@pytest.mark.parametrize("data", [None, "text", 5, ["a"]], ids=repr)
def test_what_is_no_bytes(data: Any) -> None:
    assert f"give the bytes that export() wrote, this is {type(data).__name__}" in refusal(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"{}",
        b"\xc1",
        b"\x91" * 100_000,
        msgspec.msgpack.encode([]),
        msgspec.msgpack.encode([1, 2]),
        msgspec.msgpack.encode([EXPORT_ONE]),
        msgspec.msgpack.encode([EXPORT_BATCH, 0]),
        msgspec.msgpack.encode([EXPORT_BATCH, None]),
    ],
    ids=["nothing", "a number", "json", "no messagepack", "deep", "an empty list", "numbers", "form", "zero", "none"],
)
def test_what_is_no_request(data: bytes) -> None:
    assert "they cannot be read" in refusal(data)


def test_the_form_says_what_it_is() -> None:
    command = a_command()
    assert 'does not read the form "runwick.prepared 2"' in refusal(exported("runwick.prepared 2", [command]))
    assert "one dispatch is expected, there are 2" in refusal(exported(EXPORT_ONE, [command, a_command()]))
    assert "one dispatch is expected, there are 0" in refusal(exported(EXPORT_ONE, []))
    assert read(exported(EXPORT_BATCH, [command])) == PreparedBatch((command,))
    assert read(exported(EXPORT_BATCH, [])) == PreparedBatch(())
    goes_on = exported(EXPORT_BATCH, [command], continue_on_conflict=True)
    assert read(goes_on) == PreparedBatch((command,), continue_on_conflict=True)
    assert "only a batch can go on" in refusal(exported(EXPORT_ONE, [command], continue_on_conflict=True))


def test_an_unknown_member_is_refused() -> None:
    members = msgspec.to_builtins(a_command(), builtin_types=(bytes,))
    for more in ({"shards": 3}, {"kind": {"name": "reports.build", "version": 1, "module": "os"}}):
        data = msgspec.msgpack.encode((EXPORT_ONE, False, {**members, **more}))
        assert "they hold more than a prepared dispatch" in refusal(data)


def test_nothing_may_follow() -> None:
    assert "they cannot be read" in refusal(a_request() + b"\xc0")


def a_request() -> bytes:
    return Prepared(a_command()).export()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"operation_id": b"7" * 15}, "the operation's id is no UUIDv7"),
        ({"operation_id": b"\xff" * 16}, "the operation's id is no UUIDv7"),
        ({"job_id": b"j" * 16}, "the job's id does not belong to the operation's"),
        ({"application": "other"}, 'they were prepared by application "other", this is "shop"'),
        ({"store_id": b""}, "the store's id is none"),
        ({"deadline_ms": 0}, "the deadline is later than any"),
        ({"deadline_ms": NOW_MS + COMMAND_LIFETIME_MAX_MS + CLOCKS_APART_MAX_MS + 1}, "the deadline is later than any"),
        ({"kind": Kind("", 1)}, 'the job\'s name "" is not a name'),
        ({"kind": Kind("x" * 201, 1)}, "it has 201 characters, the limit is 200"),
        ({"kind": Kind("reports.build", 0)}, "the job's version is 0"),
        ({"kind": Kind("reports.build", 2**31)}, "the job's version is 2147483648"),
        ({"lane": Lane("two words", Priority.LOW)}, 'the queue "two words" is not a name'),
        ({"lane": Lane("x" * 129, Priority.LOW)}, "it has 129 characters, the limit is 128"),
        ({"policy": JobPolicy(max_executions=0)}, "max_executions (0) must be ≥ 1"),
        ({"policy": JobPolicy(max_crashes=101)}, "max_crashes (101) must be ≤ 100"),
        ({"policy": JobPolicy(execution_timeout_ms=0)}, "execution_timeout (0 ms) must be > 0 ms"),
        ({"policy": JobPolicy(retry_initial_ms=2, retry_max_ms=1)}, "retry_delay initial (2 ms) must be ≤ its maximum"),
        ({"policy": JobPolicy(unstarted_max_ms=2**63)}, "the policy has a duration of 9,223,372,036,854,775,808 ms"),
        ({"payload": b'"' + b"x" * PAYLOAD_MAX_BYTES}, "the payload has 1,048,577 bytes"),
        ({"payload": b""}, "the text is not JSON"),
        ({"payload": b"[]"}, "expected `object`, got `array`"),
        ({"payload": b'{"title":"a","title":"b"}'}, "is given twice in one object"),
        ({"payload": b'{"title":"\\u0000"}'}, "$.title"),
        ({"payload": b'{"rows":NaN}'}, "JSON has no number NaN"),
        ({"payload": b'{"a":' + b"[" * 40 + b"]" * 40 + b"}"}, "nest 32 levels"),
        ({"not_before_ms": 1, "delay_ms": 1}, "not_before is a time and a delay at once"),
        ({"not_before_ms": -1}, "not_before is no time that can be shown"),
        ({"not_before_ms": 2**60}, "not_before is no time that can be shown"),
        ({"delay_ms": -1}, "the delay of not_before is out of bounds"),
        ({"expires_in_ms": 0}, "the delay of expires_at is out of bounds"),
        ({"delay_ms": 5, "expires_in_ms": 5}, "expires_at is not after not_before"),
        ({"metadata": b"[]"}, "expected `object`, got `array`"),
        ({"metadata": b"{}"}, "the metadata are not written as export() writes them"),
        ({"metadata": b'{"b":"2","a":"1"}'}, "the metadata are not written as export() writes them"),
        ({"metadata": b'{"a":1}'}, "expected `str`, got `int`"),
        ({"metadata": b'{"two words":"1"}'}, 'the key "two words" is not a name'),
        ({"metadata": b'{"a":"' + b"x" * METADATA_MAX_BYTES + b'"}'}, "the limit is 16,384"),
        ({"tenant": ""}, 'the tenant "" is not a name'),
        ({"traceparent": "00-ab-cd-01"}, "the trace context is none"),
        ({"tracestate": "x" * 513}, "the trace context is none"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_prepare_would_not_make(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(Prepared(a_command(**changes)).export())


QUEUE, TYPE, RESOURCE = LimitKind
SCOPES, RATES = a_bill().scopes, a_bill().rates


def scoped(*scopes: ScopeNeed) -> dict[str, Any]:
    return {"scopes": scopes}


def rated(*rates: RateNeed) -> dict[str, Any]:
    return {"rates": rates}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"active_key": ""}, "the active key is empty"),
        ({"active_key": "a\n"}, "holds the control character U+000A"),
        ({"active_key": "bill:8"}, "the fingerprint is another request's"),
        ({"window_key": "x" * 513}, "the window key has 513 bytes"),
        ({"window_key": None}, "there is a window without its key"),
        ({"window_key": None, "window_ms": None}, "there is a fingerprint without a window key"),
        ({"window_ms": None}, "the window is out of bounds"),
        ({"window_ms": 0}, "the window is out of bounds"),
        ({"window_ms": UNIQUE_WINDOW_MAX_MS + 1}, "the window is out of bounds"),
        ({"delay_ms": 5}, "there is a delay beside a window key"),
        ({"fingerprint": None}, "the fingerprint is another request's"),
        ({"fingerprint": b"f" * 32}, "the fingerprint is another request's"),
        ({"payload": b'{"number":8}'}, "the fingerprint is another request's"),
        ({"tenant": "acme"}, "the fingerprint is another request's"),
        (scoped(SCOPES[0], *SCOPES), "a limit is there twice"),
        (scoped(*reversed(SCOPES)), "limits are not in the order of a declaration"),
        (scoped(ScopeNeed(QUEUE, "reports", 3), *SCOPES[1:]), "a limit is another queue's"),
        (scoped(SCOPES[0], ScopeNeed(TYPE, "reports.build", 3), *SCOPES[2:]), "a limit is another job's"),
        (scoped(ScopeNeed(QUEUE, "bulk", 0), *SCOPES[1:]), "capacity (0) must be ≥ 1"),
        (scoped(ScopeNeed(QUEUE, "bulk", 1_000_001), *SCOPES[1:]), "capacity (1000001) must be ≤ 1000000"),
        (scoped(*SCOPES, ScopeNeed(RESOURCE, "", 1)), "the resource key is empty"),
        (scoped(*(ScopeNeed(RESOURCE, str(each), 1) for each in range(9))), "needs 9 concurrency limits"),
        (rated(RATES[0], *RATES), "a limit is there twice"),
        (rated(*reversed(RATES)), "limits are not in the order of a declaration"),
        (rated(RateNeed(QUEUE, "bulk", 1, 1_000)), "a rate window is a queue's"),
        (rated(RateNeed(TYPE, "bills.send", 1, 1_000), *RATES), "the type has two rate windows"),
        (rated(RateNeed(TYPE, "reports.build", 1, 1_000)), "a limit is another job's"),
        (rated(RateNeed(RESOURCE, "\0", 1, 1_000)), "holds the control character U+0000"),
        (rated(RateNeed(RESOURCE, "a", 0, 1_000)), "max_executions (0) must be ≥ 1"),
        (rated(RateNeed(RESOURCE, "a", 100_001, 1_000)), "max_executions (100001) must be ≤ 100000"),
        (rated(RateNeed(RESOURCE, "a", 1, 999)), "rate window (999 ms) must be ≥ 1000 ms"),
        (rated(RateNeed(RESOURCE, "a", 1, 86_400_001)), "rate window (86400001 ms) must be ≤ 86400000 ms"),
        (rated(RateNeed(RESOURCE, "a", 1, 2**63)), "a rate window has 9,223,372,036,854,775,808 ms"),
        (rated(*(RateNeed(RESOURCE, str(each), 1, 1_000) for each in range(9))), "needs 9 rate windows"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keys_and_limits_that_prepare_would_not_make(changes: dict[str, Any], sentence: str) -> None:
    right = a_bill()
    assert read(Prepared(right).export()) == Prepared(right)
    assert sentence in refusal(Prepared(msgspec.structs.replace(right, **changes)).export())


@pytest.mark.parametrize(
    ("member", "value"),
    [("deadline_ms", "soon"), ("payload", 5), ("application", None), ("lane", {"queue": "bulk", "priority": "urgent"})],
)
def test_what_has_another_type(member: str, value: object) -> None:
    members = msgspec.to_builtins(a_command(), builtin_types=(bytes,))
    assert f"`$.{member}" in refusal(msgspec.msgpack.encode((EXPORT_ONE, False, {**members, member: value})))


def test_a_deadline_may_be_long_past_and_a_little_ahead() -> None:
    for deadline_ms in (1, NOW_MS + COMMAND_LIFETIME_MAX_MS + CLOCKS_APART_MAX_MS):
        command = a_command(deadline_ms=deadline_ms)
        assert read(Prepared(command).export()) == Prepared(command)


def test_a_batch_keeps_its_limits() -> None:
    too_many = PreparedBatch(tuple(a_command() for _ in range(BATCH_MAX_ITEMS + 1)))
    assert "a batch holds 100 items, this has 101" in refusal(too_many.export())
    large = b'{"title":"' + b"x" * 250_000 + b'"}'
    too_large = PreparedBatch(tuple(a_command(payload=large) for _ in range(1 + BATCH_MAX_BYTES // len(large))))
    assert "a batch holds 2,097,152 bytes" in refusal(too_large.export())
    command = a_command()
    assert "an operation is there twice" in refusal(PreparedBatch((command, command)).export())


def test_an_empty_batch_never_runs_out() -> None:
    assert PreparedBatch(()).deadline == datetime.datetime.max.replace(tzinfo=datetime.UTC)


def assert_keeps_the_limits(command: Command) -> None:
    """What `prepare` guarantees of every command, said once more in other words."""
    assert command.application == "shop"
    assert len(command.operation_id) == 16
    assert command.job_id == job_of_operation(command.operation_id)
    assert name_problem(command.kind.name, max_characters=200) is None
    assert name_problem(command.lane.queue) is None
    assert isinstance(command.lane.priority, Priority)
    assert 1 <= command.policy.max_executions <= 100
    assert 1 <= command.policy.retry_initial_ms <= command.policy.retry_max_ms <= 86_400_000
    assert len(command.payload) <= PAYLOAD_MAX_BYTES
    assert isinstance(parse_strict(command.payload), dict)
    assert 0 < command.deadline_ms <= NOW_MS + COMMAND_LIFETIME_MAX_MS + CLOCKS_APART_MAX_MS
    assert command.not_before_ms is None or command.delay_ms is None
    if command.metadata is not None:
        entries = parse_strict(command.metadata)
        assert len(entries) <= METADATA_MAX_ENTRIES
        assert all(isinstance(value, str) for value in entries.values())
    assert len(command.scopes) <= 8
    assert len(command.rates) <= 8
    found = [command.active_key, command.window_key, *(need.key for need in command.scopes)]
    found += [need.key for need in command.rates]
    assert all(0 < len(key.encode()) <= KEY_MAX_BYTES for key in found if key is not None)
    assert (command.window_key is None) == (command.window_ms is None) == (command.fingerprint is None)
    assert all(1 <= scope.capacity <= 1_000_000 for scope in command.scopes)
    assert all(1 <= rate.max_executions <= 100_000 for rate in command.rates)
    assert all(1_000 <= rate.window_ms <= 86_400_000 for rate in command.rates)


mutations = st.lists(
    st.tuples(st.sampled_from(["change", "remove", "add", "cut", "repeat"]), st.floats(0, 1), st.binary(max_size=4)),
    min_size=1,
    max_size=4,
)


def mutated(data: bytes, kind: str, where: float, more: bytes) -> bytes:
    at = int(where * len(data))
    match kind:
        case "change":
            return data[:at] + more + data[at + len(more) :]
        case "remove":
            return data[:at] + data[at + 1 :]
        case "add":
            return data[:at] + more + data[at:]
        case "cut":
            return data[:at]
        case _:
            return data + data[at:]


@settings(max_examples=150)
@given(requests, mutations)
def test_changed_bytes_are_refused_or_still_keep_every_limit(
    request: Prepared | PreparedBatch, changes: list[tuple[str, float, bytes]]
) -> None:
    data = request.export()
    for change in changes:
        data = mutated(data, *change)
    found = read_or_refused(data)
    if found == "invalid_prepared":
        return
    assert not isinstance(found, str)
    commands = (found.command,) if isinstance(found, Prepared) else found.commands
    assert len(commands) <= BATCH_MAX_ITEMS
    for command in commands:
        assert_keeps_the_limits(command)
    assert found.export() == data


members = st.sampled_from(Command.__struct_fields__)
values = (
    st.none()
    | st.integers(-(2**63), 2**64 - 1)
    | st.binary(max_size=20)
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.builds(msgspec.to_builtins, st.builds(Kind, text, st.integers(-5, 5)))
    | st.builds(msgspec.to_builtins, st.builds(JobPolicy, max_executions=st.integers(), retry_max_ms=st.integers()))
)


@settings(max_examples=150)
@given(st.dictionaries(members, values, min_size=1, max_size=3))
def test_changed_members_are_refused_or_still_keep_every_limit(changes: dict[str, object]) -> None:
    changed = msgspec.to_builtins(a_command(), builtin_types=(bytes,)) | changes
    try:
        data = msgspec.msgpack.encode((EXPORT_ONE, False, changed))
    except OverflowError:
        return  # more than MessagePack can hold
    found = read_or_refused(data)
    if found == "invalid_prepared":
        return
    assert isinstance(found, Prepared)
    assert_keeps_the_limits(found.command)


def test_an_application_reads_what_it_prepared() -> None:
    prepared = rw.prepare(Report("May"), tenant="acme")
    assert rw.import_prepared(prepared.export()) == prepared
    batch = rw.prepare_many([Report("May"), BatchItem(Report("June"), DispatchOptions(queue="bulk"))])
    assert rw.import_prepared(batch.export()) == batch
    other = Runwick("office", store="memory://")
    with pytest.raises(DispatchValidationError, match='prepared by application "shop", this is "office"'):
        other.import_prepared(prepared.export())
