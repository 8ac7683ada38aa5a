"""One connection to the server: one command, one answer, and it knows whether it can be trusted.

redis-py repeats nothing here, neither a command nor the opening: whether something may be sent again is for whoever
knows what it does. A connection whose answer did not come, or that was interrupted while it waited, is used no more.
"""

import contextlib
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

import redis.exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from runwick.stores.quiet import quiet
from runwick.stores.redis.address import Address

Value = bytes | str | int


class Connection:
    """Used by one thread at a time, in the process that opened it.

    Args:
        address: of the server.
        purpose: what the server shows of it, without spaces.
        limit_s: how long opening it, and each of its commands, may take.

    Raises:
        redis.exceptions.RedisError: it could not be opened.
    """

    def __init__(self, address: Address, purpose: str, limit_s: float) -> None:
        self._process: Final = os.getpid()
        self._is_waiting = False
        self._redis: Any = address.connecting(
            **address.parameters,
            client_name=purpose,
            driver_info=None,
            protocol=3,
            legacy_responses=False,
            decode_responses=False,
            socket_timeout=limit_s,
            socket_connect_timeout=limit_s,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
        )
        with quiet.opening():
            self._redis.connect()

    def ask(self, *command: Value) -> Any:
        """Send a command; answers what the server does.

        Raises:
            redis.exceptions.RedisError: `faults.code_of` says whether it is the server's own answer.
        """
        if os.getpid() != self._process:
            raise redis.exceptions.ConnectionError("a fork inside of a call: the connection belongs to the parent")
        if not self._redis.is_connected:  # redis-py would open it again, unexamined
            raise redis.exceptions.ConnectionError("the connection is closed")
        self._is_waiting = True
        self._redis.send_packed_command(_packed(command))
        try:
            answer = self._redis.read_response()
        except redis.exceptions.ResponseError:
            self._is_waiting = False
            raise
        self._is_waiting = False
        return answer

    def hear(self, silence_s: float) -> Sequence[Any] | None:
        """Wait for what the server says unasked, to what this connection has subscribed to; None after so long a
        silence."""
        try:
            said: Sequence[Any] = self._redis.read_response(
                timeout=silence_s, disconnect_on_error=False, push_request=True
            )
        except redis.exceptions.TimeoutError:
            return None
        return said

    def subscribe(self, *channels: str) -> None:
        """Hear what is published there from now on."""
        self._redis.send_command("SUBSCRIBE", *channels)
        for _ in channels:
            self._redis.read_response(push_request=True)

    @property
    def is_sound(self) -> bool:
        """Whether it is open and waits for the next command: whatever was sent has been answered in full."""
        return self._redis.is_connected and not self._is_waiting and os.getpid() == self._process

    @property
    def is_dead(self) -> bool:
        """Whether it is of no use any more. A server says nothing unasked but good-bye."""
        try:
            return not self._redis.is_connected or self._redis.can_read(0)
        except (redis.exceptions.RedisError, OSError):
            return True

    def hang_up(self) -> None:
        """Tell who waits on it, on another thread, that there is nothing more to hear; that one closes it. To close it
        under somebody could give its descriptor to another socket while it is read."""
        if (connected := self._redis._get_socket()) is not None:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it, for good. Closing it twice is harmless."""
        self._redis.disconnect()


def _packed(command: Sequence[Value]) -> list[bytes]:
    """As it travels. redis-py would do the same for more time than the rest of a small act takes."""
    parts = [b"*%d\r\n" % len(command)]
    for value in command:
        sent = value if isinstance(value, bytes) else str(value).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(sent), sent))
    return [b"".join(parts)]
