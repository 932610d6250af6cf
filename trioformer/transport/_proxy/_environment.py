"""Find the proxy for a server in the configuration, or in the environment with Go's rules.

Programs interpret HTTPS_PROXY, HTTP_PROXY and NO_PROXY in different ways. kubectl and client-go use Go's ``net/http``,
which follows ``golang.org/x/net/http/httpproxy``.  This library follows the same rules, so it works in every shell
where kubectl works.

- The upper-case variable takes precedence over the lower-case one; an empty variable counts as unset.
- ``HTTPS_PROXY`` is for ``https://`` servers, ``HTTP_PROXY`` for ``http://`` servers; ``ALL_PROXY`` is ignored.
- ``localhost`` and loopback addresses never use a proxy.
- An entry of ``NO_PROXY`` is ``*``, an address, a network in CIDR notation, or a name, which includes its subdomains;
  a name that begins with ``.`` or ``*.`` matches only the subdomains.  Addresses and names may have a port.
  Any other entry matches nothing.  Names are in ASCII, like the names of servers, and are not resolved.
- If ``REQUEST_METHOD`` is set, the program is a CGI program, and its client could set ``HTTP_PROXY``.  So the use of
  this variable is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from ..._secret import Secret
from ...errors import ConfigError

if TYPE_CHECKING:
    import ipaddress

    from ._route import Route

_Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_HAS_SCHEME_AND_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]")
_MAPPED_BITS: Final = 96
"""The number of bits before the IPv4 address in an IPv6 address that contains one."""


def find_route(
    server: str,
    proxy_url: Secret[str] | None,
    *,
    source: str,
    variable: Callable[[str], str | None] = os.getenv,
) -> Route | None:
    """Return the route to a server through a proxy, or None for direct connections.

    If the configuration has a proxy, the environment is ignored, including ``NO_PROXY``.
    As in Go, HTTP proxies forward requests to ``http://`` servers, and open tunnels to ``https://`` servers.

    Raises:
        ConfigError: The URL of the proxy is not valid or has an unknown scheme.
    """
    key, url = "proxy-url", proxy_url
    if not url:
        found = find_in_environment(server, variable)
        if found is None:
            return None
        key, url = found
        if not _HAS_SCHEME_AND_HOST.match(url.reveal()):
            url = Secret(f"http://{url.reveal()}")  # only in the environment
    from ._proxy import SOCKS5, parse_proxy  # noqa: PLC0415  # most clients do not use a proxy
    from ._route import Route  # noqa: PLC0415

    proxy = parse_proxy(url, file=source if proxy_url else None, key=key)
    return Route(proxy, is_forwarded=server.startswith("http:") and proxy.scheme != SOCKS5)


def find_in_environment(server: str, variable: Callable[[str], str | None]) -> tuple[str, Secret[str]] | None:
    """Return the name and the value of the variable that sets the proxy for a server, or None for a direct connection.

    The argument is a function that reads one variable, because the whole environment may contain secrets.

    Raises:
        ConfigError: The program is a CGI program, and ``HTTP_PROXY`` would be used.
    """
    url = urlsplit(server)
    found = _first_set(variable, "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY")
    if found is None:
        return None
    if url.scheme == "http" and variable("REQUEST_METHOD"):
        problem = "is not used because REQUEST_METHOD is set: in a CGI program, a client can set it; unset one of them"
        raise ConfigError(problem, key=found[0])
    host, port = _host_and_port(url.netloc)
    exceptions = _first_set(variable, "NO_PROXY")
    no_proxy = "" if exceptions is None else exceptions[1].reveal()
    return None if _is_direct(host, port or _DEFAULT_PORTS[url.scheme], no_proxy) else found


def _is_direct(host: str, port: str, no_proxy: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host.partition("%")[0])
    if address is not None and address.is_loopback:
        return True
    host = host.strip().lower()
    return any(_matches(entry.strip().lower(), host, address, port) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, address: _Address | None, port: str) -> bool:
    """Return whether an entry of ``NO_PROXY`` matches."""
    if entry == "*":
        return True
    if (network := _network(entry)) is not None:
        return address is not None and address in network
    name, entry_port = _split_port(entry) or (entry, "")
    if not name or entry_port not in ("", port):
        return False
    if (excepted := _address(name)) is not None:
        return address == excepted
    if address is not None:
        return False
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}")


def _first_set(variable: Callable[[str], str | None], name: str) -> tuple[str, Secret[str]] | None:
    for each in (name, name.lower()):
        if value := Secret(variable(each) or ""):
            return each, value
    return None


def _host_and_port(netloc: str) -> tuple[str, str]:
    """Split the network location of a URL.

    In contrast to ``urlsplit``, this function preserves the case of the host name.
    """
    place = netloc.rpartition("@")[2]
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        return unquote(host), port.removeprefix(":")
    host, _, port = place.partition(":")
    return unquote(host), port


def _split_port(text: str) -> tuple[str, str] | None:
    """Split ``host:port`` or ``[address]:port`` as Go's ``net.SplitHostPort`` does.

    Return None if the text has another form.
    """
    if text.startswith("["):
        found = re.fullmatch(r"\[([^\[\]]*)\]:([^\[\]:]*)", text)
    else:
        found = re.fullmatch(r"([^\[\]:]*):([^\[\]:]*)", text)
    return None if found is None else (found[1], found[2])


def _address(text: str) -> _Address | None:
    """Parse an IP address. An IPv4-mapped IPv6 address becomes the IPv4 address."""
    address = _address_as_written(text)
    return address.ipv4_mapped or address if address is not None and address.version == 6 else address


def _address_as_written(text: str) -> _Address | None:
    import ipaddress  # noqa: PLC0415  # only for proxies

    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Parse a network in CIDR notation, ignoring host bits."""
    first, _, digits = text.partition("/")
    address = _address_as_written(first)
    if address is None or not re.fullmatch(r"[0-9]{1,9}", digits):
        return None
    bits = int(digits)
    if address.version == 6 and address.ipv4_mapped and bits >= _MAPPED_BITS:
        address, bits = address.ipv4_mapped, bits - _MAPPED_BITS
    import ipaddress  # noqa: PLC0415  # only for proxies

    return None if bits > address.max_prefixlen else ipaddress.ip_network((address, bits), strict=False)
