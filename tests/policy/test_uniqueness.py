from typing import Any

import pytest

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.dispatching import Command, DuplicateMatch
from runwick.contracts.errors import UniquenessConflict
from runwick.contracts.identity import id_text
from runwick.contracts.limits import LimitKind
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.policy.limit_ids import active_id, rate_id, scope_id, window_id
from runwick.policy.uniqueness import (
    ActiveHolder,
    Conflict,
    Create,
    Item,
    Reuse,
    WindowHolder,
    conflict_failure,
    item_of,
    resolve,
)

NOW_MS = 1_000_000
A, W = b"job a".ljust(16), b"job w".ljust(16)


def an_item(number: int = 1, *, policy: int = 1, **keys: Any) -> Item:
    if "window_key" in keys:
        keys = {"fingerprint": b"same", "window_ms": 1_000, **keys}
    command = Command(
        operation_id=number.to_bytes(16),
        job_id=(number + 100).to_bytes(16),
        application="shop",
        kind=Kind("report.build", 1),
        lane=Lane("reports", Priority.MEDIUM),
        policy=JobPolicy(),
        payload=b'{"secret":"hush"}',
        deadline_ms=NOW_MS,
        **keys,
    )
    return item_of(number, command, policy)


ACTIVE, WINDOW = active_id("shop", "report.build", "a"), window_id("shop", "report.build", "w")


@pytest.mark.parametrize(
    ("window", "active", "expected"),
    [
        (None, None, "create"),
        (None, A, (A, DuplicateMatch.ACTIVE, True)),
        ((W, b"other", 1), None, "uniqueness_conflict"),
        ((W, b"other", 1), A, "uniqueness_conflict"),
        ((W, b"other", 1), W, "uniqueness_conflict"),
        ((W, b"same", 1), None, (W, DuplicateMatch.WINDOW, False)),
        ((W, b"same", 1), W, (W, DuplicateMatch.ACTIVE_AND_WINDOW, False)),
        ((W, b"same", 1), A, "uniqueness_composition_conflict"),
        ((W, b"other", 0), None, "create"),
        ((W, b"other", 0), A, (A, DuplicateMatch.ACTIVE, True)),
    ],
)
def test_what_two_keys_say(window: tuple[bytes, bytes, int] | None, active: bytes | None, expected: Any) -> None:
    item = an_item(active_key="a", window_key="w")
    live = {} if active is None else {ACTIVE: ActiveHolder(active, 1)}
    held = {} if window is None else {WINDOW: WindowHolder(window[0], 1, window[1], NOW_MS + window[2])}
    (answer,) = resolve([item], live, held, NOW_MS, continue_on_conflict=True)
    if expected == "create":
        assert answer == Create(item)
    elif isinstance(expected, str):
        assert answer == Conflict(item, expected, W)
    else:
        job, match, links = expected
        assert answer == Reuse(item, job, match, False, links)


def test_a_key_of_one_kind_is_judged_alone() -> None:
    by_active = an_item(active_key="a")
    by_window = an_item(window_key="w")
    live = {ACTIVE: ActiveHolder(A, 1)}
    held = {WINDOW: WindowHolder(W, 1, b"same", NOW_MS + 1)}
    assert resolve([by_active, by_window, an_item()], live, held, NOW_MS, continue_on_conflict=False) == [
        Reuse(by_active, A, DuplicateMatch.ACTIVE, False, False),
        Reuse(by_window, W, DuplicateMatch.WINDOW, False, False),
        Create(an_item()),
    ]


def test_another_policy_is_drift_and_a_job_that_is_gone_drifts_from_nothing() -> None:
    by_active, by_window = an_item(policy=2, active_key="a"), an_item(policy=2, window_key="w")

    def drifts(policy: int | None) -> list[bool]:
        live = {ACTIVE: ActiveHolder(A, 1)}
        held = {WINDOW: WindowHolder(W, policy, b"same", NOW_MS + 1)}
        answers = resolve([by_active, by_window], live, held, NOW_MS, continue_on_conflict=False)
        return [answer.drift for answer in answers if isinstance(answer, Reuse)]

    assert drifts(1) == [True, True]
    assert drifts(2) == [True, False]
    assert drifts(None) == [True, False]


def test_items_see_what_those_before_them_made() -> None:
    items = [
        an_item(0, active_key="a"),
        an_item(1, active_key="a", window_key="w", policy=2),
        an_item(2, window_key="w"),
        an_item(3, window_key="w", fingerprint=b"other"),
        an_item(4, active_key="b", window_key="v"),
        an_item(5, active_key="a", window_key="v"),
        an_item(6, active_key="b", window_key="v"),
    ]
    first, fifth = items[0].command.job_id, items[4].command.job_id
    assert resolve(items, {}, {}, NOW_MS, continue_on_conflict=True) == [
        Create(items[0]),
        Reuse(items[1], first, DuplicateMatch.ACTIVE, True, True),
        Reuse(items[2], first, DuplicateMatch.WINDOW, False, False),
        Conflict(items[3], "uniqueness_conflict", first),
        Create(items[4]),
        Conflict(items[5], "uniqueness_composition_conflict", fifth),
        Reuse(items[6], fifth, DuplicateMatch.ACTIVE_AND_WINDOW, False, False),
    ]


def test_a_conflict_is_raised_with_the_existing_job_and_its_place() -> None:
    items = [an_item(0, window_key="w"), an_item(1, window_key="w", fingerprint=b"other")]
    with pytest.raises(UniquenessConflict) as caught:
        resolve(items, {}, {}, NOW_MS, continue_on_conflict=False)
    error = caught.value
    assert (error.code, error.ordinal) == ("uniqueness_conflict", 1)
    assert error.conflicting_job_id == id_text(items[0].command.job_id)


@pytest.mark.parametrize("code", ["uniqueness_conflict", "uniqueness_composition_conflict"])
def test_a_failure_quotes_keys_and_never_the_payload(code: str) -> None:
    failure = conflict_failure(Conflict(an_item(7, active_key="key a", window_key="key w"), code, W))
    assert (failure.ordinal, failure.code, failure.conflicting_job_id) == (7, code, id_text(W))
    assert '"key w"' in failure.message
    assert id_text(W) in failure.message
    assert "hush" not in failure.message


def test_ids_name_what_they_are() -> None:
    resource = LimitKind.RESOURCE
    ids = {
        scope_id("shop", resource, "x"),
        scope_id("shop", LimitKind.QUEUE, "x"),
        scope_id("shops", resource, "x"),
        scope_id("shop", resource, "y"),
        rate_id("shop", resource, "x", 1_000),
        rate_id("shop", resource, "x", 2_000),
        rate_id("shop", LimitKind.JOB_TYPE, "x", None),
        active_id("shop", "x", "k"),
        window_id("shop", "x", "k"),
        active_id("shop", "xk", ""),
    }
    assert len(ids) == 10
    assert all(len(each) == 16 for each in ids)
    assert scope_id("shop", resource, "rechnung:7").hex() == "cdee20260025996b7dc074b982ae7cbf"
