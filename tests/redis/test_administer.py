"""What is Redis's own about administration: one function for each change, revisions, users and lost answers."""

import os
import signal
import threading
from collections.abc import Callable

import msgspec
import pytest

from runwick.contracts.administration import Admission, Capability
from runwick.contracts.errors import (
    InvalidArgument,
    OutcomeUnknown,
    StoreNotInstalled,
    StoreRevisionMismatch,
    StoreUnavailable,
)
from runwick.runtime.ambient import SystemIds
from runwick.stores.redis.address import address_of
from runwick.stores.redis.administer import RedisAdministration
from runwick.stores.redis.library import library
from runwick.stores.redis.migrate import migrate
from runwick.stores.redis.operating import ANSWER_S
from runwick.stores.redis.revision import REVISION
from scripts.servers.redis import RedisServer
from tests.postgres.asking import PATIENCE_S
from tests.redis.asking import contents, execute, visitor, writes_paused

CHANGES: list[Callable[[RedisAdministration], object]] = [
    lambda store: store.set_admission(Admission.DRAIN, "shop"),
    lambda store: store.activate(Capability.SCHEDULER, "shop", "ada"),
    lambda store: store.reidentify(),
]


def administration(url: str, answer_s: float = ANSWER_S) -> RedisAdministration:
    return RedisAdministration(address_of(url), SystemIds(), library(), answer_s=answer_s)


def add(url: str, name: str, number: int) -> None:
    """An application that has come, and can do nothing special."""
    execute(url, "HSET", "rw:applications", name, number)
    record = ("number", number, "writes", 4, "at", 0, "jobs", 0, "admission", "open", "capabilities", "")
    execute(url, "HSET", f"rw:{{{name}}}:meta", *record)


@pytest.fixture
def url(empty_redis: str) -> str:
    """A store with one application."""
    add(empty_redis, "shop", 1)
    return empty_redis


def test_applications_come_by_name(url: str) -> None:
    for number, name in enumerate(("office", "Yard", "über"), 2):
        add(url, name, number)
    statuses = administration(url).status().applications
    assert [status.name for status in statuses] == ["Yard", "office", "shop", "über"]


def test_of_applications_that_may_not_all_go_none_goes(url: str) -> None:
    add(url, "yard", 2)
    administration(url).set_admission(Admission.DRAIN, "shop")
    before = contents(url)
    with pytest.raises(InvalidArgument, match='"yard" is in open'):
        administration(url).set_admission(Admission.MAINTENANCE, None)
    assert contents(url) == before


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
    entries = execute(url, "XRANGE", "rw:{shop}:audit", "-", "+")
    assert [entry[0] for entry in entries] == [b"5-1", b"6-1"], "each is a write of the application's"
    rows = [msgspec.msgpack.decode(entry[1][b"a"]) for entry in entries]
    assert [(subject, action, before, after) for _, subject, _, _, action, _, _, before, after, *_ in rows] == [
        ("ada", "activate_capability", "[]", '["scheduler"]'),
        ("bob", "activate_capability", '["scheduler"]', '["rate_admission","scheduler"]'),
    ]
    assert execute(url, "HGET", "rw:{shop}:meta", "writes") == b"6"


def test_a_capability_of_a_newer_release_is_kept_and_shown(url: str) -> None:
    execute(url, "HSET", "rw:{shop}:meta", "capabilities", "teleport")
    administration(url).activate(Capability.SCHEDULER, "shop", "ada")
    assert administration(url).status().applications[0].capabilities == ["scheduler", "teleport"]


def test_a_store_of_another_revision_is_shown_and_not_changed(url: str) -> None:
    store_id = administration(url).status().store_id
    execute(url, "HSET", "rw:store", "revision", REVISION + 1)
    status = administration(url).status()
    assert (status.store_id, status.revision, status.revision_expected) == (store_id, REVISION + 1, REVISION)
    assert list(status.applications) == []
    before = contents(url)
    for change in CHANGES:
        with pytest.raises(StoreRevisionMismatch, match="the store is newer"):
            change(administration(url))
    assert contents(url) == before


@pytest.mark.parametrize("damage", [None, ("SET", "rw:store", "something else"), ("HSET", "rw:store", "revision", 1)])
def test_a_database_without_a_store(bare_redis: str, damage: tuple[str, ...] | None) -> None:
    if damage:
        execute(bare_redis, *damage)
    for ask in (lambda store: store.status(), *CHANGES):
        with pytest.raises(StoreNotInstalled):
            ask(administration(bare_redis))


def test_a_user_who_may_not_call_what_writes(url: str) -> None:
    with visitor(url, "+@all", "-fcall") as visiting:
        for change in CHANGES:
            with pytest.raises(StoreUnavailable, match="is not allowed to this user"):
                change(administration(visiting))


def test_an_answer_that_does_not_come_leaves_the_outcome_unknown(url: str) -> None:
    with writes_paused(url):
        for change in CHANGES:
            with pytest.raises(OutcomeUnknown, match="look at `runwick store status`"):
                change(administration(url, answer_s=0.2))
        assert administration(url).status().revision == REVISION, "who only reads is answered"


def test_a_server_that_says_nothing() -> None:
    with RedisServer() as server:
        migrate(address_of(server.url()), SystemIds(), library())
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(StoreUnavailable):
            administration(server.url(), answer_s=0.2).status()
        os.kill(server.pid, signal.SIGCONT)
        assert administration(server.url()).status().revision == REVISION


def test_functions_that_vanished_are_given_again(url: str) -> None:
    execute(url, "FUNCTION", "FLUSH")
    assert administration(url).set_admission(Admission.DRAIN, None)
    execute(url, "FUNCTION", "FLUSH")
    assert administration(url).status().applications[0].admission is Admission.DRAIN


def test_a_store_whose_memory_is_full_can_be_drained(url: str) -> None:
    administration(url).status()
    before = execute(url, "CONFIG", "GET", "maxmemory")[b"maxmemory"]
    execute(url, "CONFIG", "SET", "maxmemory", 1)
    try:
        assert administration(url).set_admission(Admission.DRAIN, None)
        with pytest.raises(StoreUnavailable, match="memory is full"):
            administration(url).activate(Capability.SCHEDULER, "shop", "ada")
    finally:
        execute(url, "CONFIG", "SET", "maxmemory", before)


def test_what_is_shown_of_it_has_no_secrets(url: str) -> None:
    store = administration(url)
    assert store.description == f"redis {address_of(url).shown}"
    assert "@" not in store.description
