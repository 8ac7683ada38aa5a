"""What goes out sealed comes back unread, unchanged, in its own place and in time, or not at all."""

import base64

import pytest

from runwick import ConfigurationError
from runwick.management.web.sealing import Seal, signing_key
from tests.ambient import FakeClock
from tests.web.ground import KEY


def a_seal(purpose: str = "cursor", key: bytes = KEY, clock: FakeClock | None = None) -> Seal:
    return Seal(key, purpose, clock or FakeClock(), 3_600)


def test_what_was_closed_opens() -> None:
    for data in (b"", b"x", b"9182.3", bytes(range(256))):
        assert a_seal().open(a_seal().close(data, b"list"), b"list") == data


def test_every_flipped_bit_is_refused() -> None:
    token = a_seal().close(b"0199c0de.17", b"list")
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    for bit in range(len(raw) * 8):
        raw[bit // 8] ^= 1 << bit % 8
        assert a_seal().open(base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), b"list") is None
        raw[bit // 8] ^= 1 << bit % 8


def test_every_changed_character_is_refused_also_where_base64_would_not_mind() -> None:
    token = a_seal().close(b"0199c0de.1", b"list")
    for place in range(len(token)):
        for other in "A_9=é ":
            changed = token[:place] + other + token[place + 1 :]
            assert changed == token or a_seal().open(changed, b"list") is None
    for near in ("", token[:-1], token + "A", token + "=", token + "==", " " + token, token * 100, "\0"):
        assert a_seal().open(near, b"list") is None


def test_a_token_is_good_in_its_own_place_only() -> None:
    token = a_seal().close(b"7", b"list")
    assert a_seal().open(token, b"another list") is None
    assert a_seal("session").open(token, b"list") is None
    assert a_seal(key=b"K" * 32).open(token, b"list") is None


def test_a_token_ends() -> None:
    clock = FakeClock()
    token = a_seal(clock=clock).close(b"7")
    clock.advance_ms(3_599_999)
    assert a_seal(clock=clock).open(token) == b"7"
    clock.advance_ms(1)
    assert a_seal(clock=clock).open(token) is None


def test_nobody_reads_what_is_inside() -> None:
    secret = b"a job that is hidden"
    token = a_seal().close(secret * 4)
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert secret[:6] not in raw
    assert len({raw[i : i + 16] for i in range(0, len(raw) - 16, 16)}) == len(range(0, len(raw) - 16, 16))


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"invalid_management.*31 bytes"):
        signing_key(b"k" * 31)
    assert signing_key(b"k" * 32) == b"k" * 32
    assert signing_key(None) != signing_key(None)
