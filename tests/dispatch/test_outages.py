"""Dispatching while the server is down: told every time, lost never."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from runwick import DispatchOutcomeUnknown, Receipt, Runwick, RunwickError, StoreUnavailable
from runwick.contracts.errors import Disposition
from scripts.servers.postgres import PostgresServer
from scripts.servers.redis import RedisServer
from tests.dispatch.jobs import Report, application, stored

Server = PostgresServer | RedisServer


def stop(server: Server) -> None:
    server.stop()


def stop_at_once(server: Server) -> None:
    """As quick as it can; Redis knows nothing between an orderly end and none."""
    if isinstance(server, PostgresServer):
        server.stop("immediate")
    else:
        server.kill()


def kill(server: Server) -> None:
    server.kill()


@pytest.fixture(scope="module", params=[PostgresServer, RedisServer])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Its own, for it is stopped."""
    with request.param() as server:
        yield server


@pytest.fixture
def rw(server: Server) -> Iterator[Runwick]:
    if isinstance(server, PostgresServer):
        server.drop_database("outages")
        url = server.create_database("outages")
    else:
        server.execute("FLUSHDB")
        url = server.url()
    app = application(url)
    app.migrate()
    yield app
    app.close()


def blocking(rw: Runwick) -> Receipt:
    return rw.dispatch(Report("May"))


def awaiting(rw: Runwick) -> Receipt:
    return asyncio.run(rw.dispatch_async(Report("May")))


@pytest.mark.parametrize("end", [stop, stop_at_once, kill])
@pytest.mark.parametrize("dispatch", [blocking, awaiting])
def test_f067_a_dispatch_during_an_outage_is_told_and_never_lost(
    server: Server, rw: Runwick, dispatch: Callable[[Runwick], Receipt], end: Callable[[Server], None]
) -> None:
    confirmed = [dispatch(rw), dispatch(rw)]
    end(server)
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


def test_a_process_that_begins_during_an_outage_sends_nothing(server: Server, rw: Runwick) -> None:
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
