"""The address of the client of a request. The socket's address is trusted. `X-Forwarded-For` is trusted only from
proxies that the operator listed, because any client can send that header."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
IPV6_PREFIX_BITS = 64  # one IPv6 customer has at least such a network, and can use any address in it
UNKNOWN = "unknown"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    address = _address(host.strip("[]"))
    return host == "localhost" or (address is not None and address.is_loopback)


def networks(proxies: Sequence[str]) -> tuple[Network, ...]:
    """The networks of the listed proxies."""
    return tuple(ipaddress.ip_network(proxy, strict=False) for proxy in proxies)


def peer_of(scope: Scope, proxies: Sequence[Network]) -> str:
    """The address that a request is counted under: the last hop that is not a listed proxy."""
    client = scope.get("client")
    address = _address(client[0]) if client else None
    if address is None:
        return UNKNOWN
    for hop in reversed(_forwarded(scope)):
        if not _is_proxy(address, proxies):
            break
        previous = _address(hop)
        if previous is None:  # the proxy sent no valid address, so the proxy's own is the last one known
            break
        address = previous
    return _counted_address(address)


def _forwarded(scope: Scope) -> list[str]:
    """The addresses in all X-Forwarded-For headers, in order."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [part.strip() for part in ",".join(values).split(",")] if values else []


def _is_proxy(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in proxies)


def _counted_address(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, IPV6_PREFIX_BITS), strict=False))


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
