"""Discovery of groups, versions and kinds, and the health endpoints.

kubectl requests the aggregated format (``apidiscovery.k8s.io/v2``) from ``/api`` and ``/apis``; other clients request
each group and version separately.  The server supports both formats.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Final

import attrs

from .._storage._kinds import Kinds, ServedKind
from .._storage._parts import PARTS
from .._storage._status import status_error
from .._storage._storage import JSONObject
from ._health import ENDPOINTS, health
from ._negotiation import clauses_of, encoding_of
from ._openapi import openapi_document, openapi_paths, openapi_response, openapi_v2
from ._requests import RequestRecord
from ._responses import JSON_TYPE, Response, json_response, not_found_page

VERSION: JSONObject = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3+trioformer",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The response to ``/version``: the Kubernetes version that the server follows, marked as trioformer."""

_STATUS_VERBS = ["get", "patch", "update"]
_VERBS = {"binding": ["create"], "eviction": ["create"], "finalize": ["update"], "token": ["create"]}
_SERVED: Final = frozenset(("binding", "eviction", "scale", "token", *PARTS))
"""The subresources that discovery contains, without streams such as ``log`` and ``exec``."""
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def handle(kinds: Kinds, record: RequestRecord, accept: str, host: str) -> Response:
    """Handle a request whose path is not the path of a resource.

    Raises:
        APIStatusError: The method is not GET or HEAD (405).
    """
    parts = [part for part in record.path.split("/") if part]
    found = _find(kinds, record, parts, accept, host)
    if found is None:
        return not_found_page()
    if record.verb not in ("get", "head"):
        raise status_error(405, details={})
    return attrs.evolve(found, encoding=encoding_of(accept)) if found.content_type == JSON_TYPE else found


def _find(kinds: Kinds, record: RequestRecord, parts: list[str], accept: str, host: str) -> Response | None:
    match parts:
        case []:
            return json_response({"paths": _paths(kinds)})
        case ["version"]:
            return json_response(VERSION)
        case [endpoint, *check] if endpoint in ENDPOINTS:
            return health(endpoint, "/".join(check), record.query)
        case ["api"] if _wants_aggregated(accept):
            return _aggregated(kinds, [""])
        case ["api"]:
            address = {"clientCIDR": "0.0.0.0/0", "serverAddress": host}
            return json_response({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]})
        case ["apis"] if _wants_aggregated(accept):
            return _aggregated(kinds, _groups(kinds))
        case ["apis"]:
            groups = [_group(kinds, group) for group in _groups(kinds)]
            return json_response({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        case ["api", version]:
            return _resource_list(kinds, "", version)
        case ["apis", group] if group in _groups(kinds):
            return json_response({"kind": "APIGroup", "apiVersion": "v1", **_group(kinds, group)})
        case ["apis", group, version]:
            return _resource_list(kinds, group, version)
        case ["openapi", "v2"]:
            return openapi_v2(accept)
        case ["openapi", "v3"]:
            return json_response(openapi_paths(kinds))
        case ["openapi", "v3", *path] if document := openapi_document(kinds, "/".join(path)):
            return openapi_response(accept, {JSON_TYPE: lambda: document})
        case _:
            return None


def _wants_aggregated(accept: str) -> bool:
    wanted = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
    return any(wanted.items() <= parameters.items() for _, parameters in clauses_of(accept))


def _groups(kinds: Kinds) -> list[str]:
    return list(dict.fromkeys(served.info.group for served in kinds if served.info.group))


def _versions(kinds: Kinds, group: str) -> list[str]:
    """Return the versions of a group in order of preference: v2 before v1, and v1 before v1beta1."""
    versions = dict.fromkeys(served.info.version for served in kinds if served.info.group == group)
    return sorted(versions, key=_priority, reverse=True)


def _priority(version: str) -> tuple[int, int, int]:
    for rank, word in ((0, "alpha"), (1, "beta")):
        major, found, minor = version.removeprefix("v").partition(word)
        if found and major.isdecimal():
            return rank, int(major), int(minor or 0) if (minor or "0").isdecimal() else 0
    text = version.removeprefix("v")
    return (2, int(text), 0) if text.isdecimal() else (-1, 0, 0)


def _in(kinds: Kinds, group: str, version: str) -> list[ServedKind]:
    found = [served for served in kinds if (served.info.group, served.info.version) == (group, version)]
    return sorted(found, key=lambda served: served.info.plural)


def _group(kinds: Kinds, group: str) -> JSONObject:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(kinds, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _subresource_kind(served: ServedKind, subresource: str) -> tuple[JSONObject, list[str]]:
    group_kinds = {
        "scale": ("autoscaling", "v1", "Scale"),
        "binding": ("", "v1", "Binding"),
        "eviction": ("policy", "v1", "Eviction"),
        "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    }
    group, version, kind = group_kinds.get(subresource, ("", "", served.info.kind))
    verbs = _VERBS.get(subresource, _STATUS_VERBS)
    return {"group": group, "version": version, "kind": kind}, verbs


def _storage_hash(served: ServedKind) -> str:
    """Return the hash of the version in which the objects of a kind are stored, as kube-apiserver computes it."""
    info, conversion = served.info, served.conversion
    version = f"{info.group}/{served.storage_version or info.version}" if conversion is None else conversion.api_version
    text = f"{version if '/' in version else f'/{version}'}/{info.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _subresources(served: ServedKind) -> Iterable[str]:
    return (name for name in served.info.subresources if name in _SERVED)


def _resource_list(kinds: Kinds, group: str, version: str) -> Response | None:
    found = _in(kinds, group, version)
    if not found:
        return None
    resources: list[JSONObject] = []
    for served in found:
        info = served.info
        more: JSONObject = {"shortNames": list(info.short_names), "categories": list(info.categories)}
        resources.append(
            {
                "name": info.plural,
                "singularName": info.singular,
                "namespaced": info.namespaced,
                "kind": info.kind,
                "verbs": list(info.verbs),
                **{key: value for key, value in more.items() if value},
                **({"storageVersionHash": _storage_hash(served)} if served.is_stored else {}),
            }
        )
        for name in _subresources(served):
            kind, verbs = _subresource_kind(served, name)
            entry = {"name": f"{info.plural}/{name}", "singularName": "", "namespaced": info.namespaced}
            resources.append({**entry, **{key: text for key, text in kind.items() if text}, "verbs": verbs})
    group_version = f"{group}/{version}" if group else version
    listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    return json_response(listed)


def _aggregated(kinds: Kinds, groups: list[str]) -> Response:
    items: list[JSONObject] = []
    for group in groups:
        versions = []
        for version in _versions(kinds, group):
            resources = [_discovered(served) for served in _in(kinds, group, version)]
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group} if group else {}, "versions": versions})
    listed = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return json_response(listed, content_type=_AGGREGATED)


def _discovered(served: ServedKind) -> JSONObject:
    info = served.info
    subresources = []
    for name in _subresources(served):
        kind, verbs = _subresource_kind(served, name)
        subresources.append({"subresource": name, "responseKind": kind, "verbs": verbs})
    more = {
        "shortNames": list(info.short_names),
        "categories": list(info.categories),
        "subresources": subresources,
    }
    return {
        "resource": info.plural,
        "responseKind": {"group": info.group, "version": info.version, "kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": list(info.verbs),
        **{key: value for key, value in more.items() if value},
    }


def _api_paths(kinds: Kinds) -> list[str]:
    return list(dict.fromkeys(served.info.path().rpartition("/")[0].lstrip("/") for served in kinds))


def _paths(kinds: Kinds) -> list[str]:
    apis = [f"/{path}" for path in _api_paths(kinds)]
    groups = [f"/apis/{group}" for group in _groups(kinds)]
    own = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
    return sorted({*apis, *groups, *own})
