"""Threads and processes count on one board, and nothing is lost between them."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.peers import board
from scripts.peers.board import Board, Writer
from scripts.peers.runs import runs_of

COUNTS = 500


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Board]:
    new = Board(tmp_path)
    yield new
    new.close()


def count(writer: Writer) -> None:
    for _ in range(COUNTS):
        writer.count(3)


def test_an_empty_board_says_nothing(empty: Board) -> None:
    standing = empty.standing()
    assert (standing.ended, standing.processes, standing.first_ns, standing.last_ns) == (0, 0, 0, 0)
    assert empty.lines("begin") == []


def test_threads_and_forked_processes_have_slots_of_their_own(empty: Board) -> None:
    writer = Writer(empty.path)
    writer.count(1)  # the forked ones must not go on in this slot
    children = []
    for _ in range(2):
        if not (pid := os.fork()):
            threads = [threading.Thread(target=count, args=(writer,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os._exit(0)
        children.append(pid)
    count(writer)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
    standing = empty.standing()
    assert (standing.ended, standing.cpu_ns, standing.processes) == (5 * COUNTS + 1, 15 * COUNTS + 1, 3)
    assert 0 < standing.first_ns <= standing.last_ns <= standing.at_ns


def test_a_board_without_a_free_slot_says_so(empty: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "SLOTS", 0)
    with pytest.raises(RuntimeError, match="more than 0 threads count on one board"):
        Writer(empty.path).count()


def test_lines_tell_who_ran_what_and_whether_it_ended(empty: Board) -> None:
    writer = Writer(empty.path)
    writer.tell("begin", 4, 77, 100)
    writer.tell("delay", 12)
    writer.tell("begin", 5, 78, 110)
    writer.tell("end", 4, 77, 150)
    writer.tell("begin", 5, 77, 160)
    first, second, third = runs_of(empty)
    assert (first.number, first.ended_ns, first.goes_on) == (4, 150, False)
    assert (second.pid, second.goes_on, second.was_on(120), second.was_on(109)) == (78, True, True, False)
    assert (third.number, third.begun_ns) == (5, 160)
    assert first.was_on(149)
    assert not first.was_on(150)
    assert empty.lines("delay") == [[12]]
