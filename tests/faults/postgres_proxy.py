"""The proxy before PostgreSQL.

client ─ Parse Bind Execute … Sync ─▶ proxy ─▶ server        one round trip: from the first message up to Sync
       ◀──────── … ReadyForQuery ───       ◀──
"""

import asyncio
import struct
from typing import Any, Final

from tests.faults.proxy import Cut, Fault, Pair, Proxy, Stream

_SSL_REQUEST: Final = 80877103
_GSS_REQUEST: Final = 80877104
_ASKS: Final = frozenset(b"PEQ")
"""Messages that make a round trip count: Parse, Execute, Query."""


class PostgresProxy(Proxy):
    def _pair(self, client: Stream, server: Stream) -> Pair:
        return _PostgresPair(self, client, server)


class _PostgresPair(Pair):
    async def _begin(self) -> None:
        """Encryption is declined; the start-up message goes through."""
        while True:
            size = await self._from_client.readexactly(4)
            body = await self._from_client.readexactly(struct.unpack("!I", size)[0] - 4)
            if struct.unpack("!I", body[:4])[0] in (_SSL_REQUEST, _GSS_REQUEST):
                self._to_client.write(b"N")
                continue
            self._to_server.write(size + body)
            return

    async def _request(self) -> tuple[bytes, bool]:
        batch, asks = b"", False
        while True:
            message = await _message(self._from_client)
            batch += message
            asks = asks or message[0] in _ASKS
            if message[:1] in (b"S", b"Q", b"p", b"X", b"H"):
                return batch, asks

    async def _reply(self) -> tuple[bytes, bool]:
        message = await _message(self._from_server)
        return message, message[:1] == b"Z"

    def _error(self, fault: Fault) -> bytes:
        severity = b"FATAL" if fault.cut is Cut.FATAL else b"ERROR"
        fields: Any = [(b"S", severity), (b"V", severity), (b"C", fault.code.encode()), (b"M", b"injected")]
        body = b"".join(name + text + b"\0" for name, text in fields) + b"\0"
        ready = b"Z" + struct.pack("!I", 5) + b"I" if fault.cut is Cut.ERROR else b""
        return b"E" + struct.pack("!I", 4 + len(body)) + body + ready


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
