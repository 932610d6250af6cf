"""Named health checks, and how they are told: as kube-apiserver tells its own.

Source: ``InstallHandler`` and its neighbours in ``k8s.io/apiserver/pkg/server/healthz/healthz.go``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias, final

import attrs

logger: Final = logging.getLogger("trioformer.manager")

Check: TypeAlias = Callable[[], str]
"""Returns what is wrong, in words; nothing when all is well."""


def passes() -> str:
    """Pass, since whoever can be asked is alive."""
    return ""


@final
@attrs.frozen
class Page:
    """An answer to a request."""

    code: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


NOT_FOUND: Final = Page(404, b"404 page not found\n")


def page_of(path: str, checks: Mapping[str, Check], *, is_verbose: bool, excluded: Collection[str]) -> Page:
    """Answer a request for all checks together, as ``/healthz``, or for one of them, as ``/healthz/ping``.

    The page of all withholds reasons, as anyone may ask for it; the log has them.
    """
    root, slash, name = path.removeprefix("/").partition("/")
    if not slash:
        return _page_of_all(root, checks, is_verbose, excluded)
    if name not in checks:
        return NOT_FOUND
    reason = checks[name]()
    return Page(500, f"internal server error: {reason}\n".encode()) if reason else Page(200, b"ok")


def _page_of_all(root: str, checks: Mapping[str, Check], is_verbose: bool, excluded: Collection[str]) -> Page:
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
        return Page(500, "\n".join([*lines, f"{root} check failed", ""]).encode())
    if is_verbose:
        return Page(200, "\n".join([*lines, f"{root} check passed", ""]).encode())
    return Page(200, b"ok")
