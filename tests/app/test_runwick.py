"""One application object over a real store: where the store comes from, what is refused, what is read back."""

import asyncio
import datetime
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runwick import (
    ConfigurationError,
    InvalidArgument,
    Job,
    JobNotFound,
    JobState,
    Runwick,
    SqliteOptions,
    StoreNotInstalled,
    Usage,
    WaitTimeout,
    WorkerOptions,
)
from tests.app.running import fail, succeed

SHORT = datetime.timedelta(milliseconds=30)
LONG = datetime.timedelta(seconds=10)


class Report(Job):
    title: str


@pytest.fixture
def open_app(tmp_path: Path) -> Iterator[Callable[..., Runwick]]:
    """Makes applications on one file and closes them again."""
    opened: list[Runwick] = []

    def make(**changes: Any) -> Runwick:
        rw = Runwick("shop", **{"store": f"sqlite:///{tmp_path}/jobs.db", **changes})
        rw.job("reports.build")(Report)
        opened.append(rw)
        return rw

    yield make
    for rw in opened:
        rw.close()


@pytest.fixture
def rw(open_app: Callable[..., Runwick]) -> Runwick:
    app = open_app()
    app.migrate()
    return app


def test_a_relative_path_is_resolved_once_where_the_application_was_made(
    open_app: Callable[..., Runwick], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rw = open_app(store="sqlite:///some%20jobs.db")
    monkeypatch.chdir("/")
    rw.migrate()
    assert (tmp_path / "some jobs.db").is_file()
    assert rw.store_url == f"sqlite:///{tmp_path}/some%20jobs.db"
    assert rw.get(rw.dispatch(Report("May"))).name == "reports.build"


def test_the_environment_redirects_the_store(
    open_app: Callable[..., Runwick], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNWICK_STORE", f"sqlite:///{tmp_path}/elsewhere.db")
    open_app(store="sqlite:///jobs.db").migrate()
    assert [path.name for path in tmp_path.glob("*.db")] == ["elsewhere.db"]


def test_the_environment_wins_over_options_in_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_LEASE_DURATION", "90s")
    monkeypatch.setenv("RUNWICK_READER_THREADS", "3")
    rw = Runwick("shop", worker=WorkerOptions(shutdown_drain=datetime.timedelta(seconds=9)), store="memory://")
    assert rw.worker_options.lease_duration == datetime.timedelta(seconds=90)
    assert rw.worker_options.shutdown_drain == datetime.timedelta(seconds=9)
    assert rw.store_options.sqlite.reader_threads == 3


def test_only_migrate_creates_a_store(open_app: Callable[..., Runwick], tmp_path: Path) -> None:
    rw = open_app()
    for use in (lambda: rw.dispatch(Report("May")), rw.check, lambda: rw.get("0199c0de-0000-7000-8000-000000000000")):
        with pytest.raises(StoreNotInstalled, match=f"store_not_installed: {tmp_path}/jobs.db"):
            use()
    assert list(tmp_path.iterdir()) == []
    first, second = rw.migrate(), rw.migrate()
    assert first is not None
    assert second is not None
    assert first.store_id == second.store_id
    assert (bool(first.applied), second.applied) == (True, ())


@pytest.mark.parametrize(
    ("store", "code", "sentence"),
    [
        (None, "missing_store", "store: no store is given; use store= or set RUNWICK_STORE."),
        ("jobs.db", "invalid_store", "a store is named by a URL such as sqlite:///jobs.db, this is none."),
        ("oracle://scott:tiger@db/jobs", "invalid_store", "oracle:// is no store of this release; use postgresql://"),
        ("sqlite://host/jobs.db", "invalid_store", "a SQLite store has no host"),
        ("sqlite:///:memory:", "invalid_policy", "a database in memory is lost with its process"),
        (Path("jobs.db"), "invalid_store", "store: is PosixPath; give a URL as text, such as sqlite:///jobs.db."),
        (0, "invalid_store", "store: is int; give a URL as text, such as sqlite:///jobs.db."),
    ],
)
def test_a_store_that_is_none_is_refused_at_first_use(store: Any, code: str, sentence: str) -> None:
    rw = Runwick("shop", store=store)
    rw.job("reports.build")(Report)
    for use in (lambda: rw.dispatch(Report("May")), rw.migrate, rw.check):
        with pytest.raises(ConfigurationError) as caught:
            use()
        [problem] = caught.value.problems
        assert problem.code == code
        assert sentence in problem.text
        assert "tiger" not in str(caught.value)


@pytest.mark.parametrize("given", [0, "", False, {}, "fast"], ids=repr)
@pytest.mark.parametrize(
    ("name", "wanted"), [("worker", "WorkerOptions"), ("sqlite", "SqliteOptions"), ("job_defaults", "JobDefaults")]
)
def test_options_of_the_wrong_class(name: str, wanted: str, given: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Runwick("shop", **{name: given})
    assert str(refused.value) == f"invalid_argument: {name} is {type(given).__name__}; give {wanted}(…)"


def test_options_out_of_bounds_keep_the_store_closed(open_app: Callable[..., Runwick]) -> None:
    rw = open_app(sqlite=SqliteOptions(reader_threads=0))
    with pytest.raises(ConfigurationError, match="reader_threads"):
        rw.dispatch(Report("May"))


def test_every_problem_is_told_at_once_and_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_LEASE_DURATIN", "90s")
    rw = Runwick("my shop", worker=WorkerOptions(lease_duration=datetime.timedelta(seconds=30)))
    rw.job("reports.build", max_executions=0)(Report)
    assert [problem.code for problem in rw.problems()] == [
        "invalid_name",
        "invalid_policy",
        "invalid_timing",
        "unknown_setting",
        "missing_store",
    ]
    with pytest.raises(ConfigurationError) as caught:
        rw.check()
    assert list(caught.value.problems) == rw.problems()


def test_a_check_says_what_is_there(rw: Runwick, tmp_path: Path) -> None:
    @rw.task("stats.recalculate", queue="stats")
    def recalculate() -> None: ...

    notes = rw.check()
    assert notes[0] == f"store: sqlite {tmp_path}/jobs.db (wal, synchronous=full)"
    assert "jobs: reports.build, stats.recalculate" in notes
    assert "queues: default, stats" in notes
    assert "without a handler here, so a worker of this application leaves them: reports.build" in notes


def test_neither_repr_nor_str_shows_the_store() -> None:
    assert repr(Runwick("shop", store="memory://secret")) == str(Runwick("shop")) == "Runwick('shop')"


def test_a_job_as_it_stands(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"), not_before=datetime.timedelta(hours=1), tenant="acme")
    view = rw.get(receipt)
    assert rw.get(receipt.job_id).job_id == view.job_id == receipt.job_id
    assert (view.name, view.version, view.queue, view.priority) == ("reports.build", 1, "default", "medium")
    assert (view.state, view.code, view.generation, view.executions, view.max_executions) == ("pending", None, 1, 0, 3)
    assert (view.tenant, view.attempts, view.outcome, view.usage, view.ended_at) == ("acme", (), None, None, None)
    assert view.due_at is not None
    assert view.due_at - view.created_at == datetime.timedelta(hours=1)
    assert repr(view) == f"JobView(job_id={receipt.job_id}, name=reports.build, state=pending)"


def test_what_a_job_returned_and_cost(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    succeed(rw, result=b'{"pages":3}', usage=Usage(wall_us=1500))
    view = rw.wait(receipt, timeout=LONG)
    assert view.state is JobState.SUCCEEDED
    assert view.outcome == "succeeded"
    assert view.usage is not None
    assert view.usage.wall_us == 1500
    assert view.result() == {"pages": 3}
    assert view.result(dict[str, int]) == {"pages": 3}
    with pytest.raises(
        InvalidArgument, match=r"invalid_result: the result of job .* is of another type: Expected `int`"
    ):
        view.result(int)
    assert "pages" not in repr(view)


def test_a_job_without_a_result(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    succeed(rw)
    assert rw.get(receipt).result() is None


def test_a_job_that_failed_has_no_result_to_mistake_for_one(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    fail(rw, "order_not_found")
    view = rw.wait(receipt, timeout=LONG)
    assert (view.state, view.code, view.outcome) == ("failed", "order_not_found", "failed_permanently")
    with pytest.raises(
        InvalidArgument, match=r"invalid_state: job .* is failed \(order_not_found\); only a succeeded job"
    ):
        view.result()


def test_waiting_ends_when_the_job_does(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    worker = threading.Thread(target=succeed, args=(rw, b"7"))
    worker.start()
    assert rw.wait(receipt, timeout=LONG).result() == 7
    worker.join()
    assert asyncio.run(rw.wait_async(receipt.job_id, timeout=LONG)).result() == 7


def test_waiting_ends_when_the_time_is_up(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    with pytest.raises(
        WaitTimeout, match=rf"wait_timeout: job {receipt.job_id} is still pending after 0.03 s; it goes on"
    ):
        rw.wait(receipt, timeout=SHORT)
    with pytest.raises(TimeoutError):
        asyncio.run(rw.wait_async(receipt, timeout=SHORT))
    assert rw.get(receipt).state is JobState.PENDING


def test_a_job_that_is_not_there(rw: Runwick, open_app: Callable[..., Runwick], tmp_path: Path) -> None:
    unknown = "0199c0de-0000-7000-8000-000000000000"
    with pytest.raises(JobNotFound, match=f"not_found: no job {unknown} in this application"):
        rw.get(unknown)
    with pytest.raises(JobNotFound):
        asyncio.run(rw.get_async(unknown))
    with pytest.raises(InvalidArgument, match="invalid_id: an id is a UUID"):
        rw.get("today")
    other = Runwick("other", store=f"sqlite:///{tmp_path}/jobs.db")
    with pytest.raises(JobNotFound):
        other.get(rw.dispatch(Report("May")))
    other.close()


def test_a_closed_application_opens_again(rw: Runwick) -> None:
    receipt = rw.dispatch(Report("May"))
    rw.close()
    rw.close()
    assert rw.get(receipt).state is JobState.PENDING


def test_a_store_in_memory_is_one_store_per_application() -> None:
    rw, other = Runwick("shop", store="memory://"), Runwick("shop", store="memory://")
    for app in (rw, other):
        app.job("reports.build")(Report)
    assert rw.migrate() is None
    receipt = rw.dispatch(Report("May"))
    rw.close()
    succeed(rw, result=b"[1]")
    assert rw.wait(receipt, timeout=LONG).result(list[int]) == [1]
    assert rw.check()[0].startswith("store: memory")
    with pytest.raises(JobNotFound):
        other.get(receipt)


def test_one_object_serves_before_and_after_a_fork(rw: Runwick) -> None:
    first = rw.dispatch(Report("May"))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, rw.dispatch(Report("June")).job_id.encode())
        finally:
            os._exit(0)
    os.close(writer)
    _, status = os.waitpid(pid, 0)
    second = os.read(reader, 100).decode()
    os.close(reader)
    assert status == 0
    assert {rw.get(first).state, rw.get(second).state} == {JobState.PENDING}


def test_threads_share_one_store(rw: Runwick) -> None:
    barrier = threading.Barrier(4)
    stores: list[object] = []

    def look() -> None:
        barrier.wait()
        stores.append(rw.store)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 4
    assert len({id(store) for store in stores}) == 1
