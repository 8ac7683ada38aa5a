"""Twenty executors and twenty supervisors are killed under load: nothing is lost, nothing overlaps, nothing is left."""

import contextlib
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from runwick import Receipt, Runwick
from tests.kills import jobs
from tests.kills.application import FAST
from tests.kills.fire import Field, completed, executors_of, kill, overlaps, wait_for
from tests.kills.jobs import Drill

KILLS = 20
JOBS = 1_200


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    field = Field(tmp_path)
    yield field
    for process in field.processes():
        process.kill()


@pytest.fixture
def producer(field: Field, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runwick]:
    """A producer of the same application on the field's store."""
    monkeypatch.setenv("RUNWICK_STORE", field.environment["RUNWICK_STORE"])
    rw = Runwick("fire", worker=FAST)
    rw.add_jobs(jobs)
    rw.migrate()
    yield rw
    rw.close()


def dispatch(producer: Runwick, numbers: range) -> list[Receipt]:
    receipts: list[Receipt] = []
    for start in range(numbers.start, numbers.stop, 100):
        batch = producer.dispatch_many([Drill(number) for number in range(start, min(start + 100, numbers.stop))])
        receipts += batch
    return receipts


def wait_for_load(field: Field, what: str) -> None:
    seen = len(field.marks())
    wait_for(lambda: len(field.marks()) > seen + 8, what)


def in_shared_memory() -> set[Path]:
    """What lies there, but for the folders in which tests keep servers and files."""
    return {path for path in Path("/dev/shm").iterdir() if not path.name.startswith("runwick-")}


def descriptors_of(process: psutil.Process) -> int:
    """Without those of the store, whose connections come with the load and stay."""
    found = 0
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += "fire.db" not in str(descriptor.readlink())
    return found


def check(field: Field, producer: Runwick, receipts: list[Receipt]) -> None:
    """What must hold after every faulted run."""
    marks = field.marks()
    views = [producer.get(receipt.job_id) for receipt in receipts]
    unfinished = [view for view in views if view.state != "succeeded"]
    assert unfinished == [], "confirmed jobs were lost or ended otherwise"
    assert completed(marks) == set(range(len(receipts)))
    assert overlaps(marks) == []
    for view in views:
        numbers = [attempt.number for attempt in view.attempts]
        assert numbers == list(range(1, len(numbers) + 1)), "attempt numbers have a gap or repeat"
        assert [attempt.outcome for attempt in view.attempts].count("succeeded") == 1


def test_killed_executors_lose_nothing_and_are_replaced(field: Field, producer: Runwick) -> None:
    receipts = dispatch(producer, range(JOBS))
    dice = random.Random(20)
    with field.supervisor("--until-empty") as supervisor:
        parent = psutil.Process(supervisor.pid)
        wait_for(lambda: len(field.marks()) > 0, "the first run")
        family = {supervisor.pid, *(process.pid for process in parent.children())}
        assert family <= {process.pid for process in field.processes()}, "what is left over could not be seen"
        descriptors = descriptors_of(parent)
        for count in range(KILLS):
            wait_for_load(field, f"load before kill {count + 1}")
            victims = executors_of(supervisor)
            wait_for(lambda: len(executors_of(supervisor)) == 2, "both executors")
            kill(dice.choice(victims or executors_of(supervisor)))
        wait_for(lambda: len(executors_of(supervisor)) == 2, "the last replacement")
        assert descriptors_of(parent) <= descriptors + 2
        assert supervisor.wait(60) == 0
    check(field, producer, receipts)
    crashed = sum(
        attempt.outcome == "crashed" for receipt in receipts for attempt in producer.get(receipt.job_id).attempts
    )
    assert 1 <= crashed <= KILLS
    wait_for(lambda: field.processes() == [], "every process to be gone")


def test_killed_supervisors_lose_nothing_and_leave_nothing(field: Field, producer: Runwick) -> None:
    receipts = dispatch(producer, range(JOBS))
    shared_memory = in_shared_memory()
    for count in range(KILLS):
        with field.supervisor() as supervisor:
            wait_for_load(field, f"load before kill {count + 1}")
            supervisor.send_signal(signal.SIGKILL)
            supervisor.wait(60)
        wait_for(lambda: field.processes() == [], "executors and zygote to follow their supervisor")
    with field.supervisor("--until-empty") as last:
        assert last.wait(60) == 0
    check(field, producer, receipts)
    wait_for(lambda: field.processes() == [], "every process to be gone")
    wait_for(lambda: in_shared_memory() <= shared_memory, "nothing more in shared memory than before")
