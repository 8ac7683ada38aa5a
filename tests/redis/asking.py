"""Plain commands for tests, beside the store."""

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


def execute(url: str, *command: str | bytes | float) -> Any:
    """Execute one command; answers what the client makes of the reply, with strings as bytes."""
    with redis.Redis.from_url(url.removeprefix("redis+"), retry=Retry(NoBackoff(), 0)) as client:
        return client.execute_command(*command)


def contents(url: str) -> dict[bytes, bytes | None]:
    """All that is in the database, as a dump of each key."""
    return {key: execute(url, "DUMP", key) for key in sorted(execute(url, "KEYS", "*"))}


@contextlib.contextmanager
def writes_paused(url: str) -> Iterator[None]:
    """The server answers nobody who writes, until this ends."""
    execute(url, "CLIENT", "PAUSE", 60_000, "WRITE")
    try:
        yield
    finally:
        execute(url, "CLIENT", "UNPAUSE")


@contextlib.contextmanager
def visitor(url: str, *rules: str) -> Iterator[str]:
    """The same URL for a user who may do no more than these rules say, while this lasts."""
    execute(url, "ACL", "SETUSER", "visitor", "on", ">visitor", "~*", "&*", *rules)
    try:
        parts = urlsplit(url)
        yield urlunsplit(parts._replace(netloc=f"visitor:visitor@{parts.hostname}:{parts.port}"))
    finally:
        execute(url, "ACL", "DELUSER", "visitor")
