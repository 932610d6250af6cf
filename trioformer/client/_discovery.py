"""Discovery of a single kind: find its resource in the resource list of its API version.

The names in a resource list become segments of URL paths, so entries with invalid names are never used. client-go also
refuses to send requests with invalid names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from .._text import quoted
from .._util import Slices
from ..errors import NotFoundError
from ..models import ResourceInfo
from ..models._internal import (
    decode,
    is_label,
    is_path_segment,
    is_subdomain,
    is_version,
    kind_problem,
    level_decoder,
    list_items,
)
from ..transport._internal import Response, Transport
from .bodies._responses import check, raise_failure, unexpected_response

_MAX_RESOURCES: Final = 10_000
"""The maximum number of resources in one API version, including subresources. The core group has about a hundred."""
_MAX_ENTRY: Final = 64 * 1024
"""The maximum size in bytes of an entry in a resource list. Most entries are a few hundred bytes long."""
_MAX_SHOWN: Final = 12
_MAX_COMPARED: Final = 200
"""The maximum number of kinds that are compared for a suggestion. An API group has fewer than a hundred kinds."""

_resources_of: Final = level_decoder(("resources",))


async def discover_resource(transport: Transport, api_version: str, kind: str) -> ResourceInfo:
    """Find the resource of a kind with one request to the resource list of its API version.

    Raises:
        NotFoundError: The server does not serve the API version or the kind. The message suggests similar kinds.
        StatusError: The server rejected the request.
        UnexpectedResponseError: The response is not a resource list, or the name of the kind's resource is not valid.
        LimitExceededError: The response is too long.
        ConnectionFailedError: No complete response arrived.
        ValueError: ``api_version`` is not valid, or ``kind`` is empty.
    """
    group, _, version = api_version.rpartition("/")
    is_valid = is_version(version) and (is_subdomain(group) if "/" in api_version else True)
    if not is_valid or kind_problem(kind):
        raise ValueError(f"expected an apiVersion such as apps/v1 and a kind, not {api_version!r} and {kind!r}")
    where = f"discover {kind} of {api_version}"
    path = f"/apis/{api_version}" if group else f"/api/{version}"
    response = await transport.request("GET", path, where=where)
    if response.code == 404:
        raise _not_found(f"the server does not serve {api_version}", where)
    check(response, method="GET", where=where)
    raise_failure(response, response.body, where=where)
    entries = await resource_entries(response, where)
    # A subresource, such as deployments/scale, may also have the kind, but does not store objects.
    served = {name: entry for entry in entries if "/" not in (name := text_in(entry, "name")) and name}
    found = [(name, entry) for name, entry in served.items() if entry.get("kind") == kind and is_label(name)]
    if not found:
        wrong = [name for name, entry in served.items() if entry.get("kind") == kind]
        if wrong:
            raise unexpected_response(response, where, f"the name of its resource, {quoted(wrong[0])}, is not valid")
        kinds = sorted({name for entry in served.values() if not kind_problem(name := text_in(entry, "kind"))})
        raise _not_found(f"{api_version} has no kind {kind}: {_suggestion(kind, kinds)}", where)
    # Prefer a resource that can be listed; others, such as reviews, are only created.
    plural, entry = next(((name, entry) for name, entry in found if "list" in labels_in(entry, "verbs")), found[0])
    return resource_info(group, version, plural, kind, entry, subresources_in(entries).get(plural, ()))


def resource_info(
    group: str, version: str, plural: str, kind: str, entry: Mapping[str, object], subresources: Iterable[str]
) -> ResourceInfo:
    """Return the resource that an entry of a resource list describes.

    Invalid names in the entry are ignored.
    """
    return ResourceInfo(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=entry.get("namespaced") is True,
        singular=singular if is_label(singular := text_in(entry, "singularName")) else kind.lower(),
        short_names=labels_in(entry, "shortNames"),
        categories=labels_in(entry, "categories"),
        verbs=labels_in(entry, "verbs"),
        subresources=tuple(name for name in subresources if is_path_segment(name)),
    )


def subresources_in(entries: Iterable[Mapping[str, object]]) -> Mapping[str, list[str]]:
    """Return the names of the subresources in a resource list, keyed by the plural name of their resource."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        plural, _, subresource = text_in(entry, "name").partition("/")
        if subresource:
            found.setdefault(plural, []).append(subresource)
    return found


async def resource_entries(response: Response, where: str) -> list[Mapping[str, object]]:
    """Return the entries of a resource list.

    Raises:
        UnexpectedResponseError: The response is not a resource list, or has too many entries.
    """
    entries = await _entries(response.body)
    if entries is None:
        raise unexpected_response(response, where, "not a resource list")
    if len(entries) > _MAX_RESOURCES:
        raise unexpected_response(response, where, f"a resource list of more than {_MAX_RESOURCES} resources")
    return entries


async def _entries(body: bytes) -> list[Mapping[str, object]] | None:
    """Return the entries of a resource list, or None if the body is not a resource list.

    The entries are decoded one by one, with checkpoints.
    """
    entries: list[Mapping[str, object]] = []
    slices = Slices()
    try:
        (resources,) = _resources_of(body)
        if not bytes(resources).startswith(b"["):
            return None
        for raw in list_items(resources):
            entry = bytes(raw)
            if entry.startswith(b"{") and len(entry) <= _MAX_ENTRY:
                entries.append(cast("dict[str, object]", decode(entry)))
            if len(entries) > _MAX_RESOURCES:
                break
            if slices.is_over():
                await slices.checkpoint()
    except (ValueError, RecursionError):
        return None
    return entries


def text_in(entry: Mapping[str, object], key: str) -> str:
    """Return the value of a key in an entry if it is a string, or otherwise an empty string."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def labels_in(entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return the DNS labels in an entry's list with this key."""
    value = entry.get(key)
    texts = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(one for one in texts if isinstance(one, str) and is_label(one))


def _suggestion(kind: str, kinds: list[str]) -> str:
    """Return a suggestion for an error message: kinds with similar names, or otherwise the first twelve kinds."""
    spelled = {name.lower(): name for name in kinds[:_MAX_COMPARED]}
    import difflib  # noqa: PLC0415  # imported only after a mistake, because the import would slow down each start

    similar = [spelled[name] for name in difflib.get_close_matches(kind.lower(), spelled, n=3)]
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    more = ", …" if len(kinds) > _MAX_SHOWN else ""
    return f"it has {', '.join(kinds[:_MAX_SHOWN]) or 'no kinds'}{more}"


def _not_found(message: str, where: str) -> NotFoundError:
    return NotFoundError(message, code=404, reason="NotFound", where=where)
