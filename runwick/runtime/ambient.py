"""The system's clock, dice and ids; the protocols are in `runwick.contracts.ambient`."""

import os
import random
import time


class SystemClock:
    """The host's clocks. CLOCK_BOOTTIME counts through suspension, which a lease must (Linux; elsewhere monotonic)."""

    _steady_id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_s(self) -> float:
        return time.clock_gettime(self._steady_id)


class SystemDice:
    """The operating system's randomness: a forked child never repeats its parent's throws."""

    _random = random.SystemRandom()

    def fraction(self) -> float:
        return self._random.random()


class SystemIds:
    """UUIDv7 by RFC 9562 with sub-millisecond order (method 3), and random secrets, all from ``os.urandom``.

    48 bits of milliseconds, 12 bits of the fraction, 62 random bits. Within one process ids never go back, also
    when the clock does: the last tick is kept and counted up. A fork cannot repeat an id, because the random bits
    are drawn from the operating system for each.
    """

    def __init__(self) -> None:
        self._last_tick = 0

    def ordered(self) -> bytes:
        nanoseconds = time.time_ns()
        milliseconds, rest = divmod(nanoseconds, 1_000_000)
        tick = (milliseconds << 12) | (rest * 4096 // 1_000_000)
        if tick <= self._last_tick:
            tick = self._last_tick + 1
        self._last_tick = tick
        high = ((tick >> 12) << 16) | 0x7000 | (tick & 0xFFF)
        low = (int.from_bytes(os.urandom(8)) & 0x3FFFFFFFFFFFFFFF) | 0x8000000000000000
        return (high << 64 | low).to_bytes(16)

    def secret(self) -> bytes:
        return os.urandom(16)
