"""This release's functions with some of tests beside them; and those that count anew all that acts derive from jobs."""

import functools
from pathlib import Path
from typing import Any, Final

import msgspec

from runwick.stores.redis.library import Library, assembled, library
from runwick.stores.redis.packed import arguments
from scripts.servers.redis import RedisServer

_RECOUNT: Final = Path(__file__).with_suffix(".lua")


def extended(*files: Path) -> Library:
    """This release's functions, and what these files make of them: they see all that its own files see."""
    _, _, content = library().text.split("\n", 2)
    return Library(assembled([content], [path.read_text(encoding="utf-8") for path in files]))


def asked(server: RedisServer, functions: Library, name: str, *values: Any, database: int = 0) -> Any:
    """What an operator's function of theirs answers, unpacked; the server is given them if it does not have them."""
    server.execute("FUNCTION", "LOAD", "REPLACE", functions.text)
    answer = server.execute("FCALL", functions.function(name), 0, arguments(*values), database=database)
    return msgspec.msgpack.decode(answer)


@functools.cache
def _recounting() -> Library:
    return extended(_RECOUNT)


def recounted(server: RedisServer, application: str, database: int = 0) -> list[str]:
    """Where what the store has written down of its jobs differs from the jobs; nowhere, if all is well.

    Args:
        server: at rest, or not: it is one moment.
        application: whose jobs.
        database: where the store is.
    """
    differences: list[str] = asked(server, _recounting(), "recount", application, database=database)
    return differences
