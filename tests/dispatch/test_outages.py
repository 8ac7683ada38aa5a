"""Dispatching while the server is down: told every time, lost never."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from runwick import DispatchOutcomeUnknown, Receipt, Runwick, RunwickError, StoreUnavailable
from runwick.contracts.errors import Disposition
from scripts.servers.postgres import PostgresServer
from tests.dispatch.jobs import Report, application, stored


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Its own, for it is stopped."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def rw(server: PostgresServer) -> Iterator[Runwick]:
    server.drop_database("outages")
    app = application(server.create_database("outages"))
    app.migrate()
    yield app
    app.close()


def blocking(rw: Runwick) -> Receipt:
    return rw.dispatch(Report("May"))


def awaiting(rw: Runwick) -> Receipt:
    return asyncio.run(rw.dispatch_async(Report("May")))


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
@pytest.mark.parametrize("dispatch", [blocking, awaiting])
def test_f067_a_dispatch_during_an_outage_is_told_and_never_lost(
    server: PostgresServer,
    rw: Runwick,
    dispatch: Callable[[Runwick], Receipt],
    mode: Literal["fast", "immediate", "kill"],
) -> None:
    confirmed = [dispatch(rw), dispatch(rw)]
    if mode == "kill":
        server.kill()
    else:
        server.stop(mode)
    unknown: list[DispatchOutcomeUnknown] = []
    try:
        for _ in range(4):
            with pytest.raises(RunwickError) as told:
                dispatch(rw)
            if isinstance(told.value, DispatchOutcomeUnknown):
                unknown.append(told.value)
            else:
                assert isinstance(told.value, StoreUnavailable)
                assert told.value.disposition is Disposition.KNOWN_NOT_APPLIED
    finally:
        server.start()
    confirmed.append(dispatch(rw))
    confirmed += [rw.dispatch_prepared(each.prepared) for each in unknown if each.prepared]  # type: ignore[misc]
    assert [rw.get(receipt).job_id for receipt in confirmed] == [receipt.job_id for receipt in confirmed]
    assert stored(rw) == len(confirmed) == 3 + len(unknown)


def test_a_process_that_begins_during_an_outage_sends_nothing(server: PostgresServer, rw: Runwick) -> None:
    rw.close()
    server.stop()
    try:
        for dispatch in (blocking, awaiting):
            with pytest.raises(StoreUnavailable, match="nothing was sent"):
                dispatch(rw)
        prepared = rw.prepare(Report("May"))  # asks nobody
        with pytest.raises(StoreUnavailable):
            rw.dispatch_prepared(prepared)
    finally:
        server.start()
    rw.dispatch_prepared(prepared)
    assert stored(rw) == 1
