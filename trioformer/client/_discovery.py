"""Discovery: the resource of a kind."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, cast

from ..errors import DecodeError, NotFoundError
from ..models import ResourceInfo
from ..models._internal import decode
from ..transport._internal import Transport
from ._responses import check, unexpected_response

_MAX_SHOWN: Final = 12


async def discover_resource(transport: Transport, api_version: str, kind: str) -> ResourceInfo:
    """Find a kind in the resource list of its group and version, with one request.

    Raises:
        NotFoundError: The server does not serve the version, or not the kind; names similar kinds.
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is not a resource list.
        ConnectionFailedError: No complete response arrived.
        ValueError: ``api_version`` is not valid, or ``kind`` is empty.
    """
    group, _, version = api_version.rpartition("/")
    parts = api_version.split("/")
    if not kind or len(parts) > 2 or any(part in ("", ".", "..") or not _is_plain(part) for part in parts):
        raise ValueError(f"a kind has an apiVersion such as apps/v1 and a name, not {api_version!r} and {kind!r}")
    where = f"discover {kind} of {api_version}"
    response = await transport.request("GET", f"/apis/{api_version}" if group else f"/api/{version}")
    if response.code == 404:
        raise _not_found(f"the server does not serve {api_version}", where)
    check(response, method="GET", where=where)
    entries = _entries(response.body)
    if entries is None:
        raise unexpected_response(response, where, "not a resource list")
    # A subresource, such as deployments/scale, may have the kind too, but does not store objects.
    served = {name: entry for entry in entries if "/" not in (name := _text(entry, "name")) and name}
    found = [(name, entry) for name, entry in served.items() if entry.get("kind") == kind]
    if not found:
        kinds = sorted({_text(entry, "kind") for entry in served.values()} - {""})
        raise _not_found(f"{api_version} has no kind {kind}: {_suggestion(kind, kinds)}", where)
    # Prefer a resource whose objects can be listed; others are only created, such as reviews.
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
        found: object = decode(body)
    except DecodeError:
        return None
    resources = cast("dict[str, object]", found).get("resources") if isinstance(found, dict) else None
    if not isinstance(resources, list):
        return None
    return [cast("dict[str, object]", entry) for entry in cast("list[object]", resources) if isinstance(entry, dict)]


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _texts(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    return tuple(one for one in cast("list[object]", value) if isinstance(one, str)) if isinstance(value, list) else ()


def _suggestion(kind: str, kinds: list[str]) -> str:
    """Name the kinds with similar names; without any, the first dozen of all."""
    spelled = {name.lower(): name for name in kinds}
    similar = [spelled[name] for name in difflib.get_close_matches(kind.lower(), spelled, n=3)]
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    more = ", …" if len(kinds) > _MAX_SHOWN else ""
    return f"it has {', '.join(kinds[:_MAX_SHOWN]) or 'no kinds'}{more}"


def _not_found(message: str, where: str) -> NotFoundError:
    return NotFoundError(message, code=404, reason="NotFound", where=where)
