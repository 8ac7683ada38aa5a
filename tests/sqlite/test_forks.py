"""A fork, whatever the process was doing: parent and child both go on, and nothing confirmed is lost."""

import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.errors import StoreProfileMismatch
from runwick.runtime import crossings
from runwick.runtime.forks import Forkable
from runwick.stores.sqlite import forks, opening
from runwick.stores.sqlite.driver import Driver
from runwick.stores.sqlite.link import File, Link
from runwick.stores.sqlite.turnstile import turnstiles
from tests.sqlite.places import a_driver, add, migrated, names
from tests.sqlite.processes import DEADLINE_S, Child, Peer, open_files


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    driver = a_driver(migrated(tmp_path))
    driver.run(add("before"))
    driver.run(names())
    yield driver
    driver.close()


def test_parent_and_child_both_write_after_a_fork(driver: Driver) -> None:
    def write(peer: Peer) -> None:
        for number in range(20):
            driver.run(add(f"child {number}"))
        peer.say(len(driver.run(names())))

    with Child(write) as child:
        for number in range(20):
            driver.run(add(f"parent {number}"))
        assert child.hear() >= 21
    assert len(driver.run(names())) == 41


def test_what_a_child_commits_after_its_parent_has_closed_is_not_lost(driver: Driver) -> None:
    """A child that kept an inherited connection would hold no lock, and its commits would go with the parent's log."""

    def write(peer: Peer) -> None:
        driver.run(add("while the parent is open"))
        peer.say("written")
        peer.hear()
        driver.run(add("after the parent closed"))
        peer.say("written")
        peer.hear()

    with Child(write) as child:
        child.hear()
        driver.run(add("parent"))
        driver.close()
        child.say("closed")
        child.hear()
        other = sqlite3.connect(driver.path)
        found = {name for (name,) in other.execute("SELECT name FROM runwick_application")}
        other.close()
        child.say("seen")
    assert found == {"before", "parent", "while the parent is open", "after the parent closed"}


def test_a_fork_waits_for_a_thread_that_is_inside_a_transaction(driver: Driver) -> None:
    inside, forking = threading.Event(), threading.Event()

    class Announcing(Forkable):
        def before_fork(self) -> None:
            forking.set()

    def hold() -> None:
        inside.set()
        assert forking.wait(DEADLINE_S)

    driver.close()
    announcing = Announcing()  # older than the links that the next use makes, so told before them
    remove = crossings.on("sqlite.committed", hold)
    thread = threading.Thread(target=driver.run, args=(add("thread"),))
    thread.start()
    assert inside.wait(DEADLINE_S)
    remove()
    assert not forking.is_set()
    with Child(lambda peer: peer.say(driver.run(add("child")))) as child:
        assert child.hear() == 1
    thread.join()
    del announcing
    assert driver.run(names()) == {"before", "thread", "child"}


def test_a_child_that_was_forked_inside_a_call_refuses_the_file(driver: Driver) -> None:
    children: list[Child] = []

    def write_in_vain(peer: Peer) -> None:
        for store in (driver, a_driver(driver.path)):
            with pytest.raises(StoreProfileMismatch, match="forked while its parent was using") as refused:
                store.run(add("child"))
        peer.say(refused.value.code)

    remove = crossings.on("sqlite.committed", lambda: children.append(Child(write_in_vain)))
    driver.run(add("parent"))
    remove()
    with children[0] as child:
        assert child.hear() == "store_profile_mismatch"
    assert driver.run(names()) == {"before", "parent"}


def test_a_child_that_was_forked_while_a_thread_opened_the_file_refuses_it(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locks are there as soon as something was read, before the connection is in its place."""
    monkeypatch.setattr(forks, "PATIENCE_S", 0.01)
    opened, goes_on = threading.Event(), threading.Event()

    def connect() -> sqlite3.Connection:
        connection = opening.connect(driver.path, 1.0)
        opened.set()
        assert goes_on.wait(DEADLINE_S)
        return connection

    def write_in_vain(peer: Peer) -> None:
        with pytest.raises(StoreProfileMismatch, match="forked while its parent was using") as refused:
            driver.run(add("child"))
        peer.say(refused.value.code)

    def use() -> None:
        with link:
            pass

    link = Link(File(driver.path), connect)
    thread = threading.Thread(target=use)
    thread.start()
    assert opened.wait(DEADLINE_S)
    with Child(write_in_vain) as child:
        assert child.hear() == "store_profile_mismatch"
    goes_on.set()
    thread.join()
    link.close()
    assert driver.run(names()) == {"before"}


def test_a_fork_by_foreign_code_is_noticed_and_refused(driver: Driver) -> None:
    """C code that forks runs none of Python's hooks."""
    reading, writing = os.pipe()
    if (pid := ctypes.PyDLL(None).fork()) == 0:
        try:
            driver.run(add("child"))
        except StoreProfileMismatch as refused:
            os.write(writing, refused.code.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        assert answer.read() == "store_profile_mismatch"
    os.waitpid(pid, 0)
    assert driver.run(add("parent")) == 1


def test_a_child_has_no_lock_descriptor_of_its_parent(driver: Driver) -> None:
    def look(peer: Peer) -> None:
        peer.say([file for file in open_files() if "jobs.db" in file])

    with turnstiles.take(driver.path).turn(1.0), Child(look) as child:
        assert child.hear() == []
