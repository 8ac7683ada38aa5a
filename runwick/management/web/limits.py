"""How much callers may ask for, and how much this process does at once. Each process counts by itself."""

import asyncio
import contextlib
import datetime
import math
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from runwick.contracts.ambient import Clock
from runwick.management.web.counting import RollingCounts
from runwick.management.web.principals import Principal
from runwick.management.web.refusals import Refusal
from runwick.management.web.routes import Kind

_MINUTE_S: Final = 60
_MOST: Final = 1_000_000
_WAIT_MAX: Final = datetime.timedelta(minutes=1)


class ManagementLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits; a process of many keeps its own counts.

    Raises:
        ValueError: one is no whole number from 1 (waiting requests: from 0), or the wait is not within a minute.
    """

    reads_per_minute: int = 120
    """Of one caller; so for the next two."""
    changes_per_minute: int = 30
    reveals_per_minute: int = 10
    active_requests: int = 16
    """Of all callers together, at once; nobody counts while his body is still on its way."""
    waiting_requests: int = 32
    """Beyond those."""
    wait: datetime.timedelta = datetime.timedelta(seconds=1)
    """How long a waiting one waits."""

    def __post_init__(self) -> None:
        for name in ("reads_per_minute", "changes_per_minute", "reveals_per_minute", "active_requests"):
            _check(name, getattr(self, name), 1)
        _check("waiting_requests", self.waiting_requests, 0)
        if not datetime.timedelta(0) < self.wait <= _WAIT_MAX:
            raise ValueError(f"wait is {self.wait}; give more than 0 and at most {_WAIT_MAX}")


class CallerLimits:
    """Counts what each caller asks for.

    Args:
        limits: how much is too much.
        clock: its steady seconds count.
    """

    def __init__(self, limits: ManagementLimits, clock: Clock) -> None:
        self._counts = {
            Kind.READ: RollingCounts(limits.reads_per_minute, _MINUTE_S, clock),
            Kind.CHANGE: RollingCounts(limits.changes_per_minute, _MINUTE_S, clock),
            Kind.REVEAL: RollingCounts(limits.reveals_per_minute, _MINUTE_S, clock),
        }

    def charge(self, principal: Principal, kind: Kind) -> None:
        """Count one request.

        Raises:
            Refusal: it is one too many (429, code ``rate_limited``).
        """
        if (wait_s := self._counts[kind].take(principal.key)) is not None:
            raise rate_limited(f"too many {kind}s within a minute", wait_s)


class Gate:
    """Lets so many in at once, and so many more wait for a moment.

    Args:
        limits: how many, and how long a moment is.
    """

    def __init__(self, limits: ManagementLimits) -> None:
        self._inside = asyncio.Semaphore(limits.active_requests)
        self._waiting_max = limits.waiting_requests
        self._wait_s = limits.wait.total_seconds()
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def pass_through(self) -> AsyncIterator[None]:
        """Hold a place for the block.

        Raises:
            Refusal: none came free in time, or too many wait already (503, code ``busy``).
        """
        await self._enter()
        try:
            yield
        finally:
            self._inside.release()

    async def _enter(self) -> None:
        if self._inside.locked() and self._waiting >= self._waiting_max:
            raise _busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._inside.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1


def rate_limited(message: str, wait_s: float) -> Refusal:
    """Too often; good again after so many seconds."""
    return Refusal(429, "rate_limited", message, headers={"Retry-After": str(max(1, math.ceil(wait_s)))})


def _busy() -> Refusal:
    return Refusal(503, "busy", "this process serves as many requests as it may", headers={"Retry-After": "1"})


def _check(name: str, number: object, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= _MOST:
        raise ValueError(f"{name} is {number!r}; give a whole number from {least} to {_MOST:,}")
