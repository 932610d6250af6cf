"""Checks of server URLs, proxies and namespaces.

Each function raises :class:`CheckError`. Its message is a predicate, such as "is empty", and never shows a secret.
The caller adds the names of the file and the key.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class CheckError(Exception):
    """A problem with a value. The message is a predicate, such as "is empty", and never shows a secret."""


def parse_server(url: str) -> str:
    """Return the URL of an API server with its path, but without a trailing slash, a query or a fragment.

    Raises:
        CheckError: The URL lacks a scheme or a host, or contains credentials.
    """
    # The part before an "@" may be a password, and the query may contain a token.
    shown = "a URL with '@'" if "@" in url else repr(re.split(r"[?#]", url, maxsplit=1)[0])
    if not has_host(url, ("https", "http")):
        raise CheckError(f"must be a URL such as 'https://host:6443', in ASCII, not {shown}")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise CheckError(
            "must not contain a user name or password: use the user's username and password, or a credential plugin"
        )
    return f"{parts.scheme}://{parts.netloc.rstrip(':')}{parts.path.rstrip('/')}"


def check_proxy_url(url: str) -> str:
    """Check and return the URL of a proxy, which may contain a user name and a password.

    The URL is parsed when a client is opened.

    Raises:
        CheckError: The scheme is not supported, or the host is missing. The message does not quote the URL.
    """
    if not has_host(url, ("http", "https", "socks5")):
        raise CheckError("must be a URL with http://, https:// or socks5://, such as 'http://proxy:3128'")
    return url


def has_host(url: str, schemes: tuple[str, ...]) -> bool:
    """Return whether a URL, in visible ASCII characters, has one of the schemes and a host."""
    try:
        parts = urlsplit(url)
        is_valid = parts.port != 0 and parts.scheme in schemes and bool(parts.hostname)
    except ValueError:
        return False
    return is_valid and _VISIBLE.fullmatch(url) is not None


def check_namespace(name: str) -> str:
    """Check and return the name of a namespace.

    Raises:
        CheckError: The name is not a DNS label.
    """
    if not DNS_LABEL.fullmatch(name):
        raise CheckError("must be a DNS label (lower-case letters, digits and '-', at most 63)")
    return name
