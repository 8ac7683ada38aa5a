"""What a worker has done, counted: the CPU time of handlers while they run and when they are settled, once."""

from runwick.contracts.activity import ExecutorActivity
from runwick.contracts.attempts import Attempt
from runwick.contracts.outcomes import Outcome, OutcomeKind, Settlement
from runwick.contracts.states import JobState
from runwick.contracts.usage import Usage
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.worker.tally import Tally
from tests.attempts import an_attempt
from tests.worker.life import Life

ONE, TWO = an_attempt(1), an_attempt(2)


def doing(attempt: Attempt, cpu_us: int | None) -> ExecutorActivity:
    return ExecutorActivity(number=1, pool="main", phase="handle", attempt_id=attempt.attempt_id, cpu_us=cpu_us)


def settled(bus: Bus, attempt: Attempt, usage: Usage | None) -> None:
    outcome = Outcome(OutcomeKind.SUCCEEDED, usage=usage)
    bus.publish(events.Settled([Settlement(attempt, outcome, JobState.SUCCEEDED, None, None)], 0.01))


def test_what_runs_is_counted_as_it_goes_and_once_with_its_settlement() -> None:
    bus = Bus()
    tally = Tally(bus)
    idle = ExecutorActivity(number=3, pool="main", phase="idle")
    assert tally.look([doing(ONE, 700), doing(TWO, 50), idle], set()) == 2
    assert tally.handler_cpu_us == 750
    assert tally.look([doing(ONE, 900), doing(TWO, None)], set()) == 2
    assert tally.handler_cpu_us == 950
    settled(bus, ONE, Usage(cpu_user_us=900, cpu_system_us=200, cpu_children_us=30))
    assert tally.handler_cpu_us == 950 + 230
    settled(bus, TWO, Usage(cpu_user_us=49, cpu_system_us=0))  # a little less than was read
    assert tally.handler_cpu_us == 950 + 230
    settled(bus, an_attempt(3), Usage(cpu_user_us=5, cpu_system_us=1))
    assert tally.handler_cpu_us == 950 + 236


def test_a_run_that_has_ended_and_waits_for_its_settlement_is_not_forgotten() -> None:
    bus = Bus()
    tally = Tally(bus)
    tally.look([doing(ONE, 700)], {ONE.attempt_id})
    assert tally.look([], {ONE.attempt_id}) == 0
    settled(bus, ONE, Usage(cpu_user_us=710, cpu_system_us=0))
    assert tally.handler_cpu_us == 710


def test_a_run_whose_end_is_never_stored_stays_counted_and_is_kept_no_longer() -> None:
    bus = Bus()
    tally = Tally(bus)
    tally.look([doing(ONE, 700)], set())
    tally.look([], set())
    assert (tally.handler_cpu_us, tally._counted_us) == (700, {})
    tally.look([doing(TWO, 10)], {TWO.attempt_id})
    settled(bus, TWO, None)
    assert (tally.handler_cpu_us, tally._counted_us) == (710, {})


def test_a_worker_counts_the_runs_of_all_its_executors() -> None:
    life = Life()
    life.dispatch(1)

    async def script(life: Life) -> None:
        await life.handed_over(1)
        (attempt,) = life.backend.held
        assert life.worker.count_runs() == 0, "it has not begun"
        life.backend.activity = [doing(attempt, 40_000)]
        assert (life.worker.count_runs(), life.worker.tally.handler_cpu_us) == (1, 40_000)
        life.backend.activity = []
        life.worker.count_runs()
        life.backend.end(attempt, Outcome(OutcomeKind.SUCCEEDED, usage=Usage(cpu_user_us=41_000, cpu_system_us=0)))
        life.worker.stop()

    life.live(script)
    assert life.worker.tally.handler_cpu_us == 41_000
