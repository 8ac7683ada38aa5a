"""Both ends of the hand-off in one process: what is put is taken once, what is wrong is refused."""

import os
import select
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from runwick.contracts.outcomes import RESULT_MAX_BYTES, ErrorDetail, Outcome, OutcomeKind
from runwick.contracts.usage import Usage
from runwick_supervisor.control import BEGUN_SEQUENCE_WORD, Progress
from runwick_supervisor.executor_end import ExecutorEnd, out_of_reach
from runwick_supervisor.handoff import Descriptors, HandOffViolation, ParentEnd, RecordKind, encode_outcome
from runwick_supervisor.memory import RETURN_RING

DONE = Outcome(OutcomeKind.SUCCEEDED, usage=Usage(wall_us=5))


class Ends:
    """The two ends of one hand-off, as if they were in two processes."""

    def __init__(self) -> None:
        self.parent = ParentEnd()
        self.executor = ExecutorEnd(Descriptors(*map(os.dup, self.parent.descriptors)))

    def put(self, payload: bytes, run: bytes = b"run") -> bool:
        """Put and announce one."""
        if not self.parent.put(RecordKind.RUN, run, payload):
            return False
        self.parent.announce()
        return True

    def take(self) -> tuple[bytes, bytes]:
        """Take one that is there; answers copies of run and payload."""
        assert self.executor.wait(0)
        _, run, payload = self.executor.take(1, lambda: None)
        return bytes(run), bytes(payload)

    def collected(self) -> list[Outcome]:
        return [outcome for _, outcome in self.parent.collect()]

    def close(self) -> None:
        self.parent.close()
        self.executor.memory.close()
        for doorbell in (
            self.executor._work,
            self.executor._completions,
            self.executor._room,
            self.executor.cancel_bell,
        ):
            doorbell.close()
        os.close(self.executor.stack_descriptor)


class ReadsMeanwhile:
    """Stands for the parent, which reads while the executor waits for room."""

    def __init__(self, read: Callable[[], object]) -> None:
        self.read = read

    def poll(self, milliseconds: int) -> None:
        self.read()


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.close()


class HandOff(RuleBasedStateMachine):
    """The hand-off beside a plain list: each record is taken by the executor or taken back, never both, in order."""

    SIZES = st.sampled_from([0, 1, 100, 5_000, 200_000, 1_048_576])

    def __init__(self) -> None:
        super().__init__()
        self.ends = Ends()
        self.untaken: list[bytes] = []
        self.taken: bytes | None = None
        self.answered: list[bytes] = []
        self.number = 0
        self.ends.executor._room_poll = ReadsMeanwhile(self.collect)  # type: ignore[assignment]

    @rule(size_bytes=SIZES)
    def put(self, size_bytes: int) -> None:
        self.number += 1
        payload = self.number.to_bytes(8) + bytes(size_bytes)
        if self.ends.put(payload):
            self.untaken.append(payload)
        else:
            assert self.untaken or self.taken or self.answered, "an empty ring takes every record"

    @precondition(lambda self: self.untaken and self.taken is None)
    @rule()
    def take(self) -> None:
        _, self.taken = self.ends.take()
        assert self.taken == self.untaken.pop(0)

    @rule()
    def take_back(self) -> None:
        assert self.ends.parent.take_back() == bool(self.untaken)
        if self.untaken:
            self.untaken.pop()

    @precondition(lambda self: self.taken is not None)
    @rule(size_bytes=SIZES)
    def finish(self, size_bytes: int) -> None:
        assert self.taken is not None
        result = self.taken[:8] + bytes(max(0, size_bytes - 8))
        self.ends.executor.finish(encode_outcome(Outcome(OutcomeKind.SUCCEEDED, result=result)))
        self.taken = None
        self.answered.append(result)

    @rule()
    def collect(self) -> None:
        assert [outcome.result for outcome in self.ends.collected()] == self.answered
        self.answered.clear()

    def teardown(self) -> None:
        self.ends.close()


HandOff.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestHandOff = HandOff.TestCase


def test_a_result_that_finds_no_room_waits_until_the_parent_has_read(ends: Ends) -> None:
    large = encode_outcome(Outcome(OutcomeKind.SUCCEEDED, result=bytes(RESULT_MAX_BYTES)))
    for _ in range(4):
        ends.put(b"")
    for _ in range(3):
        ends.take()
        ends.executor.finish(large)
    ends.take()
    read: list[Outcome] = []
    ends.executor._room_poll = ReadsMeanwhile(lambda: read.extend(ends.collected()))  # type: ignore[assignment]
    ends.executor.finish(large)
    assert len(read) == 3
    assert [outcome.result for outcome in ends.collected()] == [bytes(RESULT_MAX_BYTES)]


@pytest.mark.parametrize("size_bytes", [0, 100, 1_000, 33_000, 500_000, RESULT_MAX_BYTES])
def test_an_executor_whose_parent_keeps_up_never_waits_for_room(ends: Ends, size_bytes: int) -> None:
    small = encode_outcome(Outcome(OutcomeKind.SUCCEEDED, result=bytes(10)))
    result = encode_outcome(Outcome(OutcomeKind.SUCCEEDED, result=bytes(size_bytes)))
    room = ends.executor._room.descriptor

    def look() -> None:
        assert select.select([room], [], [], 0)[0], "it would wait, although everything was read"

    ends.executor._room_poll = ReadsMeanwhile(look)  # type: ignore[assignment]
    for outcome in (small, result) * (1_500 if size_bytes < 100_000 else 20):
        ends.put(b"")
        ends.take()
        ends.executor.finish(outcome)
        assert len(ends.collected()) == 1


def test_what_an_executor_had_taken_is_told_by_the_counts_that_are_left(ends: Ends) -> None:
    for _ in range(5):
        ends.put(b"")
    ends.take()
    ends.executor.finish(encode_outcome(DONE))
    ends.take()
    assert len(ends.collected()) == 1
    assert ends.parent.remains() == (1, Progress()), "taken, and not marked as begun"


def test_a_begun_mark_says_when(ends: Ends) -> None:
    ends.put(b"")
    ends.take()
    ends.executor.control.begun()
    taken, progress = ends.parent.remains()
    assert taken == 1
    assert progress.begun_at_ns is not None
    assert progress.phase == "decode"


def test_an_executor_that_waits_has_taken_nothing(ends: Ends) -> None:
    ends.put(b"")
    assert ends.parent.remains() == (0, Progress())


@pytest.mark.parametrize("forged", [1, 50])
def test_counts_that_cannot_be_right_make_everything_count_as_taken(ends: Ends, forged: int) -> None:
    for _ in range(3):
        ends.put(b"")
    ends.take()
    ends.executor.control.begun()
    ends.executor._work.ring(forged)
    # One too many looks like nothing taken; then the mark on the first says otherwise.
    assert ends.parent.remains().taken == (1 if forged == 1 else 3)


def finish_with(encoded: bytes) -> Callable[[Ends], None]:
    return lambda ends: ends.executor.finish(encoded)


def overwrite(word: int, value: int) -> Callable[[Ends], None]:
    """Finish properly, then change one word of the return ring: its first slot, or a word of the record there."""

    def act(ends: Ends) -> None:
        ends.executor.finish(encode_outcome(DONE))
        ends.executor.memory.words[word] = value

    return act


_RECORD_WORD = RETURN_RING.start // 8


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (lambda ends: ends.executor._completions.ring(2), "it announced 2 outcomes, 1 were open"),
        (overwrite(RETURN_RING.first_slot, RETURN_RING.end), "outcome 1 is said to lie at"),
        (overwrite(RETURN_RING.first_slot, 0), "outcome 1 is said to lie at 0"),
        (overwrite(RETURN_RING.first_slot, RETURN_RING.start + 4), "outcome 1 is said to lie at"),
        (overwrite(_RECORD_WORD, 2), "outcome 1 was expected, 2 came"),
        (overwrite(_RECORD_WORD + 2, 2**40), "outcome 1 is said to have 1099511627776 bytes"),
        (overwrite(_RECORD_WORD + 2, 0), "an outcome cannot be read"),
        (finish_with(b"\xff\x00"), "an outcome cannot be read"),
        (finish_with(msgspec.msgpack.encode({"kind": "succeeded"})), "an outcome cannot be read"),
        (finish_with(msgspec.msgpack.encode(["failed", None, ["x", b"\xff\xfe"]])), "an outcome cannot be read"),
        (finish_with(encode_outcome(Outcome(OutcomeKind.ABANDONED))), "only recovery"),
        (
            finish_with(encode_outcome(Outcome(OutcomeKind.SUCCEEDED, result=bytes(RESULT_MAX_BYTES + 1)))),
            "an outcome cannot be read",
        ),
        (
            finish_with(encode_outcome(Outcome(OutcomeKind.SUCCEEDED, begun_at_ms=2**60))),
            "an outcome cannot be read",
        ),
        (
            finish_with(encode_outcome(Outcome(OutcomeKind.SUCCEEDED, usage=Usage(faults_minor=-1)))),
            "an outcome cannot be read",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(ends: Ends, act: Callable[[Ends], None], complaint: str) -> None:
    ends.put(b"")
    ends.take()
    act(ends)
    with pytest.raises(HandOffViolation, match=complaint):
        ends.collected()


def test_what_came_before_a_violation_stands(ends: Ends) -> None:
    for _ in range(2):
        ends.put(b"")
        ends.take()
        ends.executor.finish(encode_outcome(Outcome(OutcomeKind.FAILED, "x", ErrorDetail("x", "y"))))
    ends.executor.memory.words[RETURN_RING.first_slot + 1] = 1
    collecting = ends.parent.collect()
    assert next(collecting)[1].kind is OutcomeKind.FAILED
    with pytest.raises(HandOffViolation):
        next(collecting)


def test_a_counter_that_somebody_filled_is_a_violation(ends: Ends) -> None:
    ends.executor._work.ring(2**64 - 2)
    with pytest.raises(HandOffViolation, match="filled"):
        ends.put(b"")


def test_a_mark_that_means_nothing_is_no_begin(ends: Ends) -> None:
    ends.put(b"")
    ends.take()
    ends.executor.memory.words[BEGUN_SEQUENCE_WORD] = 2**64 - 1
    assert ends.parent.remains() == (1, Progress())


def test_a_stack_file_takes_16_kib_and_no_more(ends: Ends) -> None:
    stack = ends.executor.stack_descriptor
    assert os.write(stack, b"x" * 20_000) == 16_384
    with pytest.raises(PermissionError):
        os.write(stack, b"y")
    assert ends.parent.stack() == "x" * 16_384
    ends.parent.clear_stack()
    assert (ends.parent.stack(), ends.parent.stack_bytes) == ("", 0)
    os.write(stack, b"File \xff")
    assert (ends.parent.stack(), ends.parent.stack_bytes) == ("File \ufffd", 6)


def test_a_handler_that_closes_the_low_descriptors_reaches_none_of_these() -> None:
    parent = ParentEnd()
    moved = out_of_reach(Descriptors(*map(os.dup, parent.descriptors)))
    try:
        assert min(moved) >= 256
        assert not any(map(os.get_inheritable, moved))
    finally:
        moved.close()
        parent.close()
