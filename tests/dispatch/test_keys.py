"""Keys and limits of one dispatch: what selectors and options give, and what is refused before anything has an id."""

import datetime
import enum
from collections.abc import Callable
from typing import Any

import pytest

from runwick import (
    BatchItem,
    DispatchOptions,
    DispatchUniqueness,
    DispatchValidationError,
    Job,
    PerResource,
    RollingWindow,
    RollingWindowPerResource,
    Runwick,
    UniqueWithinWindow,
)
from runwick.contracts.dispatching import UNIQUE_WINDOW_MAX_MS, Command
from runwick.contracts.limits import KEY_MAX_BYTES, LimitKind, RateNeed, ScopeNeed
from runwick.dispatch.prepare import Validity, prepare, prepare_many
from tests.ambient import FakeIds

VALIDITY = Validity(1_750_000_300_000)
MS = datetime.timedelta(milliseconds=1)
HOUR = datetime.timedelta(hours=1)


class Sync(Job):
    invoice: int
    customer: str = "acme"


def an_app(**settings: Any) -> Runwick:
    rw = Runwick("shop", store="memory://")
    rw.job("invoice.sync", queue="sync", **settings)(Sync)
    rw.queue("bulk", max_concurrent=3)
    return rw


def prepared(rw: Runwick, job: Job | None = None, **options: Any) -> Command:
    return prepare(rw.catalog, job or Sync(7), DispatchOptions(**options), FakeIds(), VALIDITY)


def refusal(rw: Runwick, job: Job | None = None, **options: Any) -> DispatchValidationError:
    with pytest.raises(DispatchValidationError) as caught:
        prepared(rw, job, **options)
    return caught.value


def gives(key: Any) -> Callable[[Any], Any]:
    return lambda job: key


def invoice(job: Sync) -> str:
    return f"invoice:{job.invoice}"


def customer(job: Sync) -> str:
    return f"customer:{job.customer}"


def unique(active_key: Any = None, window_key: Any = None, window: Any = None) -> DispatchUniqueness:
    return DispatchUniqueness(active_key, window_key, window)


def test_a_plain_dispatch_has_neither_keys_nor_needs() -> None:
    command = prepared(an_app())
    assert (command.active_key, command.window_key, command.window_ms, command.fingerprint) == (None,) * 4
    assert (command.scopes, command.rates) == ((), ())


def test_a_dispatch_may_give_keys() -> None:
    rw = an_app()
    assert prepared(rw, uniqueness=unique("a")).active_key == "a"
    assert prepared(rw, uniqueness=unique("a")).fingerprint is None
    command = prepared(rw, uniqueness=unique("a", "w", HOUR))
    assert (command.active_key, command.window_key, command.window_ms) == ("a", "w", 3_600_000)
    assert len(command.fingerprint or b"") == 32
    assert prepared(rw, uniqueness=unique()) == prepared(rw, uniqueness=None) == prepared(rw)


def test_a_job_may_declare_its_keys() -> None:
    rw = an_app(unique_while_active=customer, unique_within_window=UniqueWithinWindow(invoice, HOUR))
    expected = ("customer:acme", "invoice:7", 3_600_000)
    same = unique("customer:acme", "invoice:7", HOUR)
    for options in ({}, {"uniqueness": None}, {"uniqueness": unique("customer:acme")}, {"uniqueness": same}):
        command = prepared(rw, **options)
        assert (command.active_key, command.window_key, command.window_ms) == expected


def test_one_key_may_be_declared_and_the_other_given() -> None:
    command = prepared(an_app(unique_while_active=customer), uniqueness=unique(None, "w", HOUR))
    assert (command.active_key, command.window_key) == ("customer:acme", "w")
    window = UniqueWithinWindow(invoice, HOUR)
    command = prepared(an_app(unique_within_window=window), uniqueness=unique("a"))
    assert (command.active_key, command.window_key) == ("a", "invoice:7")


@pytest.mark.parametrize(
    ("uniqueness", "sentence"),
    [
        (unique("other"), 'the dispatch gives the active key "other", the job declares "customer:acme"'),
        (unique("Customer:acme"), 'the dispatch gives the active key "Customer:acme"'),
        (unique("customer:acme "), 'the dispatch gives the active key "customer:acme "'),
        (unique(None, "other", HOUR), 'the dispatch gives the window key "other", the job declares "invoice:7"'),
        (
            unique(None, "invoice:7", HOUR + MS),
            "the dispatch gives a window of 3,600,001 ms, the job declares 3,600,000 ms",
        ),
    ],
)
def test_a_given_key_must_be_the_declared_one(uniqueness: DispatchUniqueness, sentence: str) -> None:
    rw = an_app(unique_while_active=customer, unique_within_window=UniqueWithinWindow(invoice, HOUR))
    error = refusal(rw, uniqueness=uniqueness)
    assert error.code == "uniqueness_key_mismatch"
    assert error.message.startswith(sentence)


@pytest.mark.parametrize("uniqueness", [None, unique("customer:acme", "invoice:7", HOUR)], ids=["none", "given"])
@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"unique_while_active": gives(None)}, "active key"),
        ({"unique_within_window": UniqueWithinWindow(gives(None), HOUR)}, "window key"),
    ],
    ids=["active", "window"],
)
def test_a_declared_key_is_required(settings: Any, what: str, uniqueness: DispatchUniqueness | None) -> None:
    error = refusal(an_app(**settings), uniqueness=uniqueness)
    assert error.code == "uniqueness_required"
    assert error.message == f"the selector of the {what} gave None; every dispatch of this job needs one"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raises(error: Exception) -> Callable[[Any], str]:
    def selector(job: Any) -> str:
        raise error

    return selector


SELECTORS: list[tuple[str, Callable[[Any], dict[str, Any]]]] = [
    ("active key", lambda selector: {"unique_while_active": selector}),
    ("window key", lambda selector: {"unique_within_window": UniqueWithinWindow(selector, HOUR)}),
    ("resource key of per_resource", lambda selector: {"per_resource": (PerResource(selector, 1),)}),
    (
        "resource key of rolling_window_per_resource",
        lambda selector: {"rolling_window_per_resource": (RollingWindowPerResource(selector, 1, HOUR),)},
    ),
]


@pytest.mark.parametrize(("what", "settings"), SELECTORS, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no customer"), "ValueError: no customer"),
        (ValueError("x" * 300), "ValueError: " + "x" * 200),
        (KeyError(), "KeyError"),
        (Unspeakable(), "Unspeakable"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
    ids=["message", "long", "none", "unspeakable", "deep"],
)
def test_a_selector_that_raises(what: str, settings: Any, error: Exception, said: str) -> None:
    found = refusal(an_app(**settings(raises(error))))
    assert (found.code, found.message) == ("key_selector_failed", f"the selector of the {what} raised {said}")
    assert found.__cause__ is error


def test_a_selector_that_is_interrupted_is_interrupted() -> None:
    def stops(job: Sync) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepared(an_app(unique_while_active=stops))


class Named(enum.StrEnum):
    A = "customer:a"


@pytest.mark.parametrize("key", ["k", " k ", "K", "é", "e\u0301", "\u202e", "x" * 512, "é" * 256, "a b/c:d", Named.A])
@pytest.mark.parametrize(("what", "settings"), SELECTORS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_key_is_kept_exactly(what: str, settings: Any, key: str) -> None:
    command = prepared(an_app(**settings(gives(key))))
    keys = [command.active_key, command.window_key, *(need.key for need in command.scopes)]
    keys += [need.key for need in command.rates]
    [kept] = [each for each in keys if each is not None]
    assert (kept, type(kept)) == (str(key), str)


INVALID_KEYS: list[tuple[Any, str]] = [
    ("", "is empty"),
    ("x" * (KEY_MAX_BYTES + 1), "has 513 bytes of UTF-8, the limit is 512"),
    ("é" * 257, "has 514 bytes of UTF-8"),
    ("a\0", '"a\\u0000" holds the control character U+0000'),
    ("a\nb", "holds the control character U+000A"),
    ("\x7f", "holds the control character U+007F"),
    ("\x85", "holds the control character U+0085"),
    ("a\ud800", "holds U+D800, which no text can hold"),
    (0, "is int, keys are text"),
    (False, "is bool, keys are text"),
    (b"key", "is bytes, keys are text"),
    (7.5, "is float, keys are text"),
]


@pytest.mark.parametrize(("key", "sentence"), INVALID_KEYS, ids=lambda value: "")
@pytest.mark.parametrize(("what", "settings"), SELECTORS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_key_that_is_none_f101(what: str, settings: Any, key: Any, sentence: str) -> None:
    error = refusal(an_app(**settings(gives(key))))
    assert error.code == "invalid_key"
    assert error.message.startswith(f"the {what} ")
    assert sentence in error.message


@pytest.mark.parametrize(("key", "sentence"), INVALID_KEYS, ids=lambda value: "")
def test_a_given_key_that_is_none_f101(key: Any, sentence: str) -> None:
    for what, uniqueness in (("active key", unique(key)), ("window key", unique(None, key, HOUR))):
        error = refusal(an_app(), uniqueness=uniqueness)
        assert error.code == "invalid_key"
        assert error.message.startswith(f"the {what} ")
        assert sentence in error.message


def test_a_resource_without_a_key_would_not_be_limited() -> None:
    error = refusal(an_app(per_resource=(PerResource(gives(None), 1),)))
    assert error.code == "invalid_key"
    assert error.message == "the resource key of per_resource is NoneType, keys are text"


@pytest.mark.parametrize(
    ("window", "milliseconds"), [(MS, 1), (datetime.timedelta(days=3_650), UNIQUE_WINDOW_MAX_MS)], ids=repr
)
def test_a_window_at_its_bounds(window: datetime.timedelta, milliseconds: int) -> None:
    assert prepared(an_app(), uniqueness=unique(None, "w", window)).window_ms == milliseconds


@pytest.mark.parametrize(
    ("uniqueness", "sentence"),
    [
        (unique(None, "w"), "a window key and its window go together; window is missing"),
        (unique("a", None, HOUR), "a window key and its window go together; window_key is missing"),
        (unique(None, "w", 0 * MS), "it is a timedelta from a millisecond to 3,650 days"),
        (unique(None, "w", -HOUR), "it is a timedelta from a millisecond to 3,650 days"),
        (unique(None, "w", datetime.timedelta(days=3_650) + MS), "it is a timedelta from a millisecond to 3,650 days"),
        (unique(None, "w", 1.5 * MS), "it is a whole number of milliseconds"),
        (unique(None, "w", 0), "window is 0; it is a timedelta"),
        (unique(None, "w", ""), "window is ''; it is a timedelta"),
        (unique(None, "w", False), "window is False; it is a timedelta"),
        (unique(None, "w", 3600), "window is 3600; it is a timedelta"),
    ],
    ids=repr,
)
def test_a_window_that_is_none_f101(uniqueness: DispatchUniqueness, sentence: str) -> None:
    error = refusal(an_app(), uniqueness=uniqueness)
    assert error.code == "invalid_time"
    assert sentence in error.message


@pytest.mark.parametrize("uniqueness", [0, "", False, "key", {"active_key": "a"}], ids=repr)
def test_uniqueness_that_is_none_f101(uniqueness: Any) -> None:
    error = refusal(an_app(), uniqueness=uniqueness)
    assert error.code == "invalid_argument"
    assert error.message == f"uniqueness is {uniqueness!r}; give DispatchUniqueness(…) or None"


def test_a_delay_is_another_request_each_time() -> None:
    declared = an_app(unique_within_window=UniqueWithinWindow(invoice, HOUR))
    for error in (
        refusal(declared, not_before=0 * MS),
        refusal(an_app(), not_before=HOUR, uniqueness=unique(None, "w", HOUR)),
    ):
        assert error.code == "invalid_time"
        assert "not_before is a delay" in error.message
    assert prepared(declared, not_before=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)).fingerprint
    assert prepared(an_app(), not_before=HOUR, uniqueness=unique("a")).delay_ms == 3_600_000
    assert prepared(declared, expires_at=HOUR).expires_in_ms == 3_600_000


def test_needs_come_in_the_order_of_the_declaration() -> None:
    rw = an_app(
        max_concurrent=5,
        per_resource=(PerResource(invoice, 1), PerResource(customer, 9)),
        rolling_window=RollingWindow(100, HOUR),
        rolling_window_per_resource=(
            RollingWindowPerResource(invoice, 10, HOUR),
            RollingWindowPerResource(invoice, 2, HOUR / 60),
        ),
    )
    resources = (ScopeNeed(LimitKind.RESOURCE, "invoice:7", 1), ScopeNeed(LimitKind.RESOURCE, "customer:acme", 9))
    of_type = ScopeNeed(LimitKind.JOB_TYPE, "invoice.sync", 5)
    command = prepared(rw)
    assert command.scopes == (of_type, *resources)
    assert command.rates == (
        RateNeed(LimitKind.JOB_TYPE, "invoice.sync", 100, 3_600_000),
        RateNeed(LimitKind.RESOURCE, "invoice:7", 10, 3_600_000),
        RateNeed(LimitKind.RESOURCE, "invoice:7", 2, 60_000),
    )
    assert prepared(rw, queue="bulk").scopes == (ScopeNeed(LimitKind.QUEUE, "bulk", 3), of_type, *resources)


def test_the_limit_of_a_queue_is_that_of_the_queue_it_goes_to() -> None:
    rw = an_app()
    rw.queue("sync", max_concurrent=8)
    assert prepared(rw).scopes == (ScopeNeed(LimitKind.QUEUE, "sync", 8),)
    assert prepared(rw, queue="bulk").scopes == (ScopeNeed(LimitKind.QUEUE, "bulk", 3),)


def test_one_key_twice_is_one_limit_and_the_lower_one() -> None:
    rw = an_app(
        per_resource=(PerResource(invoice, 5), PerResource(customer, 2), PerResource(invoice, 3)),
        rolling_window_per_resource=(
            RollingWindowPerResource(invoice, 5, HOUR),
            RollingWindowPerResource(gives("invoice:7"), 4, HOUR),
        ),
    )
    command = prepared(rw)
    assert [(need.key, need.capacity) for need in command.scopes] == [("invoice:7", 3), ("customer:acme", 2)]
    assert [(need.key, need.max_executions) for need in command.rates] == [("invoice:7", 4)]


def test_a_queue_given_by_a_dispatch_may_be_one_limit_too_many() -> None:
    rw = an_app(per_resource=tuple(PerResource(gives(f"key:{each}"), 1) for each in range(8)))
    assert len(prepared(rw).scopes) == 8
    error = refusal(rw, queue="bulk")
    assert error.code == "too_many_scopes"
    assert error.message == "the job needs 9 concurrency limits in all, the limit is 8"


def test_selectors_run_once_in_order_and_after_everything_that_can_be_refused_without_them() -> None:
    called: list[str] = []

    def noting(name: str) -> Callable[[Any], str]:
        def selector(job: Sync) -> str:
            called.append(name)
            return name

        return selector

    rw = an_app(
        rolling_window_per_resource=(RollingWindowPerResource(noting("fifth"), 1, HOUR),),
        per_resource=(PerResource(noting("third"), 1), PerResource(noting("fourth"), 1)),
        unique_within_window=UniqueWithinWindow(noting("second"), HOUR),
        unique_while_active=noting("first"),
    )
    assert refusal(rw, queue="nowhere").code == "unknown_queue"
    assert refusal(rw, Sync("seven")).code == "invalid_payload"  # type: ignore[arg-type]
    assert refusal(rw, uniqueness=unique("")).code == "invalid_key"
    assert called == []
    prepared(rw)
    assert called == ["first", "second", "third", "fourth", "fifth"]


def test_every_invalid_item_of_a_batch_is_told() -> None:
    rw = an_app(unique_while_active=lambda job: None if job.invoice == 0 else f"invoice:{1 // (job.invoice - 1)}")
    items: list[Job | BatchItem] = [
        Sync(3),
        Sync(0),
        Sync(1),
        BatchItem(Sync(3), DispatchOptions(uniqueness=unique("other"))),
    ]
    with pytest.raises(DispatchValidationError) as caught:
        prepare_many(rw.catalog, items, FakeIds(), VALIDITY)
    assert [(failure.ordinal, failure.code) for failure in caught.value.item_failures] == [
        (1, "uniqueness_required"),
        (2, "key_selector_failed"),
        (3, "uniqueness_key_mismatch"),
    ]
