"""Checks of files, server URLs, tokens and namespaces.

Each function raises :class:`CheckError` with a predicate such as "does not exist"; the caller knows file and key, and
raises it as a :class:`~trioformer.errors.ConfigError`.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from .. import _files
from .._secret import Secret

_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_VISIBLE = re.compile(r"[\x21-\x7e]+")


class CheckError(Exception):
    """A problem with a value, as a predicate to follow its name; never shows a secret."""


class MissingError(CheckError):
    """The file does not exist."""


def read_file(path: str) -> Secret[bytes]:
    """Return a file's content.

    Raises:
        MissingError: It does not exist.
        CheckError: It cannot be read.
    """
    try:
        return _files.read_file(path)
    except FileNotFoundError as exc:
        raise MissingError("does not exist") from exc
    except OSError as exc:
        raise CheckError(f"cannot be read: {exc.strerror}") from exc


def parse_server(url: str) -> str:
    """Return an API server's URL without trailing slash, query and fragment, but with its path.

    Raises:
        CheckError: It has no scheme or no host, or contains credentials.
    """
    # The part before an "@" may be a password, and the query may contain a token.
    shown = "a URL with '@'" if "@" in url else repr(re.split(r"[?#]", url, maxsplit=1)[0])
    malformed = CheckError(f"must be a URL such as 'https://host:6443', not {shown}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise malformed from None  # because its text may quote the password
    if port == 0:
        raise malformed
    if not parts.netloc.isascii() and parts.netloc.isprintable() and "@" not in url:
        raise CheckError(f"has a host name that is not ASCII: write its xn-- form, not {shown}")
    if not _VISIBLE.fullmatch(url):
        raise malformed
    if parts.scheme not in ("https", "http"):
        raise CheckError(f"must begin with https:// or http://, not {shown}")
    if "@" in parts.netloc:
        raise CheckError(
            "must not contain a user name or password: use the user's username and password, or a credential plugin"
        )
    if not parts.hostname:
        raise CheckError(f"has no host: {shown}")
    return f"{parts.scheme}://{parts.netloc.rstrip(':')}{parts.path.rstrip('/')}"


def check_proxy_url(url: str) -> None:
    """Check the URL of a proxy; it may contain a user name and a password.

    Raises:
        CheckError: It has no scheme that is supported, or no host.
    """
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        parts, port = urlsplit(""), 0
    # No text quotes the URL, which may contain a password.
    if port == 0 or not _VISIBLE.fullmatch(url):
        raise CheckError("must be a URL such as 'http://proxy:3128'")
    if any("@" in part for part in parts[2:]):
        # Otherwise a part of the password would be the host.
        raise CheckError("has '@' after '/', '?' or '#': percent-encode these in name and password, '#' as %23")
    if parts.scheme not in ("http", "https", "socks5"):
        raise CheckError("must begin with http://, https:// or socks5://")
    if not parts.hostname:
        raise CheckError("has no host: it must be a URL such as 'http://proxy:3128'")


def parse_token(text: str) -> Secret[str]:
    """Return a bearer token without surrounding white space.

    Raises:
        CheckError: It is empty, or contains characters that a header must not.
    """
    token = Secret(text.strip())
    if not token:
        raise CheckError("is empty")
    if not _VISIBLE.fullmatch(token.reveal()):
        raise CheckError("contains white space, control or non-ASCII characters, which a bearer token must not")
    return token


def read_token(path: str) -> Secret[str]:
    """Return the bearer token in a file.

    Raises:
        MissingError: The file does not exist.
        CheckError: It cannot be read, or does not contain a token.
    """
    return parse_token(read_file(path).reveal().decode("latin-1"))  # a token with other characters is not valid


def check_namespace(name: str) -> None:
    """Check a namespace's name.

    Raises:
        CheckError: It is not a DNS label.
    """
    if not _DNS_LABEL.fullmatch(name):
        raise CheckError(f"must be a DNS label (lower-case letters, digits and '-', at most 63), not {name!r}")
