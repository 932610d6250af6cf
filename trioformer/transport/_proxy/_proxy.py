"""A proxy with its URL, its hidden credentials, and its errors, which name the proxy and the fix."""

from __future__ import annotations

import re
from typing import Final, final
from urllib.parse import unquote, urlsplit

import attrs

from ..._secret import Secret
from ...errors import ConfigError
from .._errors import ProxyFailedError
from ..auth._credentials import basic_authorization

CREDENTIALS_REQUIRED: Final = 407
_FORBIDDEN: Final = 403
_FIRST_SERVER_ERROR: Final = 500

SOCKS5: Final = "socks5"
_PORTS: Final = {"http": 80, "https": 443, SOCKS5: 1080}
"""The schemes of proxy URLs with their default ports, as in Go."""
_MAX_PORT: Final = 65_536
_MAX_SOCKS: Final = 255
"""The maximum length of a name or a password in bytes; the length field is one byte (RFC 1929)."""
_PLACE: Final = re.compile(r"(\[[^\[\]]+\]|[A-Za-z0-9._-]+)(?::([0-9]{0,5}))?")


@final
@attrs.frozen(kw_only=True)
class Proxy:
    """A proxy for the connections to one server."""

    scheme: str
    """The protocol of the proxy: ``http``, ``https`` or ``socks5``."""
    host: str
    """The name of the proxy in ASCII, or its address without brackets."""
    port: int
    """Its port."""
    user: Secret[str] | None = None
    """The user name for the proxy, or None."""
    password: Secret[str] | None = None
    """The password, which may be empty. It is set if and only if ``user`` is set."""
    origin: str
    """The setting that names the proxy, such as ``HTTPS_PROXY``."""

    @property
    def is_socks(self) -> bool:
        """Whether the proxy speaks SOCKS5."""
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

    def failed(self, text: str, *, refused: bool = False, permanent: bool = False) -> ProxyFailedError:
        """Return an error about the proxy."""
        return ProxyFailedError(f"the proxy {self} {text}", refused=refused, permanent=permanent)

    def rejected(self, code: int, target: str) -> ProxyFailedError:
        """Return the error for a status code that refuses the connection."""
        if code == CREDENTIALS_REQUIRED:
            return self.credentials_rejected("HTTP 407")
        if code == _FORBIDDEN:
            return self.not_permitted(target, "HTTP 403")
        text = f"cannot connect to {target} (HTTP {code}); check that it is a proxy, and that it can reach the server"
        return self.failed(text, permanent=code < _FIRST_SERVER_ERROR)

    def not_permitted(self, target: str, answer: str) -> ProxyFailedError:
        """Return the error for a proxy that does not allow connections to the server."""
        text = f"does not permit connections to {target} ({answer}); check its rules and NO_PROXY"
        return self.failed(text, permanent=True)

    def credentials_rejected(self, answer: str) -> ProxyFailedError:
        """Return the error for rejected or missing credentials."""
        if self.user is None:
            return self.failed(f"requires a user and a password ({answer}); add them to its URL", permanent=True)
        return self.failed(f"rejected the user and password of its URL ({answer})", permanent=True)


def parse_proxy(url: Secret[str], *, file: str | None, key: str) -> Proxy:
    """Parse the URL of a proxy.

    Raises:
        ConfigError: The URL is not valid or has an unknown scheme.  The error does not quote the URL, because any part
            of the URL may be a password.
    """
    found = _parse(url.reveal(), key)
    if isinstance(found, str):  # raised here, because the variables there are credentials
        raise ConfigError(f"is not a valid proxy URL: {found}", file=file, key=key)
    return found


def _parse(url: str, origin: str) -> Proxy | str:
    scheme = url.partition(":")[0].lower()
    scheme = SOCKS5 if scheme == "socks5h" else scheme  # the proxy resolves names in any case
    if scheme not in _PORTS:
        return "it must begin with http://, https:// or socks5://"
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its address is not valid"
    if any("@" in part for part in parts[2:]):
        # Otherwise a part of the password would become the host, which is resolved and shown.
        return "'@' follows '/', '?' or '#'; percent-encode these in the user name and password, such as '#' as %23"
    credentials, at, place = parts.netloc.rpartition("@")
    found = _PLACE.fullmatch(place)
    port = int(found[2] or _PORTS[scheme]) if found else 0
    if found is None or not 0 < port < _MAX_PORT:
        return "its host or port is not valid; percent-encode special characters in the password"
    name, _, password = (unquote(part) for part in credentials.partition(":"))
    if scheme == SOCKS5 and at and not (0 < len(name.encode()) <= _MAX_SOCKS and len(password.encode()) <= _MAX_SOCKS):
        return f"the user name and the password for SOCKS5 must have 1 to {_MAX_SOCKS} bytes"
    return Proxy(
        scheme=scheme,
        host=unquote(found[1]).strip("[]").lower(),
        port=port,
        user=Secret(name) if at else None,
        password=Secret(password) if at else None,
        origin=origin,
    )
