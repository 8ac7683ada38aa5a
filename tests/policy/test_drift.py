"""Limits that a store holds otherwise than an application declares them."""

from runwick.contracts.attempts import Kind
from runwick.contracts.limits import DeclaredLimits, Drift, LimitKind, RateNeed, RateRecord, ScopeNeed, ScopeRecord
from runwick.policy.drift import drifts

MAILS, REPORTS = Kind("mails.send", 1), Kind("reports.build", 2)


def scope(kind: LimitKind, key: str, capacity: int) -> ScopeRecord:
    return ScopeRecord(
        id=key.encode(), kind=kind, key=key, capacity=capacity, in_use=0, waiting=False, revision=1, fence=0
    )


def rate(key: str, most: int, window_ms: int) -> RateRecord:
    return RateRecord(
        id=key.encode(),
        kind=LimitKind.JOB_TYPE,
        key=key,
        max_executions=most,
        window_ms=window_ms,
        granted=0,
        in_window=0,
        waiting=False,
    )


def test_what_agrees_and_what_the_store_does_not_know_is_no_drift() -> None:
    declared = DeclaredLimits(
        (ScopeNeed(LimitKind.QUEUE, "mails", 3), ScopeNeed(LimitKind.JOB_TYPE, "reports.build", 2)),
        (RateNeed(LimitKind.JOB_TYPE, "mails.send", 5, 2_000), RateNeed(LimitKind.JOB_TYPE, "reports.build", 1, 1_000)),
    )
    stored = [scope(LimitKind.QUEUE, "mails", 3)]
    assert drifts(declared, ["mails"], [MAILS, REPORTS], stored, [rate("mails.send", 5, 2_000)]) == []


def test_another_capacity_another_number_and_another_length_are() -> None:
    declared = DeclaredLimits(
        (ScopeNeed(LimitKind.QUEUE, "mails", 3),),
        (RateNeed(LimitKind.JOB_TYPE, "mails.send", 5, 2_000), RateNeed(LimitKind.JOB_TYPE, "reports.build", 1, 1_500)),
    )
    rates = [rate("reports.build", 1, 1_000), rate("mails.send", 50, 2_000)]
    assert drifts(declared, [], [], [scope(LimitKind.QUEUE, "mails", 9)], rates) == [
        Drift(LimitKind.JOB_TYPE, "mails.send", "50 per 2 s", "5 per 2 s"),
        Drift(LimitKind.JOB_TYPE, "reports.build", "1 per 1 s", "1 per 1.5 s"),
        Drift(LimitKind.QUEUE, "mails", "capacity 9", "capacity 3"),
    ]


def test_a_scope_that_the_code_does_not_declare_any_more_is_drift_where_it_still_holds() -> None:
    scopes = [
        scope(LimitKind.QUEUE, "mails", 3),
        scope(LimitKind.QUEUE, "elsewhere", 1),
        scope(LimitKind.JOB_TYPE, "reports.build", 2),
    ]
    assert drifts(DeclaredLimits(), ["mails"], [MAILS, REPORTS], scopes, [rate("mails.send", 5, 2_000)]) == [
        Drift(LimitKind.JOB_TYPE, "reports.build", "capacity 2", "no limit"),
        Drift(LimitKind.QUEUE, "mails", "capacity 3", "no limit"),
    ]
