"""Bearer tokens in the headers of a request."""

from __future__ import annotations

from collections.abc import Iterable

from .._secret import Secret


def is_token(token: Secret[str]) -> bool:
    """Return whether a token can be sent in a header."""
    return bool(token) and all("!" <= letter <= "~" for letter in token.reveal())


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> Secret[str] | None:
    """Return the token of the ``Authorization`` header, or None without exactly one such header."""
    found = [
        Secret(value[7:].strip().decode("latin-1"))
        for name, value in headers
        if name == b"authorization" and value[:7].lower() == b"bearer "
    ]
    return found[0] if len(found) == 1 and found[0] else None
