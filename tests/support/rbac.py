"""Which permissions a program needs, and which the roles in its manifests give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import attrs
import httpx

from trioformer.testing._serving._requests import read_request

Permission: TypeAlias = tuple[str, str, str]
"""Group, resource with subresource, and verb."""


@attrs.define(eq=False)
class PermissionRecorder(httpx.AsyncBaseTransport):
    """A transport that records what kube-apiserver would ask RBAC about the requests of its client."""

    inner: httpx.AsyncBaseTransport
    used: dict[Permission, set[str | None]] = attrs.field(factory=dict)
    """In which namespaces each was used; None is all of them, or an object without namespace."""
    names: dict[Permission, set[str | None]] = attrs.field(factory=dict)
    """For which names."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.inner.handle_async_request(request)
        url = request.url
        record = read_request(request.method, url.path, url.query, user_agent="", time=0.0)
        if record.is_resource:
            # To apply what does not exist needs both.
            verbs = [record.verb, *(["create"] if record.verb == "patch" and response.status_code == 201 else [])]
            resource = record.resource + (f"/{record.subresource}" if record.subresource else "")
            for verb in verbs:
                permission = record.group, resource, verb
                self.used.setdefault(permission, set()).add(record.namespace)
                self.names.setdefault(permission, set()).add(_name_of(record.name, record.query))
        return response


def _name_of(name: str | None, query: Mapping[str, str]) -> str | None:
    """Return the name that RBAC compares: that in the path, or the only one that a field selector selects."""
    key, _, value = query.get("fieldSelector", "").partition("=")
    return name or (value.lstrip("=") if key == "metadata.name" else None)


def permissions_of(rules: Iterable[Mapping[str, Any]]) -> set[Permission]:
    """Return what the rules of a role permit, all together."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
