"""Protection of a server on a socket against requests that web pages in a browser send.

Any web page can make its visitor's browser send requests to ``http://127.0.0.1:8001``.
With DNS rebinding, the host name of the page resolves to 127.0.0.1, and the ``Host`` header of the request contains
this name.
A request that a web page sends to another site has an ``Origin`` header, which clients such as kubectl do not send.
A web form cannot send JSON, and ``_resources.py`` rejects bodies of all other content types.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final, final

import attrs

from ..._asgi import Message, Receive, Send
from ..._listeners import bearer_token, is_loopback
from ..._secret import Secret
from .._storage._status import APIStatusError, status_error
from ._app import Application, send_response
from ._responses import error_response

OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})
"""The paths that can be requested without a token, as in kube-apiserver."""
_HOST: Final = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::[0-9]{0,5})?")


_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]+(?:\.(?!-)[a-z0-9_-]+)*")


def host_of(header: str) -> str | None:
    """Return the host in a ``Host`` header, without brackets and port, or None if the header is not valid."""
    found = _HOST.fullmatch(header)
    return None if found is None else plain_host(found["address"] or found["name"])


def plain_host(host: str) -> str:
    """Normalize a host for comparison: in lower case, without a final dot, and with a shortened IP address."""
    name = host.lower().removesuffix(".")
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def checked_host(given: str) -> str:
    """Normalize and check a host from the user's configuration.  An IPv6 address may have brackets.

    Raises:
        ValueError: The text is not a host name or an IP address.
    """
    is_bracketed = given.startswith("[") and given.endswith("]")
    host = plain_host(given[1:-1] if is_bracketed else given)
    if not (_is_address(host) or (_NAME.fullmatch(host) and not is_bracketed)):
        problem = "must be a host name or an IP address, without scheme, port and wildcard"
        raise ValueError(f"hosts= (--allow-host): {given!r} {problem}")
    return host


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@final
@attrs.define(eq=False)
class Guard:
    """An ASGI 3 application that forwards allowed requests to another application and rejects all others."""

    _app: Application
    _hosts: frozenset[str]
    """Allowed hosts in addition to loopback, as :func:`plain_host` returns them."""
    _allows_addresses: bool
    """Whether every IP address is allowed, for a server on all addresses.  DNS rebinding is only possible with
    names."""
    _token: Secret[str] | None
    """The bearer token that requests must have."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward or reject one request."""
        try:
            self._check(scope)
        except APIStatusError as error:
            await send_response(error_response(error), send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Message) -> None:
        given = next(_values(scope, b"host"), "")
        host = host_of(given)
        if host is None or not self._is_allowed(host):
            problem = "is not a name of this server; allow it with hosts= or --allow-host"
            raise status_error(403, message=f"the host {(host or given)[:100]!r} {problem}")
        for origin in _values(scope, b"origin"):
            if origin.lower() != f"{scope['scheme']}://{given}".lower():
                problem = "requests from web pages of other sites are rejected, and this request has an Origin header"
                raise status_error(403, message=problem)
        if (
            self._token is not None
            and scope["path"] not in OPEN_PATHS
            and bearer_token(scope["headers"]) != self._token
        ):
            raise status_error(401)

    def _is_allowed(self, host: str) -> bool:
        return is_loopback(host) or host in self._hosts or (self._allows_addresses and _is_address(host))


def _values(scope: Message, name: bytes) -> Iterator[str]:
    return (value.decode("latin-1") for key, value in scope["headers"] if key == name)
