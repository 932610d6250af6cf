"""Named health checks and their HTTP responses, in the same format as kube-apiserver's.

Source: ``InstallHandler`` in ``k8s.io/apiserver/pkg/server/healthz/healthz.go``, and the functions that it calls.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, final

import attrs

from .._text import one_line

logger: Final = logging.getLogger("trioformer.manager")

HealthCheck: TypeAlias = Callable[[], str]
"""A function that returns the reason for a failure, or an empty string if the check passes."""


def ping() -> str:
    """Always pass, because a process that can run this check is alive."""
    return ""


def run_check(check: HealthCheck) -> str:
    """Run one of the caller's checks, and return the reason for its failure. An exception is a failure too."""
    try:
        reason: object = check()
    except Exception as error:  # noqa: BLE001  # the documented boundary to a caller's function
        return f"the check raised {type(error).__name__}: {one_line(str(error))}"
    return reason if isinstance(reason, str) else f"the check returned {type(reason).__name__}, not a string"


@final
@attrs.frozen
class Response:
    """An HTTP response of the manager."""

    code: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """The headers of the response in addition to the content type."""


NOT_FOUND: Final = Response(404, b"404 page not found\n")


def health_response(
    path: str, checks: Mapping[str, HealthCheck], *, is_verbose: bool, excluded: Collection[str]
) -> Response:
    """Return the response for all checks, such as ``/healthz``, or for a single check, such as ``/healthz/ping``.

    The response for all checks does not contain the reasons for failures, because anyone may request it.  The reasons
    are logged instead.
    """
    root, slash, name = path.removeprefix("/").partition("/")
    if not slash:
        return _respond_to_all(root, checks, is_verbose, excluded)
    if name not in checks:
        return NOT_FOUND
    reason = checks[name]()
    return Response(500, f"internal server error: {reason}\n".encode()) if reason else Response(200, b"ok")


def _respond_to_all(
    root: str, checks: Mapping[str, HealthCheck], is_verbose: bool, excluded: Collection[str]
) -> Response:
    lines: list[str] = []
    reasons: list[str] = []
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif reason := check():
            lines.append(f"[-]{name} failed: reason withheld")
            reasons.append(f"{name}: {reason}")
        else:
            lines.append(f"[+]{name} ok")
    unknown = sorted(set(excluded) - set(checks))
    if unknown:
        quoted = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if reasons:
        logger.info("%s check failed: %s", root, "; ".join(reasons))
        return Response(500, "\n".join([*lines, f"{root} check failed", ""]).encode())
    if is_verbose:
        return Response(200, "\n".join([*lines, f"{root} check passed", ""]).encode())
    return Response(200, b"ok")
