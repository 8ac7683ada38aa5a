"""Fencing tokens: whoever holds a resource of capacity 1 has a number that nobody before had."""

import pytest

from runwick.contracts.limits import SCOPES_MAX, Fence, LimitKind
from runwick.contracts.outcomes import Answer
from tests.conformance.ground import LARGE, LEASE_MS, Bench, capped, capped_type, ids_of, resource

PRINTER = resource("printer")


def test_each_holder_gets_the_next_token(bench: Bench) -> None:
    bench.dispatch(3, scopes=(PRINTER,))
    values = []
    for _ in range(3):
        (attempt,) = bench.claim().attempts
        assert [fence.scope for fence in attempt.fences] == ["printer"]
        values += [fence.value for fence in attempt.fences]
        bench.succeed(attempt)
    assert values == [1, 2, 3]
    assert bench.scope("printer").fence == 3


@pytest.mark.parametrize("payload", [b"{}", LARGE])
def test_a_claim_sent_again_and_a_begin_show_the_same_tokens(bench: Bench, payload: bytes) -> None:
    bench.dispatch(scopes=(PRINTER,), payload=payload)
    plan = bench.plan()
    first, again = (bench.run(bench.store.claim(plan)).attempts for _ in range(2))
    assert first == again
    begun = bench.begin(first[0]).attempt
    assert begun is not None
    assert (begun.holds, begun.fences) == (1, (Fence("printer", 1),))


def test_a_token_is_never_given_twice_also_after_a_release_and_a_recovery(bench: Bench) -> None:
    holder = bench.claimed(scopes=(PRINTER,))
    assert bench.release(holder) == [Answer.DONE]
    (holder,) = bench.claim().attempts
    assert holder.fences == (Fence("printer", 2),)
    bench.clock.advance_ms(LEASE_MS)
    (shown,) = bench.recover(delay_ms=0)
    assert shown.fences == ()
    (holder,) = bench.claim().attempts
    assert holder.fences == (Fence("printer", 3),)


def test_only_resources_of_capacity_one_give_tokens(bench: Bench) -> None:
    attempt = bench.claimed(scopes=(capped("reports", 1), capped_type("reports.build", 1), resource("tray", 2)))
    assert (attempt.holds, attempt.fences) == (3, ())
    assert [record.fence for kind in LimitKind for record in bench.scopes(kind)] == [0, 0, 0]


def test_tokens_go_on_where_they_were_when_the_capacity_is_one_again(bench: Bench) -> None:
    bench.dispatch(4, scopes=(PRINTER,))
    (first,) = bench.claim().attempts
    bench.limit("printer", 2)
    (second,) = bench.claim().attempts
    assert (first.fences, second.fences) == ((Fence("printer", 1),), ())
    bench.limit("printer", 1)
    bench.succeed(first)
    assert bench.claim().attempts == []
    bench.succeed(second)
    (third,) = bench.claim().attempts
    assert third.fences == (Fence("printer", 2),)


def test_a_claim_shows_those_that_were_given_whatever_the_capacity_is_by_now(bench: Bench) -> None:
    bench.dispatch(scopes=(PRINTER,))
    plan = bench.plan()
    first = bench.run(bench.store.claim(plan)).attempts
    bench.limit("printer", 2)
    assert bench.run(bench.store.claim(plan)).attempts == first


def test_many_come_in_the_order_declared(bench: Bench) -> None:
    keys = [f"r{number}" for number in (5, 2, 7, 0, 1, 6, 3, 4)]
    assert len(keys) == SCOPES_MAX
    holder = bench.claimed(scopes=(resource(keys[0]),))
    bench.succeed(holder)
    (job_id,) = bench.dispatch(scopes=tuple(map(resource, keys)))
    claim = bench.claim()
    assert ids_of(claim.attempts) == [job_id]
    assert claim.attempts[0].fences == tuple(Fence(key, 2 if key == keys[0] else 1) for key in keys)
