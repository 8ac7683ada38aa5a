"""Fingerprints: the same for the same request, whoever writes it down, and another for any other."""

import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick import DispatchOptions, DispatchUniqueness, Job, PerResource, RollingWindowPerResource, Runwick
from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import Command
from runwick.contracts.limits import LimitKind, RateNeed, ScopeNeed
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.dispatch.fingerprint import fingerprint
from runwick.dispatch.prepare import Validity, prepare
from runwick.runtime.ambient import SystemIds

HOUR = datetime.timedelta(hours=1)
BASE = Command(
    operation_id=b"o" * 16,
    job_id=b"j" * 16,
    application="shop",
    kind=Kind("orders.place", 1),
    lane=Lane("orders", Priority.MEDIUM),
    policy=JobPolicy(),
    payload=b'{"cart":7,"parts":{"a":1,"b":2}}',
    deadline_ms=1_750_000_000_000,
    not_before_ms=5,
    metadata=b'{"channel":"web"}',
    tenant="acme",
    active_key="cart:7",
    window_key="request:1",
    window_ms=60_000,
    scopes=(ScopeNeed(LimitKind.QUEUE, "orders", 5), ScopeNeed(LimitKind.RESOURCE, "cart:7", 1)),
    rates=(RateNeed(LimitKind.JOB_TYPE, "orders.place", 9, 1_000), RateNeed(LimitKind.RESOURCE, "acme", 9, 1_000)),
)


def changed(**changes: Any) -> bytes:
    return fingerprint(msgspec.structs.replace(BASE, **changes))


def test_a_fingerprint_is_stable_for_it_is_kept_for_years() -> None:
    assert fingerprint(BASE).hex() == "b963cd0ae2e67e9349a27bd50d0c07943b0e949abd9bf42686f026c9f20c54ac"


OTHERS: list[dict[str, Any]] = [
    {"kind": Kind("orders.cancel", 1)},
    {"payload": b'{"cart":8,"parts":{"a":1,"b":2}}'},
    {"payload": b'{"cart":7.0,"parts":{"a":1,"b":2}}'},
    {"payload": b'{"cart":"7","parts":{"a":1,"b":2}}'},
    {"payload": b'{"cart":7,"parts":{"a":2,"b":1}}'},
    {"payload": b'{"cart":7,"parts":{"a":1,"b":2},"note":null}'},
    {"lane": Lane("bulk", Priority.MEDIUM)},
    {"lane": Lane("orders", Priority.HIGH)},
    {"not_before_ms": 6},
    {"not_before_ms": None},
    {"active_key": "cart:8"},
    {"active_key": None},
    {"window_key": "request:2"},
    {"scopes": (ScopeNeed(LimitKind.RESOURCE, "cart:8", 1),)},
    {"scopes": ()},
    {"rates": (RateNeed(LimitKind.RESOURCE, "other", 9, 1_000),)},
    {"scopes": (ScopeNeed(LimitKind.RESOURCE, "acme", 1),), "rates": (RateNeed(LimitKind.RESOURCE, "cart:7", 9, 1),)},
    {"metadata": b'{"channel":"shop"}'},
    {"metadata": None},
    {"tenant": "other"},
    {"tenant": None},
]


@pytest.mark.parametrize("changes", OTHERS, ids=repr)
def test_another_request_has_another_fingerprint(changes: dict[str, Any]) -> None:
    assert changed(**changes) != fingerprint(BASE)


def test_no_two_of_them_are_alike() -> None:
    assert len({changed(**changes) for changes in OTHERS}) == len(OTHERS)


SAME: list[dict[str, Any]] = [
    {"payload": b'{"parts":{"b":2,"a":1},"cart":7}'},
    {"payload": b' {"cart": 7, "parts": {"b": 2, "a": 1}}'},
    {"payload": b'{"c\\u0061rt":7,"parts":{"a":1,"b":2}}'},
    {"kind": Kind("orders.place", 2)},
    {"policy": JobPolicy(max_executions=9)},
    {"operation_id": b"p" * 16, "job_id": b"k" * 16},
    {"deadline_ms": 1, "store_id": b"s" * 16},
    {"expires_at_ms": 9},
    {"expires_in_ms": 9},
    {"window_ms": 1},
    {"traceparent": f"00-{1:032x}-{2:016x}-01", "tracestate": "a=1"},
    {"scopes": (ScopeNeed(LimitKind.RESOURCE, "cart:7", 99),)},
    {"rates": (RateNeed(LimitKind.RESOURCE, "acme", 1, 5_000), RateNeed(LimitKind.RESOURCE, "acme", 1, 6_000))},
    {"fingerprint": b"f" * 32},
]


@pytest.mark.parametrize("changes", SAME, ids=repr)
def test_what_the_request_does_not_ask_for_is_not_in_it(changes: dict[str, Any]) -> None:
    assert changed(**changes) == fingerprint(BASE)


def test_the_order_of_resources_is_none() -> None:
    keys = [ScopeNeed(LimitKind.RESOURCE, key, 1) for key in "ab"]
    assert changed(scopes=tuple(keys)) == changed(scopes=tuple(reversed(keys)))


def test_numbers_are_as_they_were_written() -> None:
    payloads = [b'{"n":%s}' % text for text in (b"1", b"1.0", b"1.00", b"1e0", b"-0", b"0", b"1" * 40, b'"1"', b"true")]
    assert len({changed(payload=each) for each in payloads}) == len(payloads)


class Order(Job):
    parts: dict[str, int]


rw = Runwick("shop", store="memory://")
rw.job(
    "orders.place",
    per_resource=(PerResource(lambda job: "warehouse", 1),),
    rolling_window_per_resource=(RollingWindowPerResource(lambda job: "carrier", 1, HOUR),),
)(Order)
parts = st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3), st.integers())


def prepared(job: Job, **options: Any) -> Command:
    given = {"uniqueness": DispatchUniqueness(None, "request", HOUR), **options}
    return prepare(rw.catalog, job, DispatchOptions(**given), SystemIds(), Validity(5))


@given(parts, parts, st.randoms())
def test_the_same_record_has_the_same_fingerprint_however_it_was_filled(
    first: dict[str, int], second: dict[str, int], dice: Any
) -> None:
    shuffled = list(first.items())
    dice.shuffle(shuffled)
    found = prepared(Order(first)).fingerprint
    assert found == prepared(Order(dict(shuffled))).fingerprint
    assert (found == prepared(Order(second)).fingerprint) == (first == second)


def test_there_is_one_with_a_window_key_alone() -> None:
    assert prepared(Order({})).fingerprint == fingerprint(prepared(Order({})))
    assert prepared(Order({}), uniqueness=DispatchUniqueness("a")).fingerprint is None
    assert prepared(Order({}), uniqueness=None).fingerprint is None
