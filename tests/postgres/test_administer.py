"""What is PostgreSQL's own about administration: the strict change of modes, revisions, roles and lost connections."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from runwick.contracts.administration import Admission, Capability
from runwick.contracts.errors import (
    MigrationError,
    OutcomeUnknown,
    StoreError,
    StoreNotInstalled,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.runtime.ambient import SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.administer import PostgresAdministration
from runwick.stores.postgres.revision import REVISION
from scripts.servers.postgres import PostgresServer
from tests.faults.postgres_proxy import PostgresProxy
from tests.faults.proxy import Cut, Fault
from tests.postgres.asking import PATIENCE_S, asks_for_lock, end_operators, eventually, execute

ACT = "SELECT FROM runwick.store JOIN runwick.application ON true"
"""What the gate keeps locked."""
CHANGES: list[Callable[[PostgresAdministration], object]] = [
    lambda store: store.set_admission(Admission.DRAIN, "shop"),
    lambda store: store.activate(Capability.SCHEDULER, "shop", "ada"),
    lambda store: store.reidentify(),
]


def administration(url: str, lock_patience_s: float = 30.0) -> PostgresAdministration:
    return PostgresAdministration(address_of(url), SystemIds(), lock_patience_s=lock_patience_s)


@pytest.fixture
def url(database: str) -> str:
    """A store with one application."""
    execute(database, "INSERT INTO runwick.application (name, capabilities) VALUES ('shop', '{}')")
    return database


@pytest.fixture
def act(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that was let in and has not ended."""
    with psycopg.connect(url) as connection:
        connection.execute(ACT)
        yield connection


def test_an_act_that_does_not_end_keeps_mode_and_identity(url: str, act: psycopg.Connection[Any]) -> None:
    before = administration(url).status()
    for change in (CHANGES[0], CHANGES[2]):
        with pytest.raises(MigrationError, match="open for more than 50 ms; nothing was changed") as refused:
            change(administration(url, lock_patience_s=0.05))
        assert refused.value.code == "migration_lock_timeout"
    assert administration(url).status() == before


def test_a_mode_changes_when_the_acts_before_it_have_ended(url: str, act: psycopg.Connection[Any]) -> None:
    done: list[object] = []
    operator = threading.Thread(target=lambda: done.append(administration(url).set_admission(Admission.DRAIN, None)))
    operator.start()
    eventually(lambda: asks_for_lock(url, "AccessExclusiveLock"), "the operator waits")
    assert not done
    act.commit()
    operator.join(PATIENCE_S)
    assert len(done) == 1
    assert administration(url).status().applications[0].admission is Admission.DRAIN


def test_a_capability_comes_although_an_act_is_under_way(url: str, act: psycopg.Connection[Any]) -> None:
    assert administration(url).activate(Capability.SCHEDULER, "shop", "ada")


def test_a_capability_is_turned_on_once_with_one_audit_row(url: str) -> None:
    answers: list[bool] = []

    def activate() -> None:
        answers.append(administration(url).activate(Capability.SCHEDULER, "shop", "ada"))

    operators = [threading.Thread(target=activate) for _ in range(4)]
    for operator in operators:
        operator.start()
    for operator in operators:
        operator.join(PATIENCE_S)
    assert sorted(answers) == [False, False, False, True]
    assert administration(url).activate(Capability.RATE_ADMISSION, "shop", "bob")
    assert administration(url).status().applications[0].capabilities == ["rate_admission", "scheduler"]
    assert execute(url, "SELECT actor, action, before, after FROM runwick.audit ORDER BY position") == [
        ("ada", "activate_capability", "[]", '["scheduler"]'),
        ("bob", "activate_capability", '["scheduler"]', '["rate_admission","scheduler"]'),
    ]


def test_a_store_of_another_revision_is_shown_and_not_changed(url: str) -> None:
    store_id = administration(url).status().store_id
    execute(url, f"INSERT INTO runwick.migration VALUES ({REVISION + 1}, 'next', '', 0)")
    status = administration(url).status()
    assert (status.store_id, status.revision, status.revision_expected) == (store_id, REVISION + 1, REVISION)
    assert status.applications == []
    for change in CHANGES:
        with pytest.raises(StoreRevisionMismatch, match="the store is newer"):
            change(administration(url))


@pytest.mark.parametrize("statement", ["CREATE SCHEMA other", "CREATE SCHEMA runwick", "DELETE FROM runwick.migration"])
def test_a_database_without_a_store(empty_database: str, url: str, statement: str) -> None:
    place = url if "migration" in statement else empty_database
    execute(place, statement)
    for ask in (lambda store: store.status(), *CHANGES):
        with pytest.raises(StoreNotInstalled):
            ask(administration(place))


def test_a_role_that_does_not_own_the_schema(postgres: PostgresServer, url: str) -> None:
    execute(url, "CREATE ROLE visitor LOGIN PASSWORD 'visitor'")
    try:
        visiting = administration(postgres.url(url.rpartition("/")[2], "visitor", "visitor"))
        for ask in (lambda store: store.status(), *CHANGES):
            with pytest.raises(StoreUnavailable, match="use the role that migrates"):
                ask(visiting)
    finally:
        execute(url, "DROP ROLE visitor")


def test_a_connection_that_is_lost_leaves_the_outcome_unknown(url: str, act: psycopg.Connection[Any]) -> None:
    raised: list[StoreError | OutcomeUnknown] = []

    def drain() -> None:
        try:
            administration(url).set_admission(Admission.DRAIN, None)
        except (StoreError, OutcomeUnknown) as error:
            raised.append(error)

    operator = threading.Thread(target=drain)
    operator.start()
    eventually(lambda: asks_for_lock(url, "AccessExclusiveLock"), "the operator waits")
    end_operators(url)
    operator.join(PATIENCE_S)
    assert [error.code for error in raised] == ["outcome_unknown"]


def test_what_is_shown_of_it_has_no_secrets(url: str) -> None:
    store = administration(url)
    assert store.description == f"postgres {address_of(url).shown}"
    assert "@" not in store.description


def test_an_operator_does_not_wait_for_a_server_that_says_nothing(url: str, postgres: PostgresServer) -> None:
    with PostgresProxy(postgres.port) as proxy:
        behind = url.replace(f":{postgres.port}/", f":{proxy.port}/")
        store = PostgresAdministration(address_of(behind), SystemIds(), answer_s=0.2)
        proxy.arm(Fault(Cut.SILENCE, nth=2))
        with pytest.raises(StoreUnavailable, match="broke the connection"):
            store.status()
        assert proxy.disarm()
        assert store.status().revision == REVISION
