"""Discovery of groups, versions and kinds, and the health endpoints.

kubectl requests the aggregated format (``apidiscovery.k8s.io/v2``) from ``/api`` and ``/apis``; other clients request
each group and version separately.  The server supports both formats.

The built-in kinds are listed as kube-apiserver lists them, in ``discovery.txt``, which ``tests/e2e/fetch_discovery.py``
writes.  Each line has a path and its document.  The list includes what the server does not serve.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import attrs

from ...models._internal import decode
from .._storage._definitions import version_order
from .._storage._kinds import Kinds, ServedKind
from .._storage._status import status_error
from .._storage._storage import JSONObject
from ._health import ENDPOINTS, health
from ._negotiation import clauses_of, encoding_of
from ._openapi import openapi_document, openapi_paths, openapi_response, openapi_v2
from ._requests import RequestRecord
from ._responses import JSON_TYPE, Response, json_response, not_found_page

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
            return json_response(decode(kinds.release.table("discovery.txt")["version"]))
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
            return openapi_v2(kinds.release, accept)
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
    paths = kinds.release.table("discovery.txt")
    builtin = [path.split("/")[1] for path in paths if path.startswith("apis/")]
    return list(dict.fromkeys([*builtin, *sorted(served.info.group for served in kinds if not served.is_builtin)]))


def _versions(kinds: Kinds, group: str) -> list[str]:
    """Return the versions of a group in order of preference: v2 before v1, and v1 before v1beta1."""
    prefix = f"apis/{group}/" if group else "api/"
    paths = kinds.release.table("discovery.txt")
    builtin = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    custom = [served.info.version for served in kinds if served.info.group == group]
    return sorted(dict.fromkeys([*builtin, *custom]), key=version_order, reverse=True)


def _group(kinds: Kinds, group: str) -> JSONObject:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(kinds, group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _custom_entries(served: ServedKind) -> Iterator[JSONObject]:
    """Yield the entries of a custom kind and of its subresources."""
    info = served.info
    names: JSONObject = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    version = served.storage_version or info.version
    stored = hashlib.sha256(f"{info.group}/{version}/{info.kind}".encode()).digest()
    yield {
        "name": info.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
        **{key: value for key, value in names.items() if value},
        "storageVersionHash": base64.b64encode(stored[:8]).decode(),
    }
    for name in info.subresources:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        yield {
            "name": f"{info.plural}/{name}",
            "singularName": "",
            "namespaced": info.namespaced,
            **(scale if name == "scale" else {"kind": info.kind}),
            "verbs": ["get", "patch", "update"],
        }


def _custom(kinds: Kinds, group: str, version: str) -> list[JSONObject]:
    found = [served for served in kinds if (served.info.group, served.info.version) == (group, version)]
    found.sort(key=lambda served: served.info.plural)
    return [entry for served in found if not served.is_builtin for entry in _custom_entries(served)]


def _builtin(kinds: Kinds, group: str, version: str) -> JSONObject:
    group_version = f"{group}/{version}" if group else version
    document = kinds.release.table("discovery.txt").get(f"{'apis' if group else 'api'}/{group_version}")
    empty = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": []}
    found: JSONObject = empty if document is None else decode(document)
    return found


def _resource_list(kinds: Kinds, group: str, version: str) -> Response | None:
    builtin = _builtin(kinds, group, version)
    entries = [*builtin["resources"], *_custom(kinds, group, version)]
    return json_response({**builtin, "resources": entries}) if entries else None


def _aggregated(kinds: Kinds, groups: list[str]) -> Response:
    items: list[JSONObject] = []
    for group in groups:
        versions = []
        for version in _versions(kinds, group):
            resources = _discovered(_builtin(kinds, group, version)["resources"], "", "")
            resources += _discovered(_custom(kinds, group, version), group, version)
            versions.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group} if group else {}, "versions": versions})
    listed = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return json_response(listed, content_type=_AGGREGATED)


def _discovered(entries: list[JSONObject], group: str, version: str) -> list[JSONObject]:
    """Return entries in the aggregated format, with the group and version of kinds that have none of their own."""
    resources: dict[str, JSONObject] = {}
    for entry in entries:
        plural, _, subresource = entry["name"].partition("/")
        kind = {
            "group": entry.get("group", group),
            "version": entry.get("version", version),
            "kind": entry["kind"],
        }
        if subresource:
            found = {"subresource": subresource, "responseKind": kind, "verbs": entry["verbs"]}
            resources[plural].setdefault("subresources", []).append(found)
            continue
        resources[plural] = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if entry["namespaced"] else "Cluster",
            "singularResource": entry["singularName"],
            **{key: entry[key] for key in ("verbs", "shortNames", "categories") if key in entry},
        }
    return list(resources.values())


def _paths(kinds: Kinds) -> list[str]:
    apis = [served.info.path().rpartition("/")[0] for served in kinds]
    groups = [f"/apis/{group}" for group in _groups(kinds)]
    own = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
    return sorted({*apis, *groups, *own})
