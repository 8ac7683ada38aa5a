"""A worker's status file: what another process on its host reads, and when it believes it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runwick.contracts.health import HealthStatus, RoleHealth, WorkerHealth
from runwick.health.checks import PERIOD_S
from runwick.health.status_file import Status, StatusFile, open_status_file, read_status_files, wrong_of
from runwick.runtime.rundir import RunDir
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

HEALTHY, DEGRADED, _ = HealthStatus
WORKER = bytes(range(16))

WELL = WorkerHealth(HEALTHY, True, (RoleHealth("worker", HEALTHY),))
DRAINING = WorkerHealth(DEGRADED, False, (RoleHealth("worker", DEGRADED, "draining", "it was told to stop"),))


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def now_ms(self) -> int:
        return round(self.at_s * 1000)

    def steady_s(self) -> float:
        return self.at_s


class Ground:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Hands()
        self.bus = Bus()
        self.file = StatusFile.create(folder, WORKER, "runwick worker", self.clock)
        self.path = folder / f"{WORKER.hex()}.health"

    def says(self, health: WorkerHealth, after_s: float = 0.0) -> None:
        self.clock.at_s += after_s
        self.bus.publish(events.HealthSeen(health))

    def read(self) -> Status:
        (status,) = read_status_files(self.folder)
        return status

    @property
    def written_s(self) -> float:
        seen = self.read().seen
        assert seen is not None
        return seen.at_s


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    ground.file.close()


def test_it_is_there_before_its_worker_has_begun(ground: Ground) -> None:
    status = ground.read()
    assert (status.program, status.process, status.host) == ("runwick worker", os.getpid(), socket.gethostname())
    assert (status.application, status.seen, wrong_of(status)) == (None, None, [])
    assert ground.path.stat().st_mode & 0o777 == 0o600


def test_a_change_is_written_at_once_and_sameness_every_ten_seconds(ground: Ground) -> None:
    ground.file.follow(ground.bus, "errands")
    ground.says(WELL)
    assert (ground.read().application, ground.written_s) == ("errands", 100.0)
    ground.says(WELL, PERIOD_S - 1)
    assert ground.written_s == 100.0
    ground.says(WELL, 1)
    assert ground.written_s == 110.0
    ground.says(DRAINING, 1)
    assert ground.written_s == 111.0
    assert wrong_of(ground.read()) == ["worker: it was told to stop"]
    ground.says(WELL, 1)  # shorter than what it replaces
    assert wrong_of(ground.read()) == []


def test_it_goes_with_its_worker(ground: Ground) -> None:
    ground.file.close()
    ground.file.close()
    assert list(ground.folder.iterdir()) == []


def test_what_a_dead_one_left_says_nothing_and_the_next_one_clears_it(ground: Ground) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path;"
        "from runwick.health.status_file import StatusFile; from runwick.runtime.ambient import SystemClock;"
        "StatusFile.create(Path(sys.argv[1]), bytes(16), 'runwick worker', SystemClock());"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(ground.folder)])
    left = ground.folder / f"{bytes(16).hex()}.health"
    assert left.exists()
    assert [status.process for status in read_status_files(ground.folder)] == [os.getpid()]
    StatusFile.create(ground.folder, bytes([1] * 16), "runwick worker", ground.clock).close()
    assert not left.exists()
    assert ground.path.exists()


def test_another_hosts_is_no_business_of_ours(ground: Ground) -> None:
    foreign = msgspec.structs.replace(ground.read(), host="elsewhere")
    ground.path.write_bytes(msgspec.json.encode(foreign))
    assert read_status_files(ground.folder) == []


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"program": 1}', b"[]"])
def test_what_makes_no_sense_is_nobody(ground: Ground, text: bytes) -> None:
    ground.path.write_bytes(text)
    assert read_status_files(ground.folder) == []


def test_a_link_is_not_followed(ground: Ground, tmp_path: Path) -> None:
    (ground.folder / "00.health").symlink_to(ground.path)
    assert len(read_status_files(ground.folder)) == 1


def test_where_none_can_be_made_the_operator_is_told(tmp_path: Path) -> None:
    file, note = open_status_file(RunDir(tmp_path / "nowhere"), WORKER, "runwick worker", Hands())
    assert file is None
    assert note is not None
    assert note.startswith(f"no status file can be made in {tmp_path}/nowhere: No such file or directory.")
    assert open_status_file(RunDir(note="no directory"), WORKER, "runwick worker", Hands()) == (None, None)
