"""Who is at the other end of a connection. The address that the socket says is believed; what a header says is believed
only from proxies that the operator listed, because everybody can write a header."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
HOUSEHOLD = 64  # bits: one IPv6 customer has at least such a network, and could take any address of it
UNKNOWN = "unknown"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    address = _address(host.strip("[]"))
    return host == "localhost" or (address is not None and address.is_loopback)


def networks(proxies: Sequence[str]) -> tuple[Network, ...]:
    """Listed proxies, ready to compare with."""
    return tuple(ipaddress.ip_network(proxy, strict=False) for proxy in proxies)


def peer_of(scope: Scope, proxies: Sequence[Network]) -> str:
    """The address that a request is counted under: the last one on its way that is no listed proxy."""
    client = scope.get("client")
    address = _address(client[0]) if client else None
    if address is None:
        return UNKNOWN
    for named in reversed(_forwarded(scope)):
        if not _listed(address, proxies):
            break
        before = _address(named)
        if before is None:  # a proxy wrote nonsense: it is the last one that we know
            break
        address = before
    return _counted(address)


def _forwarded(scope: Scope) -> list[str]:
    """What X-Forwarded-For says, all such headers in order."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [part.strip() for part in ",".join(values).split(",")] if values else []


def _listed(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in proxies)


def _counted(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, HOUSEHOLD), strict=False))


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
