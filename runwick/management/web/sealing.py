"""What goes out to a caller and comes back: sealed, so that he can neither read nor change it, nor use it elsewhere or
too late.

    key of a purpose ─┬─ HMAC-SHA-256 over (what it is bound to, until when, data) ──▶ seal, 16 bytes
                      └─ HMAC-SHA-256 in counter mode from that seal ──────────────▶ data made unreadable

It is hidden as well as signed because a place in a list can name a job that the reader may not see. The seal is at once
the proof and the start of the stream (a synthetic initialisation vector), so equal input gives equal output and no
random number can be used twice.
"""

import base64
import binascii
import hmac
import itertools
import os
from typing import Final

from runwick.contracts.ambient import Clock
from runwick.contracts.errors import ConfigurationError, Problem

KEY_MIN_BYTES: Final = 32
_SEAL_BYTES: Final = 16
_EXPIRY_BYTES: Final = 8
_TOKEN_MAX_CHARACTERS: Final = 4_096


class Seal:
    """Closes and opens tokens of one purpose.

    Args:
        key: at least `KEY_MIN_BYTES`; each purpose gets keys of its own from it.
        purpose: a word; tokens of one purpose are none of another.
        clock: says what is too late, by the time of day, since tokens may pass between processes.
        lifetime_s: how long a token is good.
    """

    def __init__(self, key: bytes, purpose: str, clock: Clock, lifetime_s: int) -> None:
        self._proof_key = hmac.digest(key, f"runwick {purpose} proof".encode(), "sha256")
        self._cover_key = hmac.digest(key, f"runwick {purpose} cover".encode(), "sha256")
        self._clock = clock
        self._lifetime_ms = lifetime_s * 1_000

    def close(self, data: bytes, bound: bytes = b"", *, lifetime_s: int | None = None) -> str:
        """A token with `data` inside, good only where `bound` is the same, for its own lifetime or the seal's. Letters,
        digits, ``-`` and ``_``."""
        until_ms = self._clock.now_ms() + (self._lifetime_ms if lifetime_s is None else lifetime_s * 1_000)
        inside = until_ms.to_bytes(_EXPIRY_BYTES) + data
        seal = self._seal(bound, inside)
        return base64.urlsafe_b64encode(seal + self._covered(seal, inside)).rstrip(b"=").decode()

    def open(self, token: str, bound: bytes = b"") -> bytes | None:
        """What is inside; None if it is no token of ours, for something else, or too old."""
        raw = _decoded(token)
        if raw is None or len(raw) < _SEAL_BYTES + _EXPIRY_BYTES:
            return None
        seal = raw[:_SEAL_BYTES]
        inside = self._covered(seal, raw[_SEAL_BYTES:])
        if not hmac.compare_digest(seal, self._seal(bound, inside)):
            return None
        until_ms = int.from_bytes(inside[:_EXPIRY_BYTES])
        return inside[_EXPIRY_BYTES:] if self._clock.now_ms() < until_ms else None

    def _seal(self, bound: bytes, inside: bytes) -> bytes:
        # The length in front keeps what is bound and what is inside from passing for each other.
        return hmac.digest(self._proof_key, len(bound).to_bytes(8) + bound + inside, "sha256")[:_SEAL_BYTES]

    def _covered(self, seal: bytes, text: bytes) -> bytes:
        blocks = (hmac.digest(self._cover_key, seal + number.to_bytes(8), "sha256") for number in itertools.count())
        stream = itertools.chain.from_iterable(blocks)
        return bytes(each ^ cover for each, cover in zip(text, stream, strict=False))


def signing_key(given: bytes | None) -> bytes:
    """The host's key, or a random one for None.

    Raises:
        ConfigurationError: it is too short (code ``invalid_management``).
    """
    if given is None:
        return os.urandom(KEY_MIN_BYTES)
    if (problem := key_problem(given)) is not None:
        raise ConfigurationError([problem])
    return given


def key_problem(given: bytes | None) -> Problem | None:
    """What is wrong with a host's key."""
    if given is None or len(given) >= KEY_MIN_BYTES:
        return None
    message = f"it has {len(given)} bytes; give {KEY_MIN_BYTES} or more of os.urandom"
    return Problem("invalid_management", "signing_key", message)


def _decoded(token: str) -> bytes | None:
    """The bytes of a token in its one spelling; base64 alone would take several."""
    if len(token) > _TOKEN_MAX_CHARACTERS or not token.isascii():
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == token else None
