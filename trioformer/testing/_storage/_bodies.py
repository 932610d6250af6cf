"""Bodies of requests as decoded JSON, with a limit of levels.

kube-apiserver accepts 10,000 levels.
Here the levels of an object are calls of functions, of which Python allows about 1,000, so the limit is lower; it is
still many times what any kind's schema has.
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import DecodeError
from ...models._internal import decode

MAX_LEVELS: Final = 250
"""How many objects and lists may be nested in each other."""


def decode_body(body: bytes) -> Any:
    """Decode a body.

    Raises:
        ValueError: It is not JSON, or it has too many levels.
    """
    try:
        value: Any = decode(body)
    except (DecodeError, RecursionError) as exc:
        is_too_deep = RecursionError in (type(exc), type(exc.__cause__))
        raise ValueError("exceeded max depth" if is_too_deep else str(exc)) from exc
    # Few bodies have so many brackets, so few are walked.
    if body.count(b"{") + body.count(b"[") > MAX_LEVELS and has_too_many_levels(value):
        raise ValueError("exceeded max depth")
    return value


def has_too_many_levels(value: object) -> bool:
    """Return whether a decoded JSON value has more levels than :data:`MAX_LEVELS`."""
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
