"""What each of the server's answers means to the caller, asked from a real server."""

from collections.abc import Iterator

import psycopg
import pytest

from runwick.contracts.errors import (
    AdmissionClosed,
    RunwickError,
    SettlementRejected,
    StoreError,
    StoreHistoryBroken,
    StoreNotInstalled,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.contracts.identity import id_text
from runwick.stores.postgres.driver import Driver
from runwick.stores.postgres.revision import REVISION
from runwick.stores.steps import Step
from tests.postgres.asking import execute
from tests.postgres.places import a_driver, add, doing, marked, names

KNOWN = ["scheduler"]
OTHER_ID = "0199c0de-0000-7000-8000-000000000001"


@pytest.fixture
def url(database: str) -> str:
    return marked(database)


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url)
    driver.run(names())
    yield driver
    driver.close()


@pytest.mark.parametrize(
    "state",
    ["08006", "40001", "40P01", "55P03", "57014", "25006", "53100", "53200", "53300", "57P01", "58030", "42501"],
)
def test_what_can_be_different_the_next_time_is_unavailable_and_says_the_place(
    driver: Driver, url: str, state: str
) -> None:
    with pytest.raises(
        StoreUnavailable, match=r"do on 127\.0\.0\.1:\d+/\w+ .*as ordered.*nothing was written"
    ) as refused:
        driver.run(doing(Step("fail", (state,))))
    assert "postgres:" not in refused.value.message
    assert url not in refused.value.message


@pytest.mark.parametrize("state", ["XX001", "XX002"])
def test_damage_is_a_broken_history(driver: Driver, state: str) -> None:
    with pytest.raises(StoreHistoryBroken, match="is damaged"):
        driver.run(doing(Step("fail", (state,))))


@pytest.mark.parametrize("state", ["22003", "22P02", "23502", "23503", "23505", "23514", "54000"])
def test_a_value_that_the_store_refuses_rejects_a_settlement_alone(driver: Driver, state: str) -> None:
    with pytest.raises(SettlementRejected, match="as ordered"):
        driver.run(doing(Step("fail", (state,)), name="settle"))
    with pytest.raises(psycopg.Error) as raised:
        driver.run(doing(Step("fail", (state,))))
    assert raised.value.sqlstate == state


@pytest.mark.parametrize("state", ["42601", "XX000", "P0001", "0A000", "42P01", "RW999"])
def test_what_only_a_mistake_of_ours_can_cause_is_raised_as_it_is(driver: Driver, state: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        driver.run(doing(Step("fail", (state,))))
    assert raised.value.sqlstate == state


class Gate:
    """Asks the schema's own gate, as every writing act does."""

    def __init__(self, driver: Driver, url: str) -> None:
        self._driver = driver
        execute(url, "INSERT INTO runwick.application (name, capabilities) VALUES ('shop', '{scheduler}')")

    def refusal(self, *, act: str = "dispatch", known: list[str] = KNOWN) -> RunwickError:
        parameters = (id_text(self._driver.store_id or b""), REVISION, 1, act, False, known)
        with pytest.raises(RunwickError) as refused:
            self._driver.run(doing(Step("gate", parameters), name=act))
        return refused.value


@pytest.fixture
def gate(driver: Driver, url: str) -> Gate:
    return Gate(driver, url)


@pytest.mark.parametrize(("mode", "act"), [("drain", "claim"), ("maintenance", "settle")])
def test_an_application_that_does_not_admit_the_act(gate: Gate, url: str, mode: str, act: str) -> None:
    execute(url, f"UPDATE runwick.application SET admission = '{mode}'")
    refusal = gate.refusal(act=act)
    assert isinstance(refusal, AdmissionClosed)
    assert refusal.code == "admission_closed"
    assert f'application "shop" is {"being drained" if mode == "drain" else "under maintenance"}' in refusal.message
    assert f"so {act} is refused" in refusal.message


def test_another_store_than_the_known_one_breaks_the_history_for_good(gate: Gate, driver: Driver, url: str) -> None:
    known = id_text(driver.store_id or b"")
    execute(url, f"UPDATE runwick.store SET id = '{OTHER_ID}'")
    refusal = gate.refusal()
    assert isinstance(refusal, StoreHistoryBroken)
    assert refusal.code == "store_identity_mismatch"
    assert OTHER_ID in refusal.message
    assert known in refusal.message
    execute(url, f"UPDATE runwick.store SET id = '{known}'")
    with pytest.raises(StoreHistoryBroken) as again:
        driver.run(names())
    assert again.value.message == refusal.message


@pytest.mark.parametrize(
    ("change", "word"),
    [("DELETE FROM runwick.migration", "older"), ("UPDATE runwick.migration SET number = 1 + number", "newer")],
)
def test_another_revision_than_that_of_this_release(gate: Gate, url: str, change: str, word: str) -> None:
    execute(url, f"{change} WHERE number = {REVISION}")
    refusal = gate.refusal()
    assert isinstance(refusal, StoreRevisionMismatch)
    assert f"the store is {word}" in refusal.message


def test_durability_that_was_turned_off_is_seen_by_the_next_write(gate: Gate, driver: Driver, url: str) -> None:
    execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = 'off'")
    driver.close()
    with pytest.raises(StoreProfileMismatch):
        driver.run(names())
    unsafe = a_driver(url, unsafe=True)
    parameters = (id_text(driver.store_id or b""), REVISION, 1, "dispatch", False, KNOWN)
    with pytest.raises(StoreProfileMismatch, match="synchronous_commit = off now"):
        unsafe.run(doing(Step("gate", parameters)))
    unsafe.close()


def test_a_capability_that_this_release_does_not_know(gate: Gate) -> None:
    refusal = gate.refusal(known=[])
    assert isinstance(refusal, StoreError)
    assert refusal.code == "capability_unknown"
    assert '"shop" has the capability "scheduler"' in refusal.message


def test_an_open_process_notices_that_the_schema_went_away(driver: Driver, url: str) -> None:
    execute(url, "DROP SCHEMA runwick CASCADE")
    for act in (add("new"), doing(Step("names"), reads_only=True)):
        with pytest.raises(StoreNotInstalled, match="no Runwick schema"):
            driver.run(act)


def test_an_open_process_notices_that_the_schema_is_another_releases(driver: Driver, url: str) -> None:
    execute(url, f"DROP TABLE runwick.mark; UPDATE runwick.migration SET number = 1 + number WHERE number = {REVISION}")
    with pytest.raises(StoreRevisionMismatch, match="the store is newer"):
        driver.run(add("new"))
