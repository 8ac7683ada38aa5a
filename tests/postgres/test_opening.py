"""What is examined before a connection is used, and that a store which went back in time is used no more."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from runwick.contracts.errors import (
    StoreError,
    StoreHistoryBroken,
    StoreNotInstalled,
    StoreProfileMismatch,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.contracts.identity import id_text
from runwick.runtime import crossings
from runwick.runtime.ambient import SystemIds
from runwick.stores.postgres.driver import Driver
from runwick.stores.postgres.revision import REVISION
from runwick.stores.steps import Step
from scripts.servers.postgres import PostgresServer
from tests.ambient import FakeClock
from tests.postgres.asking import eventually, execute
from tests.postgres.places import a_driver, a_store_on, add, doing, end_sessions, marked, names, sessions
from tests.servers import fresh_database

HOUR_MS = 3_600_000


def refusal(driver: Driver) -> StoreError:
    with pytest.raises(StoreError) as refused:
        driver.check()
    return refused.value


def set_for_database(url: str, setting: str, value: str) -> None:
    execute(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET {setting} = '{value}'")


@pytest.fixture
def driver(database: str) -> Iterator[Driver]:
    driver = a_driver(marked(database))
    yield driver
    driver.close()


def test_a_store_in_order_opens_without_a_note(driver: Driver, database: str) -> None:
    assert driver.store_id is None
    assert driver.check() == ()
    ((store_id,),) = execute(database, "SELECT id FROM runwick.store")
    assert driver.store_id == store_id.bytes
    assert driver.profile == "postgres.synchronous-commit"


def test_a_database_without_a_store(empty_database: str) -> None:
    refused = refusal(a_driver(empty_database))
    assert isinstance(refused, StoreNotInstalled)
    assert refused.code == "store_not_installed"
    assert "runwick migrate" in refused.message


@pytest.mark.parametrize(
    ("change", "word"),
    [("UPDATE runwick.migration SET number = 1 + number", "newer"), ("DELETE FROM runwick.migration", "older")],
)
def test_a_store_of_another_release(driver: Driver, database: str, change: str, word: str) -> None:
    execute(database, f"{change} WHERE number = {REVISION}")
    refused = refusal(driver)
    assert isinstance(refused, StoreRevisionMismatch)
    assert f"the store is {word}" in refused.message


def test_a_database_in_another_encoding(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    refused = refusal(a_driver(postgres.url("latin")))
    postgres.drop_database("latin")
    assert refused.code == "encoding_unsupported"


def test_sessions_that_are_read_only(driver: Driver, database: str) -> None:
    set_for_database(database, "default_transaction_read_only", "on")
    assert isinstance(refusal(driver), StoreProfileMismatch)


def test_a_role_without_rights_is_told_which_it_needs(database: str, postgres: PostgresServer) -> None:
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'welcome'")
    driver = a_driver(postgres.url(database.rpartition("/")[2], "guest", "welcome"))
    refused = refusal(driver)
    postgres.execute("DROP ROLE guest")
    assert isinstance(refused, StoreUnavailable)
    assert "grants.sql" in refused.message


def test_unsafe_durability_is_refused(driver: Driver, database: str) -> None:
    set_for_database(database, "synchronous_commit", "off")
    refused = refusal(driver)
    assert isinstance(refused, StoreProfileMismatch)
    assert "synchronous_commit = off" in refused.message


def test_unsafe_durability_that_the_operator_accepts_is_noted_and_in_every_receipt(database: str) -> None:
    set_for_database(database, "synchronous_commit", "off")
    driver = a_driver(database, unsafe=True)
    (note,) = driver.check()
    assert "synchronous_commit = off: confirmed jobs can be lost" in note
    assert driver.profile == "postgres.unsafe"
    set_for_database(database, "synchronous_commit", "on")
    driver.close()
    assert driver.check() == ()
    assert driver.profile == "postgres.synchronous-commit"
    driver.close()


def test_pages_that_a_power_failure_can_tear_are_noted(driver: Driver, postgres: PostgresServer) -> None:
    def set_to(value: str) -> None:
        postgres.execute(f"ALTER SYSTEM SET full_page_writes = {value}")
        postgres.execute("SELECT pg_reload_conf()")
        eventually(lambda: postgres.execute("SHOW full_page_writes") == [(value,)], "the server takes its settings")

    set_to("off")
    try:
        (note,) = driver.check()
    finally:
        set_to("on")
    assert "full_page_writes = off" in note
    assert driver.check() == ()


def test_what_a_role_or_database_sets_does_not_reach_a_session_but_durability(driver: Driver, database: str) -> None:
    for name, value in {
        "statement_timeout": "1ms",
        "lock_timeout": "1ms",
        "search_path": "public",
        "default_transaction_isolation": "serializable",
        "timezone": "Asia/Tokyo",
        "bytea_output": "escape",
    }.items():
        set_for_database(database, name, value)

    def setting(name: str) -> str:
        ((value,),) = driver.run(doing(Step("setting", (name,)), reads_only=True))
        return str(value)

    assert setting("statement_timeout") == "18s"
    assert setting("lock_timeout") == "0"
    assert setting("search_path") == "runwick,pg_temp"
    assert setting("transaction_isolation") == "read committed"
    assert setting("timezone") == "UTC"
    assert setting("plan_cache_mode") == "force_generic_plan"
    assert setting("synchronous_commit") == "on"


def test_the_stores_time_is_this_processs_corrected(database: str) -> None:
    clock = FakeClock()
    driver = a_driver(database, clock=clock)
    assert driver.now_ms() == clock.now_ms()
    ahead = f"SELECT {clock.now_ms() + HOUR_MS}"
    execute(database, f"CREATE OR REPLACE FUNCTION runwick.now_ms() RETURNS bigint LANGUAGE sql AS '{ahead}'")
    driver.check()
    clock.advance_ms(5)
    assert driver.now_ms() == clock.now_ms() + HOUR_MS
    driver.close()


def test_every_opening_is_announced_and_a_failing_one_leaves_no_session(driver: Driver, database: str) -> None:
    opened = []
    remove = crossings.on("postgres.opened", lambda: opened.append(1))
    driver.check()
    remove()
    assert len(opened) == 2  # the opening, and the check itself
    driver.close()
    execute(database, f"UPDATE runwick.migration SET number = 1 + number WHERE number = {REVISION}")
    refusal(driver)
    eventually(lambda: not sessions(database), "the refused session ends")


def test_another_store_in_its_place(driver: Driver, database: str) -> None:
    driver.run(add("here"))
    known = driver.store_id
    other = SystemIds().ordered()
    execute(database, f"UPDATE runwick.store SET id = '{id_text(other)}'")
    end_sessions(database)
    with pytest.raises(StoreHistoryBroken) as refused:
        driver.run(add("there"))
    assert refused.value.code == "store_identity_mismatch"
    assert driver.store_id == known
    assert execute(database, "SELECT name FROM runwick.mark") == [("here",)]


def test_the_same_store_read_back_from_a_copy(postgres: PostgresServer) -> None:
    """A copy has the identity of its original; its tables were made anew."""
    url = marked(fresh_database(postgres))
    name = url.rpartition("/")[2]
    driver = a_driver(url)
    driver.run(names())
    driver.close()
    postgres.create_database(f"{name}_copy", name)
    postgres.drop_database(name)
    postgres.create_database(name, f"{name}_copy")
    for _ in range(2):
        with pytest.raises(StoreHistoryBroken, match="its tables were made anew") as refused:
            driver.run(names())
        assert refused.value.code == "store_history_broken"
        driver.close()  # closing does not mend it, a new process would
    anew = a_driver(url)
    assert anew.check() == ()
    anew.close()
    postgres.drop_database(name)
    postgres.drop_database(f"{name}_copy")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        a_store_on(server)
        yield server


def test_a_server_that_was_put_back_to_an_earlier_state(server: PostgresServer, tmp_path: Path) -> None:
    driver = a_driver(server.url("shop"))
    driver.run(add("before"))
    data, saved = server.folder / "data", server.folder / "saved"
    server.stop()
    shutil.copytree(data, saved, symlinks=True, copy_function=shutil.copy2)
    server.start()
    driver.run(add("after"))
    end_sessions(server.url("shop"))
    driver.run(names())
    server.stop()
    owner = data.stat()
    shutil.rmtree(data)
    saved.rename(data)
    for path in (data, *data.rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)
    server.start()
    with pytest.raises(StoreHistoryBroken, match=r"went back in time \(its log stands [\d,]+ bytes before"):
        driver.run(names())
    assert execute(server.url("shop"), "SELECT name FROM runwick.mark") == [("before",)]
    driver.close()


def test_a_replica_is_refused_and_its_promotion_is_another_history(server: PostgresServer) -> None:
    url = server.url("shop")
    driver = a_driver(url)
    driver.run(add("before"))
    server.stop()
    (server.folder / "data" / "standby.signal").touch()
    server.start()
    with pytest.raises(StoreProfileMismatch, match="is a replica"):
        driver.run(names())
    execute(url, "SELECT pg_promote()")
    with pytest.raises(StoreHistoryBroken, match="its server is on timeline 2, it was on 1"):
        driver.run(names())
    driver.close()


def test_a_server_that_was_killed_goes_on_where_it_was(server: PostgresServer) -> None:
    driver = a_driver(server.url("shop"), limit_ms=5_000)
    for number in range(3):
        driver.run(add(f"{number}"))
        server.kill()
        with pytest.raises(StoreUnavailable):
            driver.run(names())
        server.start()
        assert driver.run(names()) == {f"{number}" for number in range(number + 1)}
    driver.close()
