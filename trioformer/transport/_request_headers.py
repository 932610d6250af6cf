"""The headers that a client adds to each of its requests: its name, compression, and impersonation.

Source of impersonation: client-go ``transport/round_trippers.go``.
"""

from __future__ import annotations

import re
from typing import Final, final

import attrs

from ..kubeconfig import Impersonation
from .http._messages import Header, Headers

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NOT_IN_A_NAME: Final = re.compile(rb"[^0-9A-Za-z!#$&'*+.^_`|~-]")
"""What the name of a header must not contain (RFC 9110), and ``%``, which begins an escape."""

_MAX_MADE: Final = 64
"""Combinations that are kept; a program uses a few, unless its raw requests have headers of their own."""


@final
@attrs.frozen
class RequestHeaders:
    """The headers of all requests of a client."""

    user_agent: str
    """The ``User-Agent``."""
    uses_gzip: bool = False
    """Whether compressed responses are requested where the program can read them."""
    impersonation: tuple[Header, ...] = ()
    """The user that the requests are made for."""

    _made: dict[tuple[str, str | None, bool], Headers] = attrs.field(factory=dict, init=False, eq=False, repr=False)
    """Those of requests that were sent."""

    def of(self, *, accept: str, content_type: str | None, accepts_gzip: bool) -> Headers:
        """Return the headers of a request."""
        key = (accept, content_type, accepts_gzip)
        if (made := self._made.get(key)) is not None:
            return made
        headers = [
            (b"Accept", accept.encode()),
            (b"Accept-Encoding", b"gzip" if accepts_gzip else b"identity"),
            (b"User-Agent", self.user_agent.encode()),
            *self.impersonation,
        ]
        if content_type is not None:
            headers.append((b"Content-Type", content_type.encode()))
        if len(self._made) >= _MAX_MADE:
            self._made.clear()
        made = self._made[key] = Headers(headers)
        return made


def impersonation_headers(impersonation: Impersonation) -> tuple[Header, ...]:
    """Return the headers with which a request is made for another user.

    Raises:
        ValueError: A value cannot be in a header, or there is no user.
    """
    if not impersonation.user:
        raise ValueError("impersonation needs a user, also for groups, a UID or extra attributes")
    headers = [(b"Impersonate-User", _value("user", impersonation.user))]
    if impersonation.uid:
        headers.append((b"Impersonate-Uid", _value("UID", impersonation.uid)))
    headers += [(b"Impersonate-Group", _value("group", group)) for group in impersonation.groups]
    for key, values in impersonation.extra.items():
        if not key:
            raise ValueError("an extra attribute to impersonate has no key")
        name = b"Impersonate-Extra-" + _NOT_IN_A_NAME.sub(_escaped, key.encode(errors="surrogatepass"))
        headers += [(name, _value(f"extra attribute {key!r}", value)) for value in values]
    return tuple(headers)


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def _value(what: str, value: str) -> bytes:
    if _CONTROLS.search(value) or value != value.strip(" \t"):
        raise ValueError(
            f"the {what} to impersonate must not contain control characters, nor begin or end with a space: {value!r}"
        )
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the {what} to impersonate is not valid Unicode: {value!r}") from None
