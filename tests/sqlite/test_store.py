"""What the store adds to its acts: who is woken, when the log is emptied, what it says about itself."""

import os
import queue
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from runwick.config.options import SqliteOptions
from runwick.contracts.attempts import ClaimPlan, Kind, Lane, LaneTurn
from runwick.contracts.dispatching import Command, Receipt
from runwick.contracts.errors import StoreError
from runwick.contracts.identity import id_text
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import Priority
from runwick.runtime.ambient import SystemClock, SystemIds
from runwick.stores.sqlite.checkpoint import PAGES_WHEN_CALM
from runwick.stores.sqlite.store import SqliteStore
from tests.sqlite.places import PAGE_BYTES, migrated
from tests.sqlite.processes import DEADLINE_S, Child, Peer

LANE = Lane("reports", Priority.MEDIUM)
KIND = Kind("reports.build", 1)
IDS = SystemIds()


def a_store(path: Path) -> SqliteStore:
    return SqliteStore(path, options=SqliteOptions(), clock=SystemClock(), ids=IDS)


def a_command(payload: bytes = b"{}") -> Command:
    return Command(
        operation_id=IDS.ordered(),
        job_id=IDS.ordered(),
        application="shop",
        kind=KIND,
        lane=LANE,
        policy=JobPolicy(),
        payload=payload,
        deadline_ms=SystemClock().now_ms() + 300_000,
    )


def dispatched(store: SqliteStore) -> Receipt:
    (receipt,) = store.run(store.dispatch([a_command()]))
    assert isinstance(receipt, Receipt)
    return receipt


def a_plan() -> ClaimPlan:
    return ClaimPlan(
        application="shop",
        worker=IDS.ordered(),
        claim_token=IDS.secret(),
        turns=[LaneTurn(LANE, 8)],
        kinds=frozenset({KIND}),
        free=8,
        ahead=0,
        payload_bytes=1 << 22,
        lease_ms=60_000,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = a_store(migrated(tmp_path))
    yield store
    store.close()


def test_it_says_what_it_is_without_being_opened(tmp_path: Path) -> None:
    store = a_store(tmp_path / "jobs.db")
    assert store.description == f"sqlite {tmp_path}/jobs.db (wal, synchronous=full)"
    assert store.profile == "sqlite.wal-full"
    assert list(tmp_path.iterdir()) == []


def test_a_dispatch_here_wakes_this_processs_own_workers(store: SqliteStore) -> None:
    heard: queue.Queue[str] = queue.Queue()
    store.wake_on_work(lambda: heard.put("wake"))
    receipts = store.run(store.dispatch([a_command()]))
    assert len(receipts) == 1
    assert heard.get_nowait() == "wake"


def test_an_idle_worker_hears_of_a_dispatch_in_another_process_and_claims_it(tmp_path: Path) -> None:
    path = migrated(tmp_path)

    def dispatch(peer: Peer) -> None:
        producer = a_store(path)
        peer.hear()
        peer.say(dispatched(producer).job_id)

    with Child(dispatch) as producer:
        store = a_store(path)
        heard: queue.Queue[str] = queue.Queue()
        stop = store.wake_on_work(lambda: heard.put("wake"))
        assert store.run(store.claim(a_plan())).attempts == []
        assert heard.empty()
        producer.say("dispatch")
        assert heard.get(timeout=DEADLINE_S) == "wake"
        (attempt,) = store.run(store.claim(a_plan())).attempts  # the write lock makes it wait for the commit
        assert producer.hear() == id_text(attempt.job_id)
    stop()
    store.close()


def test_an_empty_claim_empties_the_log(store: SqliteStore) -> None:
    payload = b'"' + b"x" * (PAGES_WHEN_CALM + 1) * PAGE_BYTES + b'"'
    store.run(store.dispatch([a_command(payload)]))
    before = store.path.stat().st_size
    assert before < PAGES_WHEN_CALM * PAGE_BYTES
    assert len(store.run(store.claim(a_plan())).attempts) == 1
    assert store.path.stat().st_size == before
    assert store.run(store.claim(a_plan())).attempts == []
    assert store.path.stat().st_size > PAGES_WHEN_CALM * PAGE_BYTES


def test_what_the_operator_should_know_is_there_after_a_check(store: SqliteStore) -> None:
    assert store.notes == ()
    store.check()
    assert all(store.notes)


def test_what_was_read_from_a_file_is_forgotten_with_it(store: SqliteStore, tmp_path: Path) -> None:
    """Numbers that stand for names belong to one file: in another one they name something else, or nothing."""
    store.run(store.dispatch([a_command()]))
    store.close()
    store.path.rename(tmp_path / "moved.db")
    other = a_store(migrated(tmp_path))
    first = a_command()
    other.run(other.dispatch([msgspec.structs.replace(first, application="office", lane=Lane("mail", Priority.HIGH))]))
    other.close()
    record = store.run(store.job("shop", dispatched(store).job))
    assert record is not None
    assert (record.kind, record.lane) == (KIND, LANE)


def test_a_fork_does_not_hide_that_the_file_was_replaced(store: SqliteStore, tmp_path: Path) -> None:
    store.run(store.dispatch([a_command()]))
    store.path.rename(tmp_path / "moved.db")
    migrated(tmp_path)
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(StoreError, match="is gone or was replaced"):
        store.run(store.dispatch([a_command()]))
