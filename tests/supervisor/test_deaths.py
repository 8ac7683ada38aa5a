"""What becomes of attempts and of everything else when executors die."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from runwick import Job
from runwick.contracts.outcomes import Death, ErrorDetail, Outcome, OutcomeKind
from runwick_supervisor import seats, stopping
from runwick_supervisor.child import FAULT_STATUS
from runwick_supervisor.deaths import OomWitness
from runwick_supervisor.events import EventKind
from runwick_supervisor.executor import Executor
from tests.supervisor.applications import trials
from tests.supervisor.applications.deeds import Beget, Chat, Echo, End, Hold, Nothing, Scribble
from tests.supervisor.crew import Crew, crew, is_gone, open_descriptors, until

TRIALS = "tests.supervisor.applications.trials"


async def replaced(its: Crew, *pids: int) -> None:
    """Wait until every place is taken again, by somebody ready who is none of these."""
    places = len(its.backend.numbers)
    await until(
        lambda: (
            len(its.executors) == places
            and all(executor.pid not in pids and executor.is_ready for executor in its.executors)
        ),
        f"replacements for {pids}",
    )


def crashed(outcome: Outcome) -> ErrorDetail:
    """What it says of the executor's death."""
    assert outcome.kind is OutcomeKind.CRASHED
    assert outcome.code == "executor_crashed"
    assert outcome.error is not None
    return outcome.error


def test_the_death_of_an_idle_executor_costs_no_attempt() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Nothing())
            pid = its.executors[0].pid
            os.kill(pid, signal.SIGKILL)
            await replaced(its, pid)
            assert await its.result(Echo("again")) == "again"
            (death,) = its.heard(EventKind.EXECUTOR_DIED)
            assert (death.executor, death.pid, death.attempt) == (1, pid, None)
            assert death.text == "died: killed by SIGKILL"
            (birth,) = its.heard(EventKind.EXECUTOR_REPLACED)
            assert birth.executor == 1
            assert birth.milliseconds is not None
            assert not any(outcome.kind is OutcomeKind.CRASHED for [outcome] in its.outcomes.values())

    asyncio.run(scene())


@pytest.mark.parametrize("reopens", ["nothing", "zeros", "a file"])
def test_a_handler_that_closes_the_hand_off_crashes_and_is_not_waited_for(reopens: str, tmp_path: Path) -> None:
    file = tmp_path / "its own"
    file.touch()

    async def scene() -> None:
        async with crew(1, TRIALS, application=trials.rw) as its:
            pid = its.executors[0].pid
            reopened = {"nothing": "", "zeros": "/dev/zero", "a file": str(file)}[reopens]
            (outcome,) = await its.run(trials.CloseAll(reopened))
            assert crashed(outcome).message == f"exited with status {FAULT_STATUS}"
            await replaced(its, pid)
            assert await its.result(trials.Echo("again")) == "again"

    asyncio.run(scene())
    assert file.read_bytes() == b""


def test_a_running_attempt_crashes_and_what_was_queued_behind_it_runs_elsewhere(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.make_known(Hold())
            pid = its.executors[0].pid
            numbers = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")), Hold(), Hold(), Hold())
            assert len(its.executors[0].held) == 4
            await until((tmp_path / "started").exists, "the run")
            os.kill(pid, signal.SIGKILL)
            await until(lambda: set(numbers) <= its.outcomes.keys(), "all four to end")
            (victim,) = its.outcomes[numbers[0]]
            assert crashed(victim) == ErrorDetail("signal", "killed by SIGKILL")
            assert victim.begun_at_ms is not None
            assert victim.usage is not None
            assert victim.usage.wall_us is not None
            assert victim.death == Death("signal", signal.SIGKILL, None, "handle")
            assert [its.outcomes[number][0].kind for number in numbers[1:]] == [OutcomeKind.SUCCEEDED] * 3
            assert its.given_back == []
            (death,) = its.heard(EventKind.EXECUTOR_DIED)
            assert death.attempt is not None
            assert death.attempt.job == numbers[0]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("end", "detail"),
    [
        (End(status=3), ErrorDetail("exit", "exited with status 3")),
        (End(status=0), ErrorDetail("exit", "exited with status 0")),
        (End(signal=signal.SIGSEGV), ErrorDetail("signal", "killed by SIGSEGV")),
        (End(signal=signal.SIGRTMIN + 1), ErrorDetail("signal", f"killed by signal {signal.SIGRTMIN + 1}")),
    ],
)
def test_the_outcome_says_how_the_executor_ended(end: Job, detail: ErrorDetail) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            assert crashed((await its.run(end))[0]) == detail
            await replaced(its)
            assert await its.result(Echo("again")) == "again"

    asyncio.run(scene())


def take_status(pid: int) -> None:
    """Wait for its death before the backend does."""
    os.waitpid(pid, 0)


def test_a_status_that_somebody_else_took_is_unknown(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            pid = its.executors[0].pid
            (number,) = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(pid, signal.SIGKILL)
            take_status(pid)
            await until(lambda: number in its.outcomes, "the crash")
            assert crashed(its.outcomes[number][0]) == ErrorDetail("unknown", "ended in an unknown way")
            await replaced(its, pid)

    asyncio.run(scene())


def test_deaths_do_not_run_the_exit_handlers_of_the_zygote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEDS_EXIT_FILE", str(tmp_path / "exit"))

    async def scene() -> None:
        async with crew(1) as its:
            crashed((await its.run(End(status=1)))[0])
            await replaced(its)
            await its.run(Nothing())

    asyncio.run(scene())
    assert not (tmp_path / "exit").exists()


def test_thirty_deaths_are_replaced_and_leave_nothing() -> None:
    async def scene(its: Crew) -> None:
        before = open_descriptors()
        for _ in range(5):
            pids = [executor.pid for executor in its.executors]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            await replaced(its, *pids)
            assert await asyncio.gather(*[its.result(Echo(f"{pid}")) for pid in pids]) == [f"{pid}" for pid in pids]
        assert len(its.heard(EventKind.EXECUTOR_DIED)) == len(its.heard(EventKind.EXECUTOR_REPLACED)) == 30
        assert its.heard(EventKind.RESTART_DELAYED) == []
        await until(lambda: len(open_descriptors()) == len(before), "the last pidfd to be closed")

    async def outer() -> None:
        async with crew(6) as its:
            await scene(its)

    asyncio.run(outer())


def test_the_sixth_death_in_a_short_time_makes_the_next_one_wait_but_come() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            for _ in range(6):
                pid = its.executors[0].pid
                os.kill(pid, signal.SIGKILL)
                await replaced(its, pid)
            assert [event.milliseconds for event in its.heard(EventKind.RESTART_DELAYED)] == [50]
            assert await its.result(Echo("back")) == "back"

    asyncio.run(scene())


def test_whatever_a_dead_executor_started_is_killed_before_its_attempt_ends(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            (number,) = its.hand_over(Beget(str(tmp_path / "started"), str(tmp_path / "never"), far=True))
            await until((tmp_path / "started").exists, "the children")
            executor, near, far = (int(pid) for pid in (tmp_path / "started").read_text().split())
            assert not is_gone(near)
            assert not is_gone(far)
            os.kill(executor, signal.SIGKILL)
            await until(lambda: number in its.outcomes, "the crash")
            assert is_gone(near)
            assert is_gone(far)
            assert await its.result(Echo("the other lives")) == "the other lives"

    asyncio.run(scene())


@pytest.mark.parametrize("what", ["counts", "records"])
def test_who_writes_into_the_hand_off_is_killed_and_nobody_else(what: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(2) as its:
            gate = tmp_path / "gate"
            numbers = its.hand_over(Hold(str(tmp_path / "started"), str(gate)))
            await until((tmp_path / "started").exists, "the other run")
            healthy = its.executors[0]
            numbers += its.hand_over(Scribble(what))
            await until(lambda: numbers[1] in its.outcomes, "the scribbler to end")
            assert crashed(its.outcomes[numbers[1]][0]).type == "signal"
            assert [event.executor for event in its.heard(EventKind.EXECUTOR_CONDEMNED)] == [2]
            gate.touch()
            await until(lambda: numbers[0] in its.outcomes, "the other to end")
            assert its.outcomes[numbers[0]][0].kind is OutcomeKind.SUCCEEDED
            assert its.executors[0] is healthy

    asyncio.run(scene())


def test_what_the_run_had_used_is_known_after_its_death_and_is_its_own() -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=trials.rw) as its:
            await its.run(trials.Echo("warm"))
            (outcome,) = await its.run(trials.Burn(own_ms=20, children_ms=300))
            usage = outcome.usage
            assert usage is not None
            assert outcome.death == Death("exit", None, 3, "handle")
            own_us = usage.cpu_us
            assert own_us is not None
            assert 20_000 <= own_us < 250_000
            assert usage.cpu_children_us is not None
            assert usage.cpu_children_us >= 290_000
            assert usage.wall_us is not None
            assert usage.wall_us >= 320_000
            assert usage.rss_peak_bytes is None, "it cannot be told from the child's"
            assert usage.switches_voluntary is None

    asyncio.run(scene())


def test_without_children_its_peak_is_known_too() -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=trials.rw) as its:
            (outcome,) = await its.run(trials.Burn(own_ms=10, children_ms=0))
            usage = outcome.usage
            assert usage is not None
            assert usage.rss_peak_bytes is not None
            assert usage.rss_peak_bytes > 2**20
            assert usage.cpu_children_us == 0
            assert usage.faults_minor is not None
            assert usage.rss_end_bytes is None, "nobody looked at its end"

    asyncio.run(scene())


def test_the_last_lines_and_the_stack_of_a_fault_are_kept(tmp_path: Path) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            (number,) = its.hand_over(Chat(5, str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            os.kill(its.executors[0].pid, signal.SIGSEGV)
            await until(lambda: number in its.outcomes, "the crash")
            (outcome,) = its.outcomes[number]
            assert outcome.death == Death("signal", signal.SIGSEGV, None, "handle")
            assert outcome.black_box is not None
            assert outcome.black_box.lines.splitlines()[-1].endswith("line 4")
            assert "Segmentation fault" in outcome.black_box.stack

    asyncio.run(scene())


def test_the_box_is_that_of_the_run_and_of_none_before_it() -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Chat(3, ""))
            (outcome,) = await its.run(End(status=3))
            assert outcome.black_box is None

    asyncio.run(scene())


def counters(proc: Path, kills: int) -> None:
    proc.mkdir(exist_ok=True)
    (proc / "vmstat").write_text(f"pgfault 7\noom_kill {kills}\n")


def test_a_kill_that_the_kernel_counts_was_for_memory(tmp_path: Path) -> None:
    counters(tmp_path, 3)

    async def scene() -> None:
        async with crew(1) as its:
            its.backend._witness = OomWitness(tmp_path, tmp_path)
            (number,) = its.hand_over(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            counters(tmp_path, 4)
            pid = its.executors[0].pid
            os.kill(pid, signal.SIGKILL)
            await until(lambda: number in its.outcomes, "the crash")
            (outcome,) = its.outcomes[number]
            assert crashed(outcome) == ErrorDetail("out_of_memory", "killed for memory: killed by SIGKILL")
            assert outcome.death == Death("out_of_memory", signal.SIGKILL, None, "handle")
            assert its.heard(EventKind.EXECUTOR_DIED)[0].text.startswith("died: killed for memory")

    asyncio.run(scene())


def test_the_witness_gives_each_kill_away_once_and_forgets_those_of_others(tmp_path: Path) -> None:
    counters(tmp_path, 3)
    witness = OomWitness(tmp_path, tmp_path)
    assert not witness.claims()
    counters(tmp_path, 5)
    assert [witness.claims() for _ in range(3)] == [True, True, False]
    counters(tmp_path, 6)
    witness.refresh()
    assert not witness.claims()
    (tmp_path / "vmstat").unlink()
    assert not witness.claims()


@pytest.mark.parametrize(
    ("cgroup", "file"),
    [("0::/app\n", "app/memory.events"), ("9:cpu,memory:/app\n", "memory/app/memory.oom_control")],
)
def test_the_counter_of_its_own_group_goes_before_the_one_of_the_machine(
    cgroup: str, file: str, tmp_path: Path
) -> None:
    counters(tmp_path, 3)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(cgroup)
    nearer = tmp_path / "cgroups" / file
    nearer.parent.mkdir(parents=True)
    nearer.write_text("oom_kill_disable 0\noom_kill 1\n")
    witness = OomWitness(tmp_path, tmp_path / "cgroups")
    counters(tmp_path, 4)
    assert not witness.claims(), "that was somebody else"
    nearer.write_text("oom_kill_disable 0\noom_kill 2\n")
    assert witness.claims()


def test_deaths_on_purpose_cost_no_pause() -> None:
    async def scene() -> None:
        async with crew(1, TRIALS, application=trials.rw) as its:
            for _ in range(7):
                pid = its.executors[0].pid
                its.executors[0].kill(stopping.MEMORY_LIMIT)
                await replaced(its, pid)
            assert its.heard(EventKind.RESTART_DELAYED) == []

    asyncio.run(scene())


@pytest.mark.parametrize("recycled", [False, True], ids=["a replacement", "an heir"])
def test_one_that_is_not_ready_when_the_end_comes_is_killed_without_a_word(
    recycled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with crew(1) as its:
            await its.run(Nothing())
            old = its.executors[0]
            monkeypatch.setattr(Executor, "go", lambda _: None)  # it waits for the word, and is never ready
            if recycled:
                old.retire("it is old")
                its.backend._seats.relieve()
            else:
                os.kill(old.pid, signal.SIGKILL)
            await until(lambda: any(not one.is_ready for one in its.backend._seats.everybody()), "a birth")
        assert [event.pid for event in its.heard(EventKind.EXECUTOR_DIED)] == ([] if recycled else [old.pid])
        assert its.heard(EventKind.EXECUTOR_STOPPED) == []

    asyncio.run(scene())


def test_one_that_does_not_end_at_the_end_is_told_why_it_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "STOP_WITHIN_S", 0.1)

    async def scene() -> None:
        async with crew(1, "tests.supervisor.applications.trials", application=trials.rw) as its:
            await its.run(trials.Borrow())
        (told,) = its.heard(EventKind.EXECUTOR_STOPPED)
        assert told.text == "was killed: it did not end when it was told to"

    asyncio.run(scene())
