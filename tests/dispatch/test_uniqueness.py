"""Uniqueness keys in a real store, as a producer meets them: found again, refused, told apart."""

import asyncio
import contextlib
import datetime
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from runwick import (
    BatchItem,
    DispatchOptions,
    DispatchUniqueness,
    Job,
    JobDefaults,
    ManagementActor,
    PerResource,
    Receipt,
    ResolutionStatus,
    RollingWindow,
    Runwick,
    StoreError,
    UniquenessConflict,
    UniqueWithinWindow,
)
from tests.dispatch.jobs import stored
from tests.redis.asking import execute

OPS = ManagementActor("ops-bot", "Ops bot", "service")
HOUR = datetime.timedelta(hours=1)


class Place(Job):
    cart: int


class Recount(Job):
    shop: str
    note: str = ""


class Call(Job):
    number: int


def application(store: str, **options: Any) -> Runwick:
    app = Runwick("shop", store=store, **options)
    app.job("orders.place")(Place)
    app.job(
        "stats.recount",
        unique_while_active=lambda job: f"shop:{job.shop}",
        per_resource=(PerResource(lambda job: f"shop:{job.shop}", 1),),
    )(Recount)
    app.job("calls.make", rolling_window=RollingWindow(10, HOUR))(Call)
    return app


@pytest.fixture
def rw(store_url: str) -> Iterator[Runwick]:
    app = application(store_url)
    yield app
    app.close()


def keyed(active_key: str | None = None, window_key: str | None = None) -> DispatchUniqueness:
    return DispatchUniqueness(active_key, window_key, None if window_key is None else HOUR)


def request(key: str, cart: int = 7) -> BatchItem:
    return BatchItem(Place(cart), DispatchOptions(uniqueness=keyed(None, key)))


def found(receipt: Receipt) -> tuple[str, str]:
    return receipt.disposition, receipt.duplicate_match


def take_capabilities(rw: Runwick) -> None:
    """Have the store be one of an older release, whose applications come without capabilities."""
    if (file := rw.store_url.removeprefix("sqlite:///")) != rw.store_url:
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute("UPDATE runwick_store SET capabilities = '[]'")
    elif rw.store_url.startswith("redis"):
        execute(rw.store_url, "HSET", "rw:store", "capabilities", "")
    else:
        with psycopg.connect(rw.store_url, autocommit=True) as server:
            server.execute("UPDATE runwick.store SET capabilities_from_start = '{}'")


def end(rw: Runwick, receipt: Receipt) -> None:
    """Have the job end, by an operator's hand."""
    assert rw.controls.cancel(rw.get(receipt).target, OPS).succeeded


def test_a_second_copy_is_not_queued(rw: Runwick) -> None:
    first = rw.dispatch(Recount("north"))
    again = asyncio.run(rw.dispatch_async(Recount("north", "discarded")))
    other = rw.dispatch(Recount("south"))
    assert [found(each) for each in (first, again, other)] == [
        ("created", "none"),
        ("reused", "active"),
        ("created", "none"),
    ]
    assert again.job_id == first.job_id != other.job_id
    assert again.operation_id != first.operation_id
    assert stored(rw) == 2


def test_the_same_request_finds_its_job(rw: Runwick) -> None:
    first = rw.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    again = rw.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    assert (found(again), again.job_id) == (("reused", "window"), first.job_id)
    assert not again.policy_drift
    assert stored(rw) == 1


def test_another_request_is_a_conflict_that_names_the_job(rw: Runwick) -> None:
    first = rw.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    with pytest.raises(UniquenessConflict) as caught:
        rw.dispatch(Place(8), uniqueness=keyed(None, "request:1"))
    assert (caught.value.code, caught.value.conflicting_job_id) == ("uniqueness_conflict", first.job_id)
    assert stored(rw) == 1


def test_an_active_key_is_free_again_when_its_job_has_ended(rw: Runwick) -> None:
    first = rw.dispatch(Recount("north"))
    end(rw, first)
    again = rw.dispatch(Recount("north"))
    assert found(again) == ("created", "none")
    assert again.job_id != first.job_id


def test_a_window_key_outlives_its_job(rw: Runwick) -> None:
    first = rw.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    end(rw, first)
    again = rw.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    assert (found(again), again.job_id) == (("reused", "window"), first.job_id)


def test_both_keys_find_one_job(rw: Runwick) -> None:
    both = keyed("cart:7", "request:1")
    first = rw.dispatch(Place(7), uniqueness=both)
    again = rw.dispatch(Place(7), uniqueness=both)
    assert (found(again), again.job_id) == (("reused", "active_and_window"), first.job_id)


def test_a_new_window_key_is_linked_to_the_active_job(rw: Runwick) -> None:
    first = rw.dispatch(Place(7), uniqueness=keyed("cart:7"))
    both = keyed("cart:7", "request:1")
    linked = rw.dispatch(Place(7), uniqueness=both)
    end(rw, first)
    later = rw.dispatch(Place(7), uniqueness=both)
    assert [found(linked), found(later)] == [("reused", "active"), ("reused", "window")]
    assert linked.job_id == later.job_id == first.job_id


def test_two_keys_of_two_jobs_are_a_conflict(rw: Runwick) -> None:
    both = keyed("cart:7", "request:1")
    old = rw.dispatch(Place(7), uniqueness=both)
    end(rw, old)
    rw.dispatch(Place(7), uniqueness=keyed("cart:7"))
    with pytest.raises(UniquenessConflict) as caught:
        rw.dispatch(Place(7), uniqueness=both)
    assert caught.value.code == "uniqueness_composition_conflict"
    assert caught.value.conflicting_job_id == old.job_id


def test_a_reused_receipt_is_the_same_however_often_it_is_asked_for(rw: Runwick) -> None:
    first = rw.dispatch(Recount("north"))
    prepared = rw.prepare(Recount("north"))
    receipt = rw.dispatch_prepared(prepared)
    assert (found(receipt), receipt.job_id) == (("reused", "active"), first.job_id)
    assert rw.dispatch_prepared(rw.import_prepared(prepared.export())) == receipt
    resolution = rw.resolve(prepared.operation_id)
    assert (resolution.status, resolution.receipt) == (ResolutionStatus.CONFIRMED, receipt)


def test_a_batch_is_judged_as_if_its_items_came_one_after_the_other(rw: Runwick) -> None:
    batch = rw.dispatch_many([Recount("north"), Recount("south"), Recount("north"), request("a"), request("a")])
    assert [found(each) for each in batch.receipts] == [
        ("created", "none"),
        ("created", "none"),
        ("reused", "active"),
        ("created", "none"),
        ("reused", "window"),
    ]
    assert batch.receipts[2].job_id == batch.receipts[0].job_id
    assert stored(rw) == 3


def test_a_conflict_fails_the_whole_batch(rw: Runwick) -> None:
    first = rw.dispatch_many([request("a")]).receipts[0]
    with pytest.raises(UniquenessConflict) as caught:
        rw.dispatch_many([request("b"), request("a", cart=8), request("c")])
    assert (caught.value.ordinal, caught.value.conflicting_job_id) == (1, first.job_id)
    assert stored(rw) == 1


@pytest.mark.parametrize("again", [False, True], ids=["sent once", "sent again"])
def test_a_batch_may_go_on_after_conflicts(rw: Runwick, again: bool) -> None:
    first = rw.dispatch_many([request("a")]).receipts[0]
    items = [request("b"), request("a", cart=8), request("b", cart=9), request("a")]
    prepared = rw.prepare_many(items, continue_on_conflict=True)
    batch = rw.dispatch_prepared(prepared)
    if again:
        assert rw.dispatch_prepared(rw.import_prepared(prepared.export())) == batch
    created, reused = batch.receipts
    failures = [(item.ordinal, item.failure) for item in batch.items if item.failure is not None]
    assert [(ordinal, failure.ordinal, failure.code) for ordinal, failure in failures] == [
        (1, 1, "uniqueness_conflict"),
        (2, 2, "uniqueness_conflict"),
    ]
    assert [failure.conflicting_job_id for _, failure in failures] == [first.job_id, created.job_id]
    assert (found(reused), reused.job_id) == (("reused", "window"), first.job_id)
    assert stored(rw) == 2


def test_other_retry_settings_are_told_and_no_conflict(store_url: str) -> None:
    before, after = application(store_url), application(store_url, job_defaults=JobDefaults(max_executions=9))
    first = before.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    again = after.dispatch(Place(7), uniqueness=keyed(None, "request:1"))
    assert (found(again), again.job_id, again.policy_drift) == (("reused", "window"), first.job_id, True)
    before.close()
    after.close()


def test_keys_belong_to_one_job_type(store_url: str) -> None:
    app = application(store_url)
    app.job("orders.move", unique_within_window=UniqueWithinWindow(lambda job: "a", HOUR))(Moved)
    receipts = [app.dispatch_many([request("a")]).receipts[0], app.dispatch(Moved(7))]
    assert [found(each) for each in receipts] == [("created", "none")] * 2
    app.close()


class Moved(Job):
    cart: int


def test_rate_windows_need_the_capability(rw: Runwick) -> None:
    take_capabilities(rw)
    with pytest.raises(StoreError) as caught:
        rw.dispatch_many([Place(7), Call(1)])
    assert caught.value.code == "rate_admission_not_active"
    assert stored(rw) == 0
