"""Deadlines: a dispatch is applied before its deadline or never, and what was applied is answered for good."""

import pytest

from runwick.contracts.dispatching import ANSWERS_KEPT_MS, Command
from runwick.contracts.errors import CommandExpired, Disposition, OutcomeUnknown, RunwickError, StoreError
from tests.conformance.ground import APPLICATION, Bench


def late(bench: Bench, by_ms: int) -> Command:
    return bench.command(deadline_ms=bench.clock.now_ms() - by_ms)


def is_there(bench: Bench, command: Command) -> bool:
    return bench.run(bench.store.job(APPLICATION, command.job_id)) is not None


def test_the_deadline_itself_is_in_time(bench: Bench) -> None:
    command = late(bench, 0)
    bench.run(bench.store.dispatch([command]))
    assert is_there(bench, command)


@pytest.mark.parametrize("by_ms", [1, ANSWERS_KEPT_MS], ids=["just missed", "a day later"])
def test_later_it_is_never_applied_and_that_is_certain(bench: Bench, by_ms: int) -> None:
    command = late(bench, by_ms)
    for _ in range(2):
        with pytest.raises(CommandExpired, match=f"came {by_ms:,} ms after its deadline") as refused:
            bench.run(bench.store.dispatch([command]))
        assert refused.value.code == "command_expired"
        assert refused.value.disposition is Disposition.KNOWN_NOT_APPLIED
    assert not is_there(bench, command)
    assert bench.claim().attempts == []


def test_after_a_day_nobody_knows_any_more(bench: Bench) -> None:
    command = late(bench, ANSWERS_KEPT_MS + 1)
    with pytest.raises(OutcomeUnknown) as refused:
        bench.run(bench.store.dispatch([command]))
    assert refused.value.code == "expired_unknown"
    assert refused.value.disposition is Disposition.OUTCOME_UNKNOWN
    assert not is_there(bench, command)


@pytest.mark.parametrize("later_ms", [0, 300_001, ANSWERS_KEPT_MS, 30 * ANSWERS_KEPT_MS])
def test_what_was_applied_answers_its_first_receipt_however_late(bench: Bench, later_ms: int) -> None:
    command = bench.command()
    first = bench.run(bench.store.dispatch([command]))
    bench.clock.advance_ms(later_ms)
    assert bench.run(bench.store.dispatch([command])) == first
    assert len(bench.claim().attempts) == 1


@pytest.mark.parametrize("by_ms", [1, ANSWERS_KEPT_MS + 1])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_batch_with_one_late_command_is_refused_whole(bench: Bench, by_ms: int, place: int) -> None:
    commands = [bench.command(), bench.command()]
    commands.insert(place, late(bench, by_ms))
    with pytest.raises(RunwickError) as refused:
        bench.run(bench.store.dispatch(commands))
    assert refused.value.code in ("command_expired", "expired_unknown")
    assert [is_there(bench, command) for command in commands] == [False, False, False]


def test_a_late_command_that_was_applied_holds_no_batch_up(bench: Bench) -> None:
    early = bench.command()
    (receipt,) = bench.run(bench.store.dispatch([early]))
    bench.clock.advance_ms(300_001)
    fresh = bench.command()
    receipts = bench.run(bench.store.dispatch([early, fresh, early]))
    assert receipts[0] == receipts[2] == receipt
    assert is_there(bench, fresh)
    assert len(bench.claim().attempts) == 2


def test_a_late_command_of_another_operation_is_a_conflict(bench: Bench) -> None:
    (taken,) = bench.dispatch()
    stranger = bench.command(job_id=taken, deadline_ms=bench.clock.now_ms() - 1)
    with pytest.raises(StoreError, match="was created by operation") as refused:
        bench.run(bench.store.dispatch([stranger]))
    assert refused.value.code == "operation_conflict"
