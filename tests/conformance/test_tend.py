"""Tend: what a crash or a slow worker left in lines is called in; at rest there is nothing to do."""

from runwick.contracts.limits import LimitKind, Tended
from runwick.policy.limit_ids import scope_id
from runwick.policy.limits import UNUSED_AFTER_MS
from tests.conformance.ground import APPLICATION, HIGH, LOW, MEDIUM, Bench, ids_of, resource, window

NOTHING = Tended(0, 0, None)


def test_at_rest_it_finds_nothing(bench: Bench) -> None:
    assert bench.tend() == NOTHING
    bench.dispatch(4, scopes=(resource("printer"),))
    bench.dispatch(4, rates=(window("provider", 1),))
    (holder, _) = bench.claim().attempts
    assert bench.tend() == NOTHING
    bench.clock.advance_ms(1_000)
    bench.succeed(holder)
    bench.claim()
    assert bench.tend() == NOTHING


def test_it_calls_nobody_whose_queue_is_paused(bench: Bench) -> None:
    holder = bench.claimed(scopes=(resource("printer"),))
    bench.dispatch(scopes=(resource("printer"),))
    bench.claim()
    bench.pause()
    bench.succeed(holder)
    assert bench.tend() == NOTHING
    assert bench.scope("printer").waiting


def test_a_called_job_that_nobody_claims_holds_up_nobody_else(bench: Bench) -> None:
    holder = bench.claimed(scopes=(resource("printer"),))
    (deserted,) = bench.dispatch(lane=HIGH, scopes=(resource("printer"),))
    (served,) = bench.dispatch(lane=LOW, scopes=(resource("printer"),))
    assert bench.claim().parked == 2
    bench.succeed(holder)
    assert bench.claim(lanes=[LOW]).attempts == []
    assert bench.tend().called == 1
    assert ids_of(bench.claim(lanes=[LOW]).attempts) == [served]
    assert bench.claim(lanes=[HIGH]).parked == 1
    assert not bench.job(deserted).attempts


def test_room_that_was_promised_to_one_who_never_came_is_given_to_the_next(bench: Bench) -> None:
    """F098."""
    bench.succeed(bench.claimed(rates=(window("provider", 1),)))
    bench.dispatch(lane=HIGH, rates=(window("provider", 1),))
    (next_one,) = bench.dispatch(lane=LOW, rates=(window("provider", 1),))
    bench.claim()
    bench.clock.advance_ms(1_000 + UNUSED_AFTER_MS - 1)
    assert bench.tend() == NOTHING
    bench.clock.advance_ms(1)
    assert bench.tend() == Tended(1, 0, None)
    assert ids_of(bench.claim(lanes=[LOW]).attempts) == [next_one]


def test_limits_are_looked_through_by_id_some_at_a_time(bench: Bench) -> None:
    keys = sorted((f"r{number}" for number in range(5)), key=lambda key: scope_id(APPLICATION, LimitKind.RESOURCE, key))
    holders = [bench.claimed(scopes=(resource(key),)) for key in reversed(keys)]
    waits = [bench.dispatch(2, scopes=(resource(key),)) for key in keys]
    assert bench.claim().parked == 10
    for holder in holders:
        bench.succeed(holder)
    after, called = None, []
    while True:
        tended = bench.tend(after, 2)
        called.append(tended.called)
        if tended.after is None:
            break
        after = tended.after
        assert after == scope_id(APPLICATION, LimitKind.RESOURCE, keys[sum(called) - 1])
    assert called == [2, 2, 1]
    claim = bench.claim()
    assert sorted(ids_of(claim.attempts)) == sorted(first for first, _ in waits)
    assert claim.parked == 5


def test_it_looks_after_its_own_application(bench: Bench) -> None:
    holder = bench.claimed(scopes=(resource("printer"),))
    bench.dispatch(2, scopes=(resource("printer"),))
    bench.claim()
    bench.succeed(holder)
    bench.dispatch(application="office")
    assert bench.run(bench.store.tend("office", None, 100)) == NOTHING
    assert bench.tend().called == 1


def test_window_keys_whose_time_is_over_are_forgotten_and_nobody_notices(bench: Bench) -> None:
    def dispatch() -> bytes:
        (job_id,) = bench.dispatch(window_key="w", window_ms=1_000, fingerprint=b"r" * 32)
        return job_id

    first = dispatch()
    bench.tend()
    assert dispatch() == first
    bench.clock.advance_ms(1_000)
    bench.tend()
    assert dispatch() != first
    assert len(bench.claim(lanes=[MEDIUM]).attempts) == 2
