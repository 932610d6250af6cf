"""Bodies of requests as decoded JSON.

kube-apiserver accepts 10,000 levels; here as many are accepted as clients of this library can decode.
"""

from __future__ import annotations

from typing import Any

from ...errors import DecodeError
from ...models._internal import MAX_LEVELS, TOO_DEEP, decode


def decode_body(body: bytes) -> Any:
    """Decode a body.

    Raises:
        ValueError: It is not JSON, or it has too many levels.
    """
    try:
        return decode(body)
    except DecodeError as exc:
        raise ValueError("exceeded max depth" if TOO_DEEP in str(exc) else str(exc)) from exc


def has_too_many_levels(value: object) -> bool:
    """Return whether a decoded JSON value has more levels than a body may have."""
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            member
            for one in level
            for member in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(member, dict | list)
        ]
        if not level:
            return False
    return True
