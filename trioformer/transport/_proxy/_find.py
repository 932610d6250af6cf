"""Finds the proxy for a server; the rest of this package is imported when it is needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..._secret import Secret

if TYPE_CHECKING:
    from ._route import Route

_HAS_SCHEME_AND_HOST: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]")


def find_route(
    server: str,
    proxy_url: Secret[str] | None,
    *,
    source: str,
    variable: Callable[[str], str | None] = os.getenv,
) -> Route | None:
    """Return the route to a server; None for direct connections.

    The environment is not asked about a server that has a proxy of its own: then ``NO_PROXY`` has no effect either.

    Args:
        server: The URL of the server.
        proxy_url: The ``proxy-url`` of its cluster; None or empty if it has none.
        source: The configuration that it comes from, for errors.
        variable: Returns the value of an environment variable.

    Raises:
        ConfigError: The URL of the proxy is not valid, or of an unknown scheme.
    """
    if proxy_url:
        return _route(server, proxy_url, file=source, key="proxy-url")
    from ._environment import find_in_environment  # noqa: PLC0415

    found = find_in_environment(server, variable)
    if found is None:
        return None
    name, url = found
    if not _HAS_SCHEME_AND_HOST.match(url.reveal()):
        url = Secret(f"http://{url.reveal()}")  # only in the environment
    return _route(server, url, file=None, key=name)


def _route(server: str, url: Secret[str], *, file: str | None, key: str) -> Route:
    from ._proxy import parse_proxy  # noqa: PLC0415
    from ._route import Route  # noqa: PLC0415

    return Route.to(server, parse_proxy(url, file=file, key=key))
