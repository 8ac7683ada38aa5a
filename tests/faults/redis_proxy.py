"""The proxy before Redis.

client ─ FCALL … ─▶ proxy ─▶ server        one round trip: a call of a function, or of any command
       ◀─ reply ──       ◀──
"""

import asyncio
from typing import Final

from tests.faults.proxy import Fault, Pair, Proxy, Stream

_LINE_END: Final = b"\r\n"


class RedisProxy(Proxy):
    """The same for Redis.

    Args:
        upstream_port: of the server.
    """

    def __init__(self, upstream_port: int) -> None:
        super().__init__(upstream_port)
        self.counts_all = False
        """Whether every command counts as a round trip, and not the calls of functions and their loading alone."""

    def _pair(self, client: Stream, server: Stream) -> Pair:
        return _RedisPair(self, client, server)


class _RedisPair(Pair):
    _proxy: RedisProxy

    async def _begin(self) -> None:
        """There is nothing before."""

    async def _request(self) -> tuple[bytes, bool]:
        head = await self._from_client.readuntil(_LINE_END)
        words = [await _bulk(self._from_client) for _ in range(int(head[1:]))]
        name = words[0].splitlines()[1]
        return head + b"".join(words), self._proxy.counts_all or name in (b"FCALL", b"FUNCTION")

    async def _reply(self) -> tuple[bytes, bool]:
        message = await _value(self._from_server)
        return message, message[:1] != b">"

    def _error(self, fault: Fault) -> bytes:
        return f"-{fault.code} injected".encode() + _LINE_END


async def _bulk(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(_LINE_END)
    return head + await reader.readexactly(int(head[1:]) + len(_LINE_END))


async def _value(reader: asyncio.StreamReader) -> bytes:
    """One value with all that is in it."""
    head = await reader.readuntil(_LINE_END)
    kind, rest = head[:1], head[1:].strip()
    if kind in b"$=!" and rest != b"-1":
        return head + await reader.readexactly(int(rest) + len(_LINE_END))
    if kind in b"*~>%" and rest != b"-1":
        count = int(rest) * (2 if kind == b"%" else 1)
        return head + b"".join([await _value(reader) for _ in range(count)])
    return head
