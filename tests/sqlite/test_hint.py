"""The hint: an armed one hears of every page that anybody writes, an unarmed one costs and says nothing."""

import queue
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.stores.sqlite.hint import Hint
from runwick.stores.sqlite.requests import Requests
from tests.sqlite.places import a_driver, add, migrated, names
from tests.sqlite.processes import DEADLINE_S, Child, Peer, open_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return migrated(tmp_path)


@pytest.fixture
def writer(path: Path) -> Iterator[Child]:
    """Another process: it writes each name it hears. Forked first, since a fork closes this process's connections."""

    def write(peer: Peer) -> None:
        driver = a_driver(path)
        while (name := peer.hear()) is not None:
            driver.run(add(name))
            peer.say("written")

    with Child(write) as writer:
        yield writer
        writer.say(None)


@pytest.fixture
def log(writer: Child, path: Path) -> Iterator[Path]:
    """The log of a store that this process has open, so that it stays."""
    driver = a_driver(path)
    driver.check()
    yield Path(f"{path}-wal")
    driver.close()


@pytest.fixture
def hint(log: Path) -> Iterator[Hint]:
    hint = Hint(log)
    yield hint
    hint.close()


class Ear:
    """Hears wakes, one at a time."""

    def __init__(self, hint: Hint) -> None:
        self._heard: queue.Queue[str] = queue.Queue()
        self.stop = hint.subscribe(lambda: self._heard.put("wake"))

    def wakes(self) -> bool:
        """Wait for a wake and take it."""
        return self._heard.get(timeout=DEADLINE_S) == "wake"

    def silent(self) -> bool:
        return self._heard.empty()


def write(writer: Child, name: str) -> None:
    writer.say(name)
    assert writer.hear() == "written"


def watches() -> list[str]:
    return [file for file in open_files() if "inotify" in file or "eventfd" in file]


def test_it_wakes_at_another_processs_commit_each_time_it_is_armed(writer: Child, hint: Hint) -> None:
    ear = Ear(hint)
    for number in range(3):
        hint.arm()
        assert ear.silent()
        write(writer, f"job {number}")
        assert ear.wakes()


def test_it_wakes_once_however_much_is_written(writer: Child, hint: Hint) -> None:
    ear = Ear(hint)
    hint.arm()
    write(writer, "first")
    assert ear.wakes()
    write(writer, "second")
    write(writer, "third")
    hint.arm()  # had one of those been heard, its wake would stand in front of the next
    write(writer, "fourth")
    assert ear.wakes()
    assert ear.silent()


def test_it_wakes_at_the_first_page_before_the_commit(path: Path) -> None:
    def write_and_wait(peer: Peer) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA cache_size = 1")  # what does not fit goes to the log at once
        peer.hear()
        connection.execute("BEGIN IMMEDIATE")
        for number in range(8):
            connection.execute("INSERT INTO runwick_application (name) VALUES (?)", (f"{number}".ljust(40_000),))
        peer.say("written")
        peer.hear()
        connection.execute("COMMIT")

    with Child(write_and_wait) as child:
        driver, hint = a_driver(path), Hint(Path(f"{path}-wal"))
        driver.check()
        ear = Ear(hint)
        hint.arm()
        child.say("write")
        child.hear()
        assert ear.wakes()
        assert driver.run(names()) == set()
        child.say("commit")
        hint.close()
        driver.close()


def test_without_a_log_it_waits_for_one(writer: Child, path: Path) -> None:
    log = Path(f"{path}-wal")
    assert not log.exists()
    hint = Hint(log)
    ear = Ear(hint)
    hint.arm()
    write(writer, "first")
    assert ear.wakes()
    hint.close()


def test_nobody_is_woken_after_stop(writer: Child, hint: Hint) -> None:
    first, second = Ear(hint), Ear(hint)
    first.stop()
    first.stop()
    hint.arm()
    write(writer, "job")
    assert second.wakes()
    assert first.silent()


def test_closing_leaves_no_watch_and_no_thread(log: Path) -> None:
    def everything() -> tuple[list[str], set[str]]:
        return watches(), {thread.name for thread in threading.enumerate()}

    before = everything()
    hint = Hint(log)
    ear = Ear(hint)
    assert everything() != before
    hint.close()
    assert everything() == before
    hint.tell()
    assert ear.silent()


def test_a_forked_child_leaves_the_watch_to_its_parent(writer: Child, hint: Hint) -> None:
    ear = Ear(hint)
    with Child(lambda peer: peer.say(watches())) as child:
        assert child.hear() == []
    hint.arm()
    write(writer, "job")
    assert ear.wakes()


def test_a_forked_child_wakes_none_of_its_parents_workers() -> None:
    requests, worker = Requests(), bytes(16)
    woken: list[str] = []
    requests.subscribe(worker, lambda: woken.append("woken"))

    def ask(peer: Peer) -> None:
        requests.tell({worker})
        peer.say(woken)

    with Child(ask) as child:
        assert child.hear() == []
    requests.tell({worker})
    assert woken == ["woken"]
