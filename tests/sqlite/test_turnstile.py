"""The turnstile: in turn within a process, in turn among processes, and never in the way."""

import fcntl
import os
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.errors import StoreUnavailable
from runwick.stores.sqlite.turnstile import Line, Turnstile, turnstiles
from tests.sqlite.places import a_driver, add, migrated, names
from tests.sqlite.processes import DEADLINE_S, Child, Peer

DOOR, INSIDE = 0, 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return migrated(tmp_path)


@pytest.fixture
def turnstile(path: Path) -> Iterator[Turnstile]:
    turnstile = turnstiles.take(path)
    yield turnstile
    turnstiles.give_back(turnstile)


def a_turn(path: Path) -> None:
    turnstile = turnstiles.take(path)
    with turnstile.turn(DEADLINE_S):
        pass
    turnstiles.give_back(turnstile)


def wait_until_taken(path: Path, lock: int) -> None:
    """Until another process has this lock. A third one looks: who closes a descriptor lets go of his own locks."""

    def watch(peer: Peer) -> None:
        descriptor = os.open(f"{path}-turnstile", os.O_RDWR)
        while True:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, lock)
            except BlockingIOError:
                break
            fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, lock)
        peer.say("taken")

    with Child(watch) as watcher:
        assert watcher.hear() == "taken"


def test_threads_get_their_turn_in_the_order_of_asking() -> None:
    line = Line()
    order: list[int] = []

    def ask(number: int) -> None:
        assert line.acquire(DEADLINE_S)
        order.append(number)
        line.release()

    assert line.acquire(0)
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for number, thread in enumerate(threads):
        thread.start()
        while len(line._waiting) <= number:
            pass
    line.release()
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_a_thread_that_waited_long_enough_leaves_the_line() -> None:
    line = Line()
    assert line.acquire(0)
    assert not line.acquire(0.001)
    assert not line._waiting
    line.release()
    assert line.acquire(0)


def test_ctrl_c_while_waiting_leaves_the_line() -> None:
    line = Line()
    assert line.acquire(0)

    def interrupt() -> None:
        while not line._waiting:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        line.acquire(DEADLINE_S)
    thread.join()
    line.release()
    assert line.acquire(0), "it was passed on to somebody who had left"


def test_a_process_whose_own_threads_write_without_a_gap_says_so(path: Path, turnstile: Turnstile) -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with turnstile.turn(DEADLINE_S):
            inside.set()
            leave.wait(DEADLINE_S)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(DEADLINE_S)
    with pytest.raises(StoreUnavailable, match="other threads of this process"), turnstile.turn(0.001):
        pass
    leave.set()
    thread.join()


def test_who_waits_at_the_door_comes_before_who_comes_again(path: Path, turnstile: Turnstile) -> None:
    def write_once(peer: Peer) -> None:
        mine = turnstiles.take(path)
        with mine.turn(DEADLINE_S):
            peer.say("my turn")

    for _ in range(10):
        with turnstile.turn(DEADLINE_S):
            child = Child(write_once)
            wait_until_taken(path, DOOR)
        with child:
            with turnstile.turn(DEADLINE_S):  # at once again, as a worker at full speed does
                assert not child.silent(), "it came first although another process stood at the door"
            assert child.hear() == "my turn"


def test_a_stopped_process_inside_delays_but_never_blocks(path: Path, turnstile: Turnstile) -> None:
    def stay_inside(peer: Peer) -> None:
        mine = turnstiles.take(path)
        with mine.turn(DEADLINE_S):
            peer.say("inside")
            peer.hear()

    driver = a_driver(path, busy_timeout_ms=100)
    with Child(stay_inside) as child:
        child.hear()
        os.kill(child.pid, signal.SIGSTOP)
        for number in range(3):
            driver.run(add(f"anyway {number}"))
        with turnstile.turn(DEADLINE_S) as left_s:
            assert left_s > DEADLINE_S / 2, "one wait in vain is enough"
        os.kill(child.pid, signal.SIGCONT)
        child.say("leave")
    assert len(driver.run(names())) == 3
    driver.close()


def test_a_killed_process_leaves_nothing_taken(path: Path, turnstile: Turnstile) -> None:
    def stay_inside(peer: Peer) -> None:
        with turnstiles.take(path).turn(DEADLINE_S):
            peer.say("inside")
            peer.hear()

    child = Child(stay_inside)
    child.hear()
    os.kill(child.pid, signal.SIGKILL)
    assert child.end() == -signal.SIGKILL
    child.close()
    with turnstile.turn(DEADLINE_S) as left_s:
        assert left_s > DEADLINE_S / 2


def test_two_users_in_one_process_share_one_turnstile(path: Path) -> None:
    first, second = turnstiles.take(path), turnstiles.take(path)
    assert first is second
    turnstiles.give_back(first)
    assert turnstiles.take(path) is second
    turnstiles.give_back(second)
    turnstiles.give_back(second)
    third = turnstiles.take(path)
    assert third is not second
    turnstiles.give_back(third)


def test_its_file_has_the_mode_of_the_database(path: Path) -> None:
    path.chmod(0o640)
    a_turn(path)
    assert stat.S_IMODE(Path(f"{path}-turnstile").stat().st_mode) == 0o640


def test_without_a_file_of_its_own_writers_go_without_it(path: Path) -> None:
    Path(f"{path}-turnstile").mkdir()
    driver = a_driver(path)
    assert driver.run(add("anyway")) == 1
    driver.close()


def test_only_one_process_is_the_one_that_checkpoints(path: Path, turnstile: Turnstile) -> None:
    def try_it(peer: Peer) -> None:
        with turnstiles.take(path).checkpoint() as mine:
            peer.say(mine)

    with turnstile.checkpoint() as mine, Child(try_it) as other:
        assert mine
        assert other.hear() is False
    with Child(try_it) as other:
        assert other.hear() is True
