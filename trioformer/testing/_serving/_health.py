"""The health endpoints, ``/healthz``, ``/livez`` and ``/readyz``, and their checks, which always succeed.

Source: apiserver ``pkg/server/healthz``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ._responses import Response, text_response

ENDPOINTS: Final = frozenset({"healthz", "livez", "readyz"})
"""The first parts of the paths of the health endpoints."""
_CHECKS: Final = ("ping", "log", "etcd", "informer-sync")
"""A selection of kube-apiserver's checks."""


def health(endpoint: str, check: str, query: Mapping[str, str]) -> Response | None:
    """Return the response from a health endpoint or from one of its checks, or None if the check does not exist."""
    if check:
        return text_response("ok") if check in _CHECKS else None
    if "verbose" not in query:
        return text_response("ok")
    excluded = query.get("exclude", "")
    lines = [f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}\n" for name in _CHECKS]
    if excluded and excluded not in _CHECKS:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"\n')
    return text_response(f"{''.join(lines)}{endpoint} check passed\n")
