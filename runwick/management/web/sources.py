"""Where a request comes from, as far as the connection itself shows it."""

import ipaddress
from typing import Final

from starlette.requests import HTTPConnection

_IPV6_SITE_BITS: Final = 64
"""One host has so large a network to itself, so what is counted for a source is counted for that."""
_FORWARDING: Final = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


def is_encrypted(request: HTTPConnection) -> bool:
    """Whether it came over TLS, as far as the server knows; behind a proxy, the server must be told to believe it."""
    return request.scope.get("scheme") == "https"


def is_loopback(request: HTTPConnection) -> bool:
    """Whether it comes from this very machine and was meant for it: a proxy beside us, or a name that somebody made
    lead here, is neither."""
    host = request.headers.get("host", "").lower()
    name, _, port = host.rpartition(":")
    address = _address(request)
    return (
        address is not None
        and address.is_loopback
        and (name if port.isdecimal() else host) in _LOOPBACK_NAMES
        and not any(header in request.headers for header in _FORWARDING)
    )


def source_of(request: HTTPConnection) -> str:
    """Whom failures are counted for: the address, of IPv6 its network; ``-`` where there is none."""
    address = _address(request)
    if address is None:
        return "-"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _IPV6_SITE_BITS), strict=False))
    return str(address)


def _address(request: HTTPConnection) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    client = request.client
    try:
        address = ipaddress.ip_address(client.host if client else "")
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
