"""The control area: what an executor says of its attempt, as the parent reads it, and what it may not believe."""

import resource
from collections.abc import Iterator

import pytest

from runwick.contracts.cancelling import CancellationCause
from runwick_supervisor.control import (
    ALLOCATIONS_WORD,
    BASELINE_WORD,
    BEGUN_TIME_WORD,
    LOG_BYTES_WORD,
    PHASE_WORD,
    Allocations,
    Baseline,
    Phase,
    Progress,
)
from runwick_supervisor.handoff import encode_outcome
from tests.supervisor.test_handoff import DONE, Ends

BEFORE = Baseline(10, 20, 30, 40, 50, 60, 70, 80, 1_000, 9)
ALLOCATED = (1_000, 9)


def used(cpu_user_s: float = 0.0, cpu_system_s: float = 0.0, **counts: int) -> resource.struct_rusage:
    """What the kernel would say."""
    names = ["maxrss", "ixrss", "idrss", "isrss", "minflt", "majflt", "nswap", "inblock", "oublock"]
    names += ["msgsnd", "msgrcv", "nsignals", "nvcsw", "nivcsw"]
    return resource.struct_rusage((cpu_user_s, cpu_system_s, *(counts.get(name, 0) for name in names)))


OWN = used(10e-6, 20e-6, minflt=40, majflt=50, nvcsw=60, nivcsw=70)
CHILDREN = used(25e-6, 5e-6, maxrss=80)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


def begin(ends: Ends) -> None:
    """Take the next and mark it, with what was used before."""
    ends.take()
    ends.executor.control.baseline(OWN, CHILDREN, ALLOCATED)
    ends.executor.control.begun()


def test_progress_is_what_the_executor_wrote_about_this_attempt(ends: Ends) -> None:
    ends.put(b"one")
    assert ends.parent.progress() == Progress()
    begin(ends)
    ends.executor.control.phase(Phase.HANDLE)
    for word, count in enumerate((1_500, 10, 200, 2), ALLOCATIONS_WORD):
        ends.executor.memory.words[word] = count
    progress = ends.parent.progress()
    assert progress.phase == "handle"
    assert progress.phase_since_ns is None
    assert progress.before == BEFORE
    assert progress.allocated == Allocations(700, 3)
    assert not progress.interrupted
    ends.executor.control.interrupted()
    ends.executor.control.phase(Phase.CLOSE)
    progress = ends.parent.progress()
    assert progress.interrupted
    assert progress.phase_since_ns is not None
    assert progress.begun_at_ns is not None
    assert progress.phase_since_ns >= progress.begun_at_ns


def test_what_an_earlier_attempt_wrote_is_nobodys(ends: Ends) -> None:
    ends.put(b"one")
    ends.put(b"two")
    begin(ends)
    ends.executor.control.log(b"of the first\n")
    ends.executor.control.interrupted()
    ends.executor.finish(encode_outcome(DONE))
    assert len(ends.collected()) == 1
    assert ends.parent.progress() == Progress()
    assert ends.parent.log_lines() == ""
    begin(ends)
    assert not ends.parent.progress().interrupted
    assert ends.parent.was_interrupted, "the process is not what it was before"


def test_numbers_that_cannot_be_right_are_not_known(ends: Ends) -> None:
    ends.put(b"one")
    begin(ends)
    words = ends.executor.memory.words
    words[PHASE_WORD] = 77
    words[BEGUN_TIME_WORD] = 2**63
    for impossible in (2**53, 2**64 - 1):
        words[BASELINE_WORD] = impossible
        assert ends.parent.progress() == Progress()
    ends.executor.control.baseline(OWN, CHILDREN, ALLOCATED)
    assert ends.parent.progress().before == BEFORE
    words[ALLOCATIONS_WORD] = 999
    assert ends.parent.progress().allocated is None, "there were more before"


def test_a_cancel_is_heard_by_the_attempt_it_names(ends: Ends) -> None:
    control = ends.executor.control
    ends.put(b"one")
    ends.put(b"two")
    ends.take()
    ends.parent.cancel(CancellationCause.TIMEOUT.value, insist=False)
    ends.parent.cancel(CancellationCause.SHUTDOWN.value, insist=True)
    assert control.causes_of(control.sequence) == CancellationCause.TIMEOUT.value | CancellationCause.SHUTDOWN.value
    assert control.insists
    ends.executor.finish(encode_outcome(DONE))
    ends.take()
    assert control.causes_of(control.sequence) == 0


def test_a_number_that_is_used_again_was_not_asked_to_stop(ends: Ends) -> None:
    ends.put(b"taken back")
    ends.parent.cancel(CancellationCause.USER_REQUESTED.value, insist=False)
    assert ends.parent.take_back()
    ends.put(b"another")
    assert ends.take()[1] == b"another"
    assert ends.executor.control.causes_of(ends.executor.control.sequence) == 0


def test_nobody_is_asked_where_nothing_is_open(ends: Ends) -> None:
    ends.parent.cancel(CancellationCause.USER_REQUESTED.value, insist=False)
    ends.put(b"one")
    ends.take()
    assert ends.executor.control.causes_of(ends.executor.control.sequence) == 0


def test_the_log_keeps_its_last_whole_lines(ends: Ends) -> None:
    ends.put(b"one")
    begin(ends)
    lines = [f"{number} {'x' * (number % 90)}" for number in range(1000)]
    for line in lines:
        ends.executor.control.log(line.encode() + b"\n")
    kept = ends.parent.log_lines().splitlines()
    assert kept == lines[-len(kept) :]
    assert sum(len(line) + 1 for line in kept) > 16_384 - 200


def test_a_log_that_is_no_text_is_made_storable(ends: Ends) -> None:
    ends.put(b"one")
    begin(ends)
    ends.executor.control.log(b"\xff\0 end\n")
    assert ends.parent.log_lines() == "\ufffd\ufffd end\n"
    ends.executor.memory.words[LOG_BYTES_WORD] = 2**64 - 1
    assert len(ends.parent.log_lines().encode()) <= 16_384
