"""Discovery of all resources that a server serves.

kube-apiserver 1.26 and newer responds to requests for ``/api`` and ``/apis`` with all groups, versions and resources,
including the resources of aggregated servers. Each response is an ``APIGroupDiscoveryList``, in version ``v2beta1``
until Kubernetes 1.29, and in version ``v2`` since Kubernetes 1.30.

If the server of an aggregated group, such as ``metrics.k8s.io``, is down, kube-apiserver marks the versions of the
group as stale. The other groups are still found.

Source: client-go ``discovery/discovery_client.go`` and ``aggregated_discovery.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast, final

import attrs

from .._util import Slices
from ..errors import (
    ForbiddenError,
    NotFoundError,
    StatusError,
)
from ..models import ResourceInfo
from ..models._internal import (
    Raw,
    decode,
    is_label,
    is_subdomain,
    is_version,
    kind_problem,
    level_decoder,
    list_items,
)
from ..transport._internal import Transport
from ._api_resources import ApiResources
from ._discovery import resource_info, text_in
from .bodies._responses import check, raise_failure, unexpected_response

__all__ = ["discover_all"]

_WHERE: Final = "discover the resources"
_ACCEPT: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_MAX_RESOURCES: Final = 50_000
"""The maximum number of resources in all API versions. A cluster with 1,000 custom kinds has a few thousand."""
_MAX_ENTRY: Final = 64 * 1024
"""The maximum size in bytes of one resource's entry. Most entries are a few hundred bytes long."""
_STALE: Final = "the server of the group does not respond"

_list_of: Final = level_decoder(("kind", "items"))
_group_of: Final = level_decoder(("metadata", "versions"))
_version_of: Final = level_decoder(("version", "resources", "freshness"))


@final
@attrs.define(eq=False)
class _Version:
    """One version of an API group."""

    group: str
    version: str
    is_preferred: bool
    resources: list[ResourceInfo] = attrs.field(factory=list)
    failure: str = ""
    """The reason why resources of this version may be missing or outdated, or an empty string."""

    @property
    def name(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


async def discover_all(transport: Transport, known: ApiResources | None = None) -> ApiResources:
    """Find all resources of a server with two requests.

    Args:
        transport: The transport that sends the requests.
        known: The resources that were found before. If a version cannot be discovered now, its resources are kept.

    Raises:
        StatusError: The server rejected the requests.
        UnexpectedResponseError: A response is not a discovery document.
        LimitExceededError: A response is too long.
        ConnectionFailedError: No complete response arrived.
    """
    versions: list[_Version] = []
    rejected: list[StatusError] = []
    for path in ("/api", "/apis"):
        try:
            versions += await _versions_at(transport, path)
        except (NotFoundError, ForbiddenError) as error:  # an aggregated server does not have a core group
            rejected.append(error)
    if len(rejected) == 2:
        raise rejected[-1]
    before: dict[tuple[str, str], list[ResourceInfo]] = {}
    for info in known.resources if known is not None else ():
        before.setdefault((info.group, info.version), []).append(info)
    for one in versions:
        if one.failure and not one.resources:
            one.resources = before.get((one.group, one.version), [])
    in_order = sorted(versions, key=lambda one: not one.is_preferred)
    return ApiResources(
        resources=tuple(info for one in in_order for info in one.resources),
        failures={one.name: one.failure for one in versions if one.failure},
    )


async def _versions_at(transport: Transport, path: str) -> list[_Version]:
    where = f"{_WHERE} of {path}"
    response = await transport.request("GET", path, accept=_ACCEPT, where=where)
    check(response, method="GET", where=where)
    raise_failure(response, response.body, where=where)
    try:
        kind, items = _list_of(response.body)
        found = await _versions_in(items) if bytes(kind) == b'"APIGroupDiscoveryList"' else None
    except (ValueError, RecursionError):
        found = None
    if found is None:
        problem = f"not a list of API groups with at most {_MAX_RESOURCES} resources"
        raise unexpected_response(response, where, problem)
    return found


async def _versions_in(items: Raw) -> list[_Version] | None:
    """Return the versions in a list of API groups, or None if there are too many resources.

    The resources are decoded one by one, with checkpoints.
    """
    versions: list[_Version] = []
    slices = Slices()
    count = 0
    for item in list_items(items):
        metadata, raws = _group_of(item)
        group = text_in(_mapping(metadata), "name")
        for number, raw in enumerate(list_items(raws) if memoryview(raws) else ()):
            version, resources, freshness = _version_of(raw)
            name = _text(version)
            if not _is_valid(group, name):
                continue
            one = _Version(group, name, is_preferred=number == 0)
            one.failure = _STALE if _text(freshness) == "Stale" else ""
            versions.append(one)
            for entry in list_items(resources) if memoryview(resources) else ():
                if count == _MAX_RESOURCES:
                    return None
                count += 1
                if len(memoryview(entry)) <= _MAX_ENTRY:
                    one.resources += _resource(one, _mapping(entry))
                if slices.is_over():
                    await slices.checkpoint()
    return versions


def _resource(version: _Version, entry: Mapping[str, object]) -> Iterator[ResourceInfo]:
    plural, of_kind = text_in(entry, "resource"), entry.get("responseKind")
    kind = text_in(cast("dict[str, object]", of_kind), "kind") if isinstance(of_kind, dict) else ""
    if not is_label(plural) or kind_problem(kind):
        return
    listed = entry.get("subresources")
    below = cast("list[object]", listed) if isinstance(listed, list) else []
    subresources = [text_in(cast("dict[str, object]", one), "subresource") for one in below if isinstance(one, dict)]
    # resource_info() expects the member names of a resource list.
    members = {**entry, "namespaced": entry.get("scope") == "Namespaced", "singularName": entry.get("singularResource")}
    yield resource_info(version.group, version.version, plural, kind, members, subresources)


def _mapping(raw: Raw) -> dict[str, object]:
    found: object = decode(raw) if memoryview(raw) else {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _text(raw: Raw) -> str:
    found: object = decode(raw) if memoryview(raw) else ""
    return found if isinstance(found, str) else ""


def _is_valid(group: str, version: str) -> bool:
    return is_version(version) and (not group or is_subdomain(group))
