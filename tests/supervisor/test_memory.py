"""The rings against a model: nothing is ever overwritten before it is read, taken back or answered."""

import collections
import os
import struct

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runwick_supervisor.memory import MEMORY_BYTES, RECORDS_MAX, WORK_RING, Ring, RingReader, RingWriter, SharedMemory

RING = Ring(first_slot=0, start=RECORDS_MAX * 8, end=RECORDS_MAX * 8 + 1024)
HEADER = struct.Struct("QQ")


class Rings(RuleBasedStateMachine):
    """One ring with its writer and its reader, as the hand-off uses them, beside a plain queue of contents."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = bytearray(RING.end)
        words = memoryview(self.memory).cast("Q")
        self.writer = RingWriter(words, RING)
        self.reader = RingReader(words, RING)
        self.unread: collections.deque[tuple[int, bytes]] = collections.deque()
        self.unanswered: collections.deque[tuple[int, int, bytes]] = collections.deque()
        self.number = 0

    @rule(body=st.binary(max_size=400))
    def put(self, body: bytes) -> None:
        offset = self.writer.reserve(HEADER.size + len(body))
        if offset is None:
            assert self.unread or self.unanswered, "an empty ring takes any record that fits into it"
            return
        assert self.reader.holds(offset, HEADER.size + len(body))
        self.number += 1
        HEADER.pack_into(self.memory, offset, self.number, len(body))
        self.memory[offset + HEADER.size : offset + HEADER.size + len(body)] = body
        self.unread.append((self.number, body))

    @precondition(lambda self: self.unread)
    @rule()
    def read(self) -> None:
        number, body = self.unread.popleft()
        offset = self.reader.next_offset()
        assert HEADER.unpack_from(self.memory, offset) == (number, len(body))
        self.unanswered.append((offset, number, body))

    @precondition(lambda self: self.unanswered)
    @rule()
    def answer(self) -> None:
        self.unanswered.popleft()
        self.writer.release_oldest()

    @precondition(lambda self: self.unread)
    @rule()
    def take_back(self) -> None:
        self.unread.pop()
        self.writer.release_newest()

    @invariant()
    def what_is_being_worked_on_stays(self) -> None:
        for offset, number, body in self.unanswered:
            assert HEADER.unpack_from(self.memory, offset) == (number, len(body))
            at = offset + HEADER.size
            assert self.memory[at : at + len(body)] == body


Rings.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestRings = Rings.TestCase


def test_small_records_stay_near_the_start_of_a_large_ring() -> None:
    writer = RingWriter(memoryview(bytearray(MEMORY_BYTES)).cast("Q"), WORK_RING)
    offsets = []
    for _ in range(20_000):
        offsets.append(writer.reserve(100))
        if len(offsets) > 10:
            writer.release_oldest()
    assert max(offset for offset in offsets if offset is not None) < WORK_RING.start + 256 * 1024


def test_an_empty_ring_begins_at_its_start_again() -> None:
    writer = RingWriter(memoryview(bytearray(MEMORY_BYTES)).cast("Q"), WORK_RING)
    for _ in range(3):
        assert writer.reserve(1000) == WORK_RING.start
        writer.release_oldest()


def test_a_ring_takes_no_more_records_than_it_has_slots() -> None:
    writer = RingWriter(memoryview(bytearray(MEMORY_BYTES)).cast("Q"), WORK_RING)
    assert all(writer.reserve(8) is not None for _ in range(RECORDS_MAX))
    assert writer.reserve(8) is None
    writer.release_oldest()
    assert writer.reserve(8) is not None


def test_the_memory_cannot_be_cut_from_under_its_reader() -> None:
    descriptor = SharedMemory.create()
    memory = SharedMemory(descriptor)
    try:
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        memory.view[MEMORY_BYTES - 1] = 1
    finally:
        memory.close()
        os.close(descriptor)
