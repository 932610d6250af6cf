"""Asking the server where the objects of a kind live."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, cast

from ..errors import DecodeError, NotFoundError, UnexpectedResponseError
from ..models import ResourceInfo
from ..models._internal import decode
from ..transport._internal import Transport, excerpt
from ._responses import HINT, check

_MOST_SHOWN: Final = 12


async def discover_resource(transport: Transport, api_version: str, kind: str) -> ResourceInfo:
    """Find a kind in the resource list of its group and version, with one request.

    Raises:
        NotFoundError: There is no such version, or no such kind in it; names what there is.
        StatusError: The server refused.
        UnexpectedResponseError: The answer is no resource list.
        ConnectionFailedError: There was no answer.
        ValueError: ``api_version`` cannot be one.
    """
    group, _, version = api_version.rpartition("/")
    parts = api_version.split("/")
    if not kind or len(parts) > 2 or any(part in ("", ".", "..") or not _is_plain(part) for part in parts):
        raise ValueError(f"a kind has an apiVersion such as apps/v1 and a name, not {api_version!r} and {kind!r}")
    where = f"discover {kind} of {api_version}"
    answer = await transport.request("GET", f"/apis/{api_version}" if group else f"/api/{version}")
    if answer.code == 404:
        raise _not_found(f"the server does not serve {api_version}", where)
    check(answer, method="GET", where=where)
    entries = _entries(answer.body)
    if entries is None:
        problem = f"the answer (HTTP {answer.code}) is no list of resources: {excerpt(answer.body)}; {HINT}"
        raise UnexpectedResponseError(f"{where}: {problem}", code=answer.code)
    # A subresource, such as deployments/scale, may be of the kind that is looked for, and has no objects of its own.
    served = {name: entry for entry in entries if "/" not in (name := _text(entry, "name")) and name}
    found = [(name, entry) for name, entry in served.items() if entry.get("kind") == kind]
    if not found:
        kinds = sorted({_text(entry, "kind") for entry in served.values()} - {""})
        raise _not_found(f"{api_version} has no kind {kind}: {_near(kind, kinds)}", where)
    # Of several the one whose objects can be listed: others are questions to the server, such as reviews.
    plural, entry = next(((name, entry) for name, entry in found if "list" in _texts(entry, "verbs")), found[0])
    prefix = f"{plural}/"
    names = (_text(entry, "name") for entry in entries)
    return ResourceInfo(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=entry.get("namespaced") is True,
        singular=_text(entry, "singularName") or kind.lower(),
        short_names=_texts(entry, "shortNames"),
        categories=_texts(entry, "categories"),
        verbs=_texts(entry, "verbs"),
        subresources=tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix)),
    )


def _is_plain(part: str) -> bool:
    return part.isascii() and all(char.isalnum() or char in "-." for char in part)


def _entries(body: bytes) -> list[Mapping[str, object]] | None:
    try:
        answer: object = decode(body)
    except DecodeError:
        return None
    resources = cast("dict[str, object]", answer).get("resources") if isinstance(answer, dict) else None
    if not isinstance(resources, list):
        return None
    return [cast("dict[str, object]", entry) for entry in cast("list[object]", resources) if isinstance(entry, dict)]


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _texts(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    return tuple(one for one in cast("list[object]", value) if isinstance(one, str)) if isinstance(value, list) else ()


def _near(kind: str, kinds: list[str]) -> str:
    """Name the kinds that may be meant: those of similar names, otherwise all, if they are not too many."""
    spelled = {name.lower(): name for name in kinds}
    near = [spelled[name] for name in difflib.get_close_matches(kind.lower(), spelled, n=3)]
    if near:
        return f"is it {' or '.join(near)}"
    more = ", …" if len(kinds) > _MOST_SHOWN else ""
    return f"it has {', '.join(kinds[:_MOST_SHOWN]) or 'none at all'}{more}"


def _not_found(message: str, where: str) -> NotFoundError:
    return NotFoundError(message, code=404, reason="NotFound", where=where)
