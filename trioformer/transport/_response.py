"""A complete response, and the server's ID of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, final

import attrs

SWITCHED: Final = 101
"""The status of a response after which the connection speaks another protocol."""
_ID: Final = re.compile(r"[!-~]{1,64}")
"""As kube-apiserver accepts one from a client; usually it is a UUID."""


def request_id_in(headers: Mapping[str, str]) -> str:
    """Return the ID by which kube-apiserver's audit log names a request (``Audit-Id``); empty without a valid one."""
    found = headers.get("audit-id", "")
    return found if _ID.fullmatch(found) else ""


@final
@attrs.frozen
class Response:
    """A complete response."""

    code: int
    """The HTTP status code."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    body: bytes = attrs.field(repr=False)
    """The body, as it was sent."""
    server: str = "the configured address"
    """The server that has sent it and where it is configured, for errors."""
    credential: str = "unknown"
    """How the request was authenticated, for errors; no secret."""
    history: str = ""
    """The attempts before it, for a note in errors; empty if the request was sent once."""
