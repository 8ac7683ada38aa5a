"""The run file: who holds its lock lives, and who gets it may recover what the dead one left."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runwick.contracts.errors import StoreError
from runwick.runtime import runfile
from runwick.runtime.ambient import SystemIds
from runwick.runtime.rundir import RunDir, find_run_dir
from runwick.runtime.runfile import Predecessor, RunFile, follow, open_run_file, predecessors, recover_dead
from runwick.telemetry import events
from runwick.telemetry.bus import Bus

STORE, OWN = b"s" * 16, b"o" * 16
TABLE = "22 1 254:0 / / rw - ext4 /dev/vda rw\n31 22 0:41 / {share} rw - nfs4 filer:/export rw\n"


def ids() -> bytes:
    return SystemIds().ordered()


def left_by_the_dead(folder: Path, application: str = "errands", store: bytes = STORE) -> bytes:
    """The file of a worker that was killed."""
    dead = RunFile.create(folder, worker := ids())
    dead.describe(application, store)
    dead.close()
    return worker


def found(folder: Path) -> list[Predecessor]:
    return predecessors(folder, "errands", STORE, own=OWN)


class Inheritor:
    """Notes what it recovers."""

    def __init__(self, refuse: bool = False) -> None:
        self.workers: list[bytes] = []
        self._refuse = refuse

    async def __call__(self, worker: bytes) -> None:
        await asyncio.sleep(0)
        self.workers.append(worker)
        if self._refuse:
            raise StoreError("store_unavailable", "it is away")


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[RunFile]:
    """A worker that runs."""
    file = RunFile.create(tmp_path, ids())
    file.describe("errands", STORE)
    yield file
    file.remove()
    file.close()


def test_a_dead_one_is_recovered_and_its_file_removed(tmp_path: Path) -> None:
    worker, inherit = left_by_the_dead(tmp_path), Inheritor()
    asyncio.run(recover_dead(found(tmp_path), inherit))
    assert (inherit.workers, list(tmp_path.iterdir())) == ([worker], [])


def test_whoever_lives_is_left_alone(tmp_path: Path, alive: RunFile) -> None:
    inherit = Inheritor()
    asyncio.run(recover_dead(found(tmp_path), inherit, within_s=0.05))
    assert (inherit.workers, len(list(tmp_path.iterdir()))) == ([], 1)


def test_a_fork_holds_the_lock_on_until_it_is_gone(tmp_path: Path, alive: RunFile) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        os._exit(0)
    alive.close()
    inherit = Inheritor()
    asyncio.run(recover_dead(found(tmp_path), inherit, within_s=0.05))
    assert inherit.workers == []
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    asyncio.run(recover_dead(found(tmp_path), inherit))
    assert inherit.workers == [alive.worker]
    os.close(reading)
    os.close(writing)


def test_a_descriptor_that_was_sent_holds_the_lock_too(tmp_path: Path, alive: RunFile) -> None:
    ours, theirs = socket.socketpair()
    socket.send_fds(ours, [b"x"], [alive.descriptor])
    alive.close()
    (one,) = found(tmp_path)
    assert not one.is_proven_dead(), "also while it is on its way"
    ours.close()
    theirs.close()
    assert one.is_proven_dead()
    one.let_go()


def test_a_death_is_waited_for(tmp_path: Path, alive: RunFile) -> None:
    async def scene() -> list[bytes]:
        inherit = Inheritor()
        recovering = asyncio.create_task(recover_dead(found(tmp_path), inherit, within_s=10))
        await asyncio.sleep(0)
        assert inherit.workers == []
        alive.close()
        await recovering
        return inherit.workers

    assert asyncio.run(scene()) == [alive.worker]


def test_of_two_starters_one_recovers(tmp_path: Path) -> None:
    async def scene() -> list[bytes]:
        worker, inherit, goes_on = left_by_the_dead(tmp_path), Inheritor(), asyncio.Event()

        async def slowly(dead: bytes) -> None:
            await inherit(dead)
            await goes_on.wait()

        async def release() -> None:
            await asyncio.sleep(0)
            goes_on.set()

        starters = [found(tmp_path), found(tmp_path)]
        await asyncio.gather(*(recover_dead(seen, slowly) for seen in starters), release())
        assert inherit.workers == [worker]
        return inherit.workers

    asyncio.run(scene())
    assert list(tmp_path.iterdir()) == []


def test_others_of_another_store_or_application_are_not_touched(tmp_path: Path) -> None:
    left_by_the_dead(tmp_path, application="letters")
    left_by_the_dead(tmp_path, store=b"t" * 16)
    (tmp_path / "readme.run").write_text("nothing of ours")
    assert found(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 3


def test_what_the_store_does_not_let_recover_is_left_to_the_next_start(tmp_path: Path) -> None:
    worker = left_by_the_dead(tmp_path)
    asyncio.run(recover_dead(found(tmp_path), Inheritor(refuse=True)))
    (again,) = found(tmp_path)
    assert (again.worker, again.is_proven_dead()) == (worker, True)
    again.let_go()


@pytest.mark.parametrize(("host", "counts"), [(socket.gethostname(), True), ("elsewhere", False)])
def test_after_a_new_start_of_this_host_it_is_dead_but_a_copy_elsewhere_says_nothing(
    tmp_path: Path, host: str, counts: bool
) -> None:
    left_by_the_dead(tmp_path)
    (path,) = tmp_path.iterdir()
    about = msgspec.json.decode(path.read_bytes(), type=runfile._About)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(about, boot_id="another", host=host)))
    assert len(found(tmp_path)) == counts


def test_a_file_of_a_worker_that_took_no_work_is_rubbish(tmp_path: Path) -> None:
    unborn = RunFile.create(tmp_path, ids())
    assert (found(tmp_path), len(list(tmp_path.iterdir()))) == ([], 1), "it is on its way"
    empty = tmp_path / f"{ids().hex()}.run"
    empty.touch()
    assert (found(tmp_path), empty.exists()) == ([], False)
    unborn.close()
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_left_something_leaves_its_file(tmp_path: Path) -> None:
    async def scene(left: int) -> list[bytes]:
        dead, bus, inherit = left_by_the_dead(tmp_path), Bus(), Inheritor()
        file, note = open_run_file(RunDir(tmp_path), ids())
        assert (note, file is not None) == (None, True)
        assert file is not None
        follow(file, bus, "errands", lambda: STORE, inherit)
        bus.publish(events.WorkerReady("errands", 1))
        while not inherit.workers:
            await asyncio.sleep(0.001)
        bus.publish(events.WorkerStopped(left))
        file.close()
        assert inherit.workers == [dead]
        return [one.worker for one in found(tmp_path)]

    assert asyncio.run(scene(0)) == []
    assert len(asyncio.run(scene(1))) == 1


def test_the_operators_directory_must_do(tmp_path: Path) -> None:
    assert find_run_dir(str(tmp_path / "run"), "--run-dir", {}, make=False) == RunDir(tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert find_run_dir(str(tmp_path / "run"), "--run-dir", {}) == RunDir(tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "run")
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for said in (
        "run",
        str(tmp_path / "link"),
        str(tmp_path / "file"),
        str(tmp_path / "open"),
        str(tmp_path / "a" / "b"),
    ):
        problem = find_run_dir(said, "--run-dir", {}).problem
        assert problem is not None
        assert (problem.code, problem.setting, said in problem.message) == ("invalid_policy", "--run-dir", True)


def test_a_network_file_system_proves_nothing(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(TABLE.format(share=tmp_path / "share"))
    (tmp_path / "share").mkdir()
    found = find_run_dir(str(tmp_path / "share" / "run"), "--run-dir", {}, mounts=mounts)
    assert (found.path, found.problem) == (None, None)
    assert found.note is not None
    assert "(nfs4)" in found.note
    assert open_run_file(found, OWN) == (None, found.note)


def test_where_nobody_says_anything_the_system_does(tmp_path: Path) -> None:
    service, session = tmp_path / "service", tmp_path / "session"
    service.mkdir()
    session.mkdir()
    said = {"RUNTIME_DIRECTORY": f"{service}:/elsewhere", "XDG_RUNTIME_DIR": str(session)}
    assert find_run_dir(None, "", said).path == service
    service.chmod(0o777)
    assert find_run_dir(None, "", said).path == session / "runwick"
    (session / "runwick").rmdir()
    (session / "runwick").touch()
    found = find_run_dir(None, "", said, make=False)
    assert found.path not in (service, session / "runwick")
    assert found.problem is None
