"""A server that could lose what it confirms is refused at the start, and takes no new work when it becomes one."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from runwick.contracts.errors import StoreProfileMismatch, StoreUnavailable
from runwick.runtime import place
from runwick.stores.redis.driver import Driver
from runwick.stores.redis.profile import NEW_WORK, SETTINGS, examine
from scripts.servers.kept import free_port
from scripts.servers.redis import RedisServer
from tests.postgres.asking import eventually
from tests.redis.asking import execute, visitor
from tests.redis.places import a_driver, add, clients, end_clients, names
from tests.sqlite.processes import Child, Peer

OTHER = {
    "appendonly": "no",
    "appendfsync": "everysec",
    "no-appendfsync-on-rewrite": "yes",
    "maxmemory-policy": "allkeys-lru",
    "aof-load-truncated": "yes",
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One whose settings and role a test may change."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def url(server: RedisServer) -> Iterator[str]:
    url = server.url(1)
    execute(url, "FLUSHALL")
    execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
    yield url
    for name, value in SETTINGS.items():
        set_to(url, name, value)


@pytest.fixture
def driver(url: str) -> Iterator[Driver]:
    driver = a_driver(url, recheck_s=5)
    yield driver
    driver.close()


def set_to(url: str, name: str, value: str) -> None:
    execute(url, "CONFIG", "SET", name, value)
    eventually(lambda: not persistence(url)["aof_rewrite_in_progress"], "a file that was switched on is written")


def persistence(url: str) -> dict[str, Any]:
    told: dict[str, Any] = execute(url, "INFO", "persistence")
    return told


def refusal(driver: Driver, act: str = "dispatch") -> StoreProfileMismatch:
    with pytest.raises(StoreProfileMismatch) as refused:
        driver.run(add("never", act))
    return refused.value


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_is_refused_at_the_start_with_the_value_that_was_seen(
    driver: Driver, url: str, setting: str
) -> None:
    set_to(url, setting, OTHER[setting])
    for attempt in (driver.check, lambda: driver.run(names()), lambda: driver.run(add("never"))):
        with pytest.raises(StoreProfileMismatch) as refused:
            attempt()
        assert refused.value.code == "store_profile_mismatch"
        assert f"{setting}={OTHER[setting]}" in refused.value.message
        assert f"set {setting} {SETTINGS[setting]}" in refused.value.message
    set_to(url, setting, SETTINGS[setting])
    assert driver.run(add("once it is mended")) == 1


def test_several_settings_are_named_at_once(driver: Driver, url: str) -> None:
    set_to(url, "appendfsync", "everysec")
    set_to(url, "aof-load-truncated", "yes")
    assert "appendfsync=everysec, aof-load-truncated=yes" in refusal(driver).message


def test_a_replica_is_refused(driver: Driver, server: RedisServer) -> None:
    server.execute("REPLICAOF", "127.0.0.1", "1")
    try:
        refused = refusal(driver)
    finally:
        server.execute("REPLICAOF", "NO", "ONE")
    assert refused.code == "topology_unsupported"
    assert "role=slave" in refused.message


def test_a_cluster_is_refused() -> None:
    with RedisServer(settings={"cluster-enabled": "yes", "cluster-port": str(free_port()), "databases": "1"}) as server:
        driver = a_driver(server.url())
        refused = refusal(driver)
        driver.close()
    assert refused.code == "topology_unsupported"
    assert "redis_mode=cluster, cluster_enabled=1" in refused.message


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (("+@all", "-config"), "appendonly unverifiable"),
        (("+@all", "-config|get"), "appendonly unverifiable"),
        (("+@all", "-module"), "MODULE LIST unverifiable"),
        (("+@all", "-info"), "redis_version unverifiable"),
    ],
)
def test_what_the_server_does_not_say_is_refused(url: str, rules: tuple[str, ...], said: str) -> None:
    with visitor(url, *rules) as narrow:
        driver = a_driver(narrow)
        refused = refusal(driver)
        assert refused.code == "store_profile_mismatch"
        assert said in refused.message
        assert "allow INFO, CONFIG GET and MODULE LIST" in refused.message
        driver.close()


def test_a_command_that_was_renamed_away_is_refused() -> None:
    with RedisServer(settings={"rename-command": 'CONFIG ""'}) as server:
        driver = a_driver(server.url())
        assert "appendonly unverifiable" in refusal(driver).message
        driver.close()


class Saying:
    """A server of another kind, which says what it is asked for."""

    def __init__(self, **changes: str) -> None:
        fit = {
            "redis_version": "8.2.3",
            "role": "master",
            "redis_mode": "standalone",
            "cluster_enabled": "0",
            "aof_enabled": "1",
            "aof_last_write_status": "ok",
            "connected_slaves": "0",
        }
        self._info = "# Server\r\n" + "".join(f"{name}:{value}\r\n" for name, value in {**fit, **changes}.items())

    def __call__(self, *command: str) -> Any:
        if command == ("INFO",):
            return self._info.encode()
        if command[0] == "CONFIG":
            return {name.encode(): value.encode() for name, value in SETTINGS.items()}
        loaded = [{b"name": name, b"ver": 1, b"path": b"/modules/" + name} for name in (b"search", b"bloom")]
        return [*loaded, {b"name": b"vectorset", b"ver": 1, b"path": b""}]


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"redis_version": "8.1.9"}, "server_version_unsupported", "is Redis 8.1.9, Runwick needs 8.2 or newer"),
        ({"redis_version": "7.4.0"}, "server_version_unsupported", "upgrade the server"),
        ({"redis_version": "unstable"}, "server_version_unsupported", "is Redis unstable"),
        ({"redis_mode": "sentinel"}, "topology_unsupported", "redis_mode=sentinel"),
        ({"cluster_enabled": "1"}, "topology_unsupported", "cluster_enabled=1"),
        ({"aof_last_write_status": "err"}, "store_profile_mismatch", "aof_last_write_status=err"),
        ({"aof_enabled": "0"}, "store_profile_mismatch", "aof_enabled=0"),
    ],
)
def test_what_no_server_here_can_be_made_to_say(changes: dict[str, str], code: str, said: str) -> None:
    fitness = examine(Saying(**changes), "db:6379/0")
    assert fitness.fault is not None
    assert fitness.fault.code == code
    assert said in fitness.fault.message


@pytest.mark.parametrize("version", ["8.2.0", "8.10.1", "9.0.0"])
def test_newer_servers_are_fit_and_modules_are_told(version: str) -> None:
    fitness = examine(Saying(redis_version=version), "db:6379/0")
    assert fitness.fault is None
    assert fitness.notes == ("db:6379/0 has loaded the modules bloom, search",)


def test_replicas_are_told_and_allowed(driver: Driver, server: RedisServer) -> None:
    with RedisServer() as replica:
        password = server.url().partition(":")[2].partition("@")[0].removeprefix("//:")
        replica.execute("CONFIG", "SET", "masterauth", password)
        replica.execute("REPLICAOF", "127.0.0.1", server.port)
        eventually(lambda: b"connected_slaves:1" in info(server, "replication"), "it follows")
        notes = driver.check()
    assert any("connected replicas (1)" in note for note in notes)
    assert driver.run(add("a")) == 1


def info(server: RedisServer, section: str) -> bytes:
    told = execute(server.url(), "INFO", section)
    return told if isinstance(told, bytes) else "\n".join(f"{name}:{value}" for name, value in told.items()).encode()


def test_a_downgrade_is_seen_in_time_stops_new_work_alone_and_heals(driver: Driver, url: str) -> None:
    driver.run(add("before"))
    set_to(url, "appendfsync", "everysec")
    changed_s = time.monotonic()
    eventually(lambda: has_stopped(driver), "new work is refused")
    assert time.monotonic() - changed_s < 7, "an interval of 5 s, on a machine that may be busy"
    for act in sorted(NEW_WORK):
        assert "appendfsync=everysec" in refusal(driver, act).message
    for act in ("settle", "renew", "release", "cancel", "recover"):
        driver.run(add(act, act))
    found = driver.run(names())
    assert set(found) >= {"before", "settle", "renew", "release", "cancel", "recover"}
    with pytest.raises(StoreProfileMismatch):
        driver.check()
    set_to(url, "appendfsync", "always")
    driver.check()
    assert driver.run(add("after", "dispatch"))


def test_a_file_that_is_switched_on_again_counts_once_it_is_written_whole(driver: Driver, url: str) -> None:
    driver.run(add("before"))
    set_to(url, "appendonly", "no")
    with pytest.raises(StoreProfileMismatch):
        driver.check()
    set_to(url, "rdb-key-save-delay", "300000")
    execute(url, "CONFIG", "SET", "appendonly", "yes")
    with pytest.raises(StoreProfileMismatch, match="aof_rewrite_in_progress=1"):
        driver.check()
    assert "wait until that is done" in refusal(driver).message
    set_to(url, "rdb-key-save-delay", "0")
    driver.check()
    assert driver.run(add("after", "dispatch")) == 2


def has_stopped(driver: Driver) -> bool:
    try:
        driver.run(add("work", "dispatch"))
    except StoreProfileMismatch:
        return True
    return False


def test_a_downgrade_is_seen_at_the_next_connection(url: str) -> None:
    driver = a_driver(url)
    driver.run(add("before"))
    set_to(url, "no-appendfsync-on-rewrite", "yes")
    end_clients(url)
    driver.run(add("it goes on", "settle"))
    assert "no-appendfsync-on-rewrite=yes" in refusal(driver).message
    set_to(url, "no-appendfsync-on-rewrite", "no")
    end_clients(url)
    driver.run(names())
    assert driver.run(add("after", "dispatch")) == 3
    driver.close()


def test_a_server_that_is_away_is_not_unfit(driver: Driver, server: RedisServer) -> None:
    driver.run(add("before"))
    server.stop()
    try:
        with pytest.raises(StoreUnavailable):
            driver._opening.look()
        with pytest.raises(StoreUnavailable):
            driver.run(add("never", "dispatch"))
    finally:
        server.start()
    eventually(lambda: is_served(driver), "it has loaded")
    assert driver.run(add("after", "dispatch")) == 2


def test_the_look_has_a_connection_of_its_own_which_it_does_not_keep(driver: Driver, url: str) -> None:
    driver.run(names())
    assert len(clients(url)) == 1
    assert clients(url, "runwick-profile") == []


def test_a_server_that_is_still_loading_is_unavailable() -> None:
    with RedisServer(settings={"key-load-delay": "5000", "loading-process-events-interval-bytes": "1024"}) as server:
        url = server.url(1)
        execute(url, "HSET", "rw:store", "id", b"\x01\xfe" * 8, "revision", 1)
        driver = a_driver(url)
        driver.run(add("before"))
        for number in range(200):
            server.execute(
                "EVAL", "for i = 1, 20 do redis.call('SET', KEYS[1] .. i, string.rep('x', 200)) end", 1, number
            )
        server.execute("BGREWRITEAOF")
        eventually(lambda: b"aof_rewrite_in_progress:0" in info(server, "persistence"), "it is rewritten")
        server.kill()
        starting = threading.Thread(target=server.start)
        starting.start()
        eventually(lambda: "LOADING" in unavailable(driver), "it says that it loads")
        server.execute("CONFIG", "SET", "key-load-delay", 0)
        starting.join()
        eventually(lambda: is_served(driver), "it has loaded")
        driver.close()


def unavailable(driver: Driver) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        driver.run(add("never"))
    return refused.value.message


def is_served(driver: Driver) -> bool:
    try:
        return driver.run(names()) == ["before"]
    except StoreUnavailable:
        return False


def test_an_answer_that_is_neither_yes_nor_no_is_no_verdict() -> None:
    def busy(*command: str) -> Any:
        raise redis.exceptions.ResponseError("BUSY Redis is busy running a script")

    with pytest.raises(redis.exceptions.ResponseError):
        examine(busy, "db:6379/0")


def test_a_forked_child_keeps_watch_itself(driver: Driver, url: str) -> None:
    def watch(peer: Peer) -> None:
        driver.run(add("child", "dispatch"))
        peer.say("at work")
        eventually(lambda: has_stopped(driver), "the child sees it")
        peer.say("stopped")
        driver.close()

    driver.run(add("parent"))
    with Child(watch) as child:
        assert child.hear() == "at work"
        set_to(url, "appendfsync", "everysec")
        assert child.hear() == "stopped"


def test_an_executor_looks_without_a_thread_when_it_is_time(url: str) -> None:
    def live(peer: Peer) -> None:
        place.enter_executor()
        driver = a_driver(url, recheck_s=5)
        driver.run(add("before", "dispatch"))
        peer.say("at work")
        eventually(lambda: has_stopped(driver), "it sees it")
        peer.say([thread.name for thread in threading.enumerate()])
        driver.close()

    with Child(live) as child:
        assert child.hear() == "at work"
        set_to(url, "appendfsync", "everysec")
        assert child.hear() == ["MainThread"]


def test_closing_ends_the_watch_and_the_next_use_begins_it_anew(driver: Driver, url: str) -> None:
    def watches() -> bool:
        return "runwick-redis-profile" in {thread.name for thread in threading.enumerate()}

    for _ in range(2):
        driver.run(names())
        assert watches()
        driver.close()
        assert not watches()


def test_the_readme_sets_a_server_as_the_store_wants_it() -> None:
    readme = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")
    block = readme.partition("\n## Redis\n")[2].partition("```conf\n")[2].partition("```")[0]
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    assert dict(line.split() for line in lines) == SETTINGS
