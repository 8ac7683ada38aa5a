"""An ACL that forbids one of the commands of the functions is met before the first of them is given."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import runwick.stores.redis
from runwick.contracts.administration import Admission, Capability
from runwick.contracts.errors import StoreUnavailable
from runwick.contracts.outcomes import Answer, Settlement
from runwick.contracts.states import JobState
from scripts.servers.redis import RedisServer
from tests.conformance.ground import APPLICATION, SUCCESS, Bench
from tests.conformance.redis_places import RedisDatabase
from tests.redis.asking import contents, visitor

LUA = Path(runwick.stores.redis.__file__).with_name("lua")
COMMAND = re.compile(r"(?:redis\.call|:run|:put|:list)\('([A-Z]+)'")


@pytest.fixture(scope="module")
def redis_database(redis_server: RedisServer) -> Iterator[RedisDatabase]:
    database = RedisDatabase(redis_server)
    yield database
    database.close()


@pytest.fixture
def bench(redis_database: RedisDatabase) -> Iterator[Bench]:
    bench = redis_database.bench()
    yield bench
    bench.store.close()


def given() -> set[str]:
    """All commands that the functions give."""
    texts = [path.read_text(encoding="utf-8") for path in LUA.rglob("*.lua")]
    return {command for text in texts for command in COMMAND.findall(text)} - {"TYPE"}


def asked_for() -> set[str]:
    return set(re.findall(r"\{ '([A-Z]+)'", (LUA / "permissions.lua").read_text(encoding="utf-8")))


def test_all_commands_of_the_functions_are_asked_for() -> None:
    assert asked_for() == given()


@pytest.mark.parametrize("command", sorted(given()))
def test_a_command_that_is_forbidden_is_named_and_nothing_is_written(
    redis_database: RedisDatabase, bench: Bench, command: str
) -> None:
    before = contents(redis_database.url)
    with visitor(redis_database.url, "+@all", f"-{command}") as narrow:
        store = redis_database.store(narrow)
        with pytest.raises(StoreUnavailable) as refused:
            store.run(store.dispatch([bench.command()]))
        store.close()
    assert refused.value.code == "store_unavailable"
    assert f"{command} on rw:" in refused.value.message or command in {"TIME", "HMGET"}
    assert "nothing was written; mend the URL or the server's ACL" in refused.value.message
    assert contents(redis_database.url) == before


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (("resetkeys", "~test:now_ms", "~rw:store", "~rw:applications", f"~rw:{{{APPLICATION}}}:*"), None),
        (("resetkeys", "~test:now_ms", "~rw:store", f"~rw:{{{APPLICATION}}}:*"), "HGET on rw:applications"),
        (
            ("resetkeys", "~test:now_ms", "~rw:store", "~rw:applications", "~rw:{other}:*"),
            "No permissions to access a key",
        ),
        (
            ("resetkeys", "~test:now_ms", "~rw:store", "~rw:applications", f"%R~rw:{{{APPLICATION}}}:*"),
            "No permissions to access a key",
        ),
        (("resetchannels", "&rw:asked"), "PUBLISH on rw:work"),
        (("resetchannels", "&rw:work"), "PUBLISH on rw:asked"),
    ],
)
def test_keys_and_channels_are_asked_for(
    redis_database: RedisDatabase, bench: Bench, rules: tuple[str, ...], named: str | None
) -> None:
    with visitor(redis_database.url, "+@all", *rules) as narrow:
        store = redis_database.store(narrow)
        if named is None:
            store.run(store.dispatch([bench.command()]))
        else:
            with pytest.raises(StoreUnavailable, match=re.escape(named)):
                store.run(store.dispatch([bench.command()]))
        store.close()


def test_who_may_touch_one_application_alone_ends_what_another_process_has_claimed(
    redis_database: RedisDatabase, bench: Bench
) -> None:
    attempt = bench.claimed()
    rules = ("resetkeys", "~test:now_ms", "~rw:store", "~rw:applications", f"~rw:{{{APPLICATION}}}:*")
    with visitor(redis_database.url, "+@all", *rules) as narrow:
        store = redis_database.store(narrow)
        assert store.run(store.settle([Settlement(attempt, SUCCESS, JobState.SUCCEEDED)])) == [Answer.DONE]
        store.close()


def test_what_is_forbidden_later_is_met_at_the_next_look(redis_database: RedisDatabase, bench: Bench) -> None:
    with visitor(redis_database.url, "+@all") as narrow:
        store = redis_database.store(narrow)
        store.run(store.dispatch([bench.command()]))
        redis_database.client.execute_command("ACL", "SETUSER", "visitor", "-hincrby")
        store.check()
        before = contents(redis_database.url)
        with pytest.raises(StoreUnavailable, match="HINCRBY"):
            store.run(store.dispatch([bench.command()]))
        assert contents(redis_database.url) == before
        store.close()


def test_whoever_only_reads_is_told_what_is_forbidden(redis_database: RedisDatabase, bench: Bench) -> None:
    command = bench.command()
    bench.run(bench.store.dispatch([command]))
    with visitor(redis_database.url, "+@read", "+fcall", "+@connection", "+@admin", "+info", "+time") as narrow:
        store = redis_database.store(narrow)
        assert store.run(store.job(APPLICATION, command.job_id)) is not None
        redis_database.client.execute_command("ACL", "SETUSER", "visitor", "-getrange")
        with pytest.raises(StoreUnavailable, match="getrange"):
            store.run(store.job(APPLICATION, command.job_id))
        store.close()


def test_an_operator_who_may_not_touch_all_applications_changes_none(
    redis_database: RedisDatabase, bench: Bench
) -> None:
    for application in ("another", "shop"):
        bench.run(bench.store.register(application, [], frozenset()))
    bench.take_capabilities()
    before = contents(redis_database.url)
    rules = ("+@all", "resetkeys", "~test:now_ms", "~rw:store", "~rw:applications", "%R~rw:*", "~rw:{another}:*")
    with visitor(redis_database.url, *rules) as narrow:
        administration = redis_database.administration(narrow)
        with pytest.raises(StoreUnavailable, match=r"SET on rw:\{shop\}:claim"):
            administration.set_admission(Admission.DRAIN, None)
        with pytest.raises(StoreUnavailable, match=r"SET on rw:\{shop\}:claim"):
            administration.activate(Capability.SCHEDULER, "shop", "somebody")
        assert contents(redis_database.url) == before
        administration.set_admission(Admission.DRAIN, "another")
        redis_database.client.execute_command("ACL", "SETUSER", "visitor", "-zcount")
        with pytest.raises(StoreUnavailable, match="zcount"):
            administration.status()
