"""A proxy: its URL, whose credentials are never shown, and where the URL comes from."""

from __future__ import annotations

import re
from typing import Final, final
from urllib.parse import unquote, urlsplit

import attrs
import httpx

from ..._secret import Secret
from ...errors import ConfigError
from ..auth._credentials import basic_authorization

SOCKS5: Final = "socks5"
_PORTS: Final = {"http": 80, "https": 443, SOCKS5: 1080}
"""The schemes of proxies with their ports, as Go has them."""
_MAX_PORT: Final = 65_536
_MAX_SOCKS: Final = 255
"""Bytes of a name or a password, whose length is one byte (RFC 1929)."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@final
@attrs.frozen(kw_only=True)
class Proxy:
    """A proxy for the connections to one server."""

    scheme: str
    """How the proxy is spoken to: ``http``, ``https`` or ``socks5``."""
    host: str
    """Its name in ASCII, or its address without brackets."""
    port: int
    """Its port."""
    user: Secret[str] | None = None
    """The name for the proxy; None for a proxy that requires none."""
    password: Secret[str] | None = None
    """The password; set if and only if ``user`` is, possibly empty."""
    origin: str
    """The setting that names the proxy, such as ``HTTPS_PROXY``."""

    @property
    def is_from_environment(self) -> bool:
        """Whether an environment variable names it."""
        return self.origin.upper().endswith("_PROXY")

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS5."""
        return self.scheme == SOCKS5

    @property
    def authorization(self) -> Secret[str] | None:
        """The value of ``Proxy-Authorization``."""
        if self.user is None or self.password is None:
            return None
        return basic_authorization(self.user.reveal(), self.password)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port} ({self.origin})"


def parse_proxy(url: Secret[str], *, file: str | None, key: str) -> Proxy:
    """Parse the URL of a proxy.

    Args:
        url: The URL.
        file: The configuration that it comes from; None for the environment.
        key: The key in the configuration, or the name of the variable.

    Raises:
        ConfigError: It is not valid, or of an unknown scheme.  It is not quoted: any part of it may be a password.
    """

    def error(problem: str) -> ConfigError:
        return ConfigError(f"is not the URL of a proxy: {problem}", file=file, key=key)

    scheme = url.reveal().partition(":")[0].lower()
    scheme = SOCKS5 if scheme == "socks5h" else scheme  # the proxy resolves names in any case
    if scheme not in _PORTS:
        raise error("it must begin with http://, https:// or socks5://")
    if _ends_in_user_info(url):
        # Otherwise a part of the password would be the host, which is resolved and shown.
        raise error("there is '@' after '/', '?' or '#'; percent-encode these in name and password, '#' as %23")
    netloc = _netloc(url)
    credentials, at, place = (Secret(part) for part in netloc.reveal().rpartition("@"))
    found = re.fullmatch(r"(\[[^\[\]]+\]|[^\[\]:]+)(?::([0-9]{0,5}))?", place.reveal(), re.ASCII)
    host = "" if found is None else _ascii_host(unquote(found[1]))
    if found is None or not host:
        raise error("no valid host name or address, or no valid port; in a password, write special characters as %23")
    port = int(found[2] or _PORTS[scheme])
    if not 0 < port < _MAX_PORT:
        raise error("the port must be a number from 1 to 65535")
    name, _, password = (Secret(unquote(part)) for part in credentials.reveal().partition(":"))
    if scheme == SOCKS5 and at and not (0 < _length(name) <= _MAX_SOCKS and _length(password) <= _MAX_SOCKS):
        raise error(f"name and password for a SOCKS5 proxy have 1 to {_MAX_SOCKS} bytes")
    return Proxy(
        scheme=scheme,
        host=host,
        port=port,
        user=name if at else None,
        password=password if at else None,
        origin=key,
    )


def _length(text: Secret[str]) -> int:
    return len(text.reveal().encode())


def _ends_in_user_info(url: Secret[str]) -> bool:
    """Whether the host ends in a name or a password, which are not percent-encoded."""
    try:
        parts = urlsplit(url.reveal())
    except ValueError:
        return False
    return any("@" in part for part in parts[2:])


def _netloc(url: Secret[str]) -> Secret[str]:
    """Return what is between the scheme and the path; empty if that is not valid."""
    try:
        return Secret(urlsplit(url.reveal()).netloc)
    except ValueError:
        return Secret("")


def _ascii_host(host: str) -> str:
    """Encode a host name; empty if httpx would not take it."""
    try:
        name = httpx.URL(f"http://{host}").raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError):
        return ""
    return name if _NAME.fullmatch(name) or ":" in name else ""
