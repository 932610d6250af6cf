"""Find and request the objects that command line arguments name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

import attrs

from ._failures import CommandError
from ._printing import age_of

if TYPE_CHECKING:
    from ..client import Client
    from ..client._internal import ApiResources
    from ..models import ResourceInfo

__all__ = [
    "TABLES",
    "Selection",
    "Target",
    "add_selector_flags",
    "as_table",
    "check_name",
    "find_resource",
    "group_kind",
    "items_of",
    "request_pages",
    "select",
]

TABLES: Final = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
"""The ``Accept`` header that requests a table from the server."""
_PAGE: Final = "500"


@final
@attrs.frozen
class Target:
    """The target of a request: one object, or all objects of a kind."""

    resource: ResourceInfo
    """The resource of the kind."""
    namespace: str | None
    """The namespace, or None for all namespaces and for cluster-scoped kinds."""
    name: str = ""
    """The name of the object, or an empty string for all objects."""

    def path(self, subresource: str = "") -> str:
        """Return the path of the request."""
        namespace = None if self.namespace is None else quote(self.namespace, safe="")
        return self.resource.path(
            namespace=namespace, name=quote(self.name, safe="") or None, subresource=subresource or None
        )


@final
@attrs.frozen
class Selection:
    """The objects that command line arguments name."""

    targets: tuple[Target, ...]
    """The targets of the requests, in the order of the arguments."""
    is_single: bool
    """Whether the arguments name one object."""


def add_selector_flags(parser: Any) -> None:
    """Add the flags that select objects."""
    parser.add_argument("-l", "--selector", default="", help="Select objects by their labels")
    parser.add_argument("--field-selector", default="", help="Select objects by their fields")
    parser.add_switch("-A", "--all-namespaces", help="Use all namespaces")


def group_kind(resource: ResourceInfo) -> str:
    """Return the kind and group of a resource in lowercase, such as ``pod`` or ``deployment.apps``."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def find_resource(served: ApiResources, text: str) -> ResourceInfo:
    """Return the resource with this name. Every form of the name that kubectl accepts is supported."""
    try:
        found = served.find(text)
    except ValueError:
        found = None
    if found is None:
        name = text.partition(".")[0]
        failed = f" (without {', '.join(served.failures)}, which cannot be discovered)" if served.failures else ""
        raise CommandError(f'the server doesn\'t have a resource type "{name}"{failed}')
    return found


async def select(
    client: Client,
    arguments: Sequence[str],
    *,
    namespace: str | None,
    selector: str = "",
    field_selector: str = "",
) -> Selection:
    """Return the objects that arguments such as ``pods web-0``, ``deploy/web`` or ``pods,services`` name.

    Args:
        client: The client that discovers the resources.
        arguments: One or more command line arguments.
        namespace: The namespace, or None for all namespaces.
        selector: A label selector, which is not allowed together with names.
        field_selector: A field selector, which is not allowed together with names.

    Raises:
        CommandError: If the arguments are not valid, or the server does not have the resource.
        TrioformerError: If the resources of the server cannot be discovered.
    """
    pairs = [each.partition("/")[::2] for each in arguments if "/" in each]
    kinds = arguments[0].split(",")
    if not pairs and len(arguments) > 1:
        pairs = [(kind, name) for kind in kinds for name in arguments[1:]]
    elif pairs and len(pairs) != len(arguments):
        raise CommandError("write either TYPE NAME... or TYPE/NAME..., not both")
    served = await client.api_resources()
    if pairs:
        if selector or field_selector:
            raise CommandError("a selector cannot be combined with the names of objects")
        if namespace is None:
            raise CommandError("an object cannot be selected by name in all namespaces; use -n instead of -A")
        targets = [_target(find_resource(served, kind), namespace, name) for kind, name in pairs]
        return Selection(tuple(targets), len(pairs) == 1)
    named = [name for kind in kinds for name in [str(info) for info in served if kind in info.categories] or [kind]]
    resources = dict.fromkeys(find_resource(served, name) for name in named)
    return Selection(tuple(Target(each, namespace if each.namespaced else None) for each in resources), False)


def check_name(name: str) -> None:
    """Check that the name of an object can be used as a path segment.

    An empty name would select all objects.
    """
    if not name or name in (".", "..") or "/" in name or "%" in name:
        raise CommandError(f"{name!r} is not a valid object name")


def _target(resource: ResourceInfo, namespace: str, name: str) -> Target:
    check_name(name)
    return Target(resource, namespace if resource.namespaced else None, name)


# --- requests ---


async def request_pages(
    client: Client, target: Target, params: Mapping[str, str], *, accept: str
) -> list[dict[str, Any]]:
    """Request an object, or all pages of a list.

    Raises:
        CommandError: If the response is not a JSON object.
        TrioformerError: If the server rejects the request, or no response arrives.
    """
    pages: list[dict[str, Any]] = []
    query = {} if target.name else {**params, "limit": _PAGE}
    while True:
        page: Any = (await client.request("GET", target.path(), params=query, accept=accept)).json()
        if not isinstance(page, dict):
            raise CommandError(f"unexpected response to GET {target.path()}: not a JSON object")
        pages.append(page)
        token = str((page.get("metadata") or {}).get("continue") or "")
        if target.name or not token:
            return pages
        query["continue"] = token


def as_table(page: dict[str, Any]) -> dict[str, Any]:
    """Return the table in a response, or a table of names and ages if the server does not support tables."""
    if page.get("kind") == "Table":
        return page
    objects = page["items"] if isinstance(page.get("items"), list) else [page]
    columns = [{"name": "Name", "type": "string", "format": "name"}, {"name": "Age", "type": "string"}]
    rows = []
    for obj in objects:
        metadata = obj.get("metadata") or {}
        rows.append({"cells": [metadata.get("name", ""), age_of(metadata.get("creationTimestamp"))], "object": obj})
    return {"kind": "Table", "columnDefinitions": columns, "rows": rows}


def items_of(page: dict[str, Any], target: Target) -> list[dict[str, Any]]:
    """Return the objects in a response, and add the API version and kind to the items of a list."""
    if target.name or not isinstance(page.get("items"), list):
        return [page]
    head = {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
    return [{**head, **item} for item in page["items"]]
