"""The requests of ``get`` for objects and tables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import BadRequestError
from .._clock import age_of
from .._failures import CommandError
from .._resources import Target, group_kind
from ..printing import TableOptions

if TYPE_CHECKING:
    from ...client import Client

__all__ = ["as_table", "items_of", "options_for", "query_of", "request_pages"]


def options_for(flags: argparse.Namespace, target: Target, *, with_kind: bool) -> TableOptions:
    """Return what is added to the table of a target."""
    labels = tuple(label for each in flags.label_columns for label in each.split(","))
    return TableOptions(
        has_headers=not flags.no_headers,
        is_wide=flags.output == "wide",
        has_namespace=flags.all_namespaces and target.resource.namespaced,
        group_kind=group_kind(target.resource) if with_kind or flags.show_kind else "",
        label_columns=labels,
        has_labels=flags.show_labels,
        has_events=flags.output_watch_events,
    )


def query_of(flags: argparse.Namespace, target: Target, *, as_table: bool) -> dict[str, str]:
    """Return the query of the request for a target."""
    params: dict[str, str] = {}
    if not target.name:
        if flags.selector:
            params["labelSelector"] = flags.selector
        if flags.field_selector:
            params["fieldSelector"] = flags.field_selector
        if flags.chunk_size != "0" and not (as_table and flags.sort_by):
            params["limit"] = flags.chunk_size
    if as_table and flags.sort_by:
        params["includeObject"] = "Object"
    return params


async def request_pages(
    client: Client, target: Target, params: dict[str, str], *, accept: str, subresource: str = ""
) -> list[dict[str, Any]]:
    """Request an object, or the pages of a list."""
    pages: list[dict[str, Any]] = []
    token = ""
    while True:
        query = {**params, "continue": token} if token else params
        try:
            response = await client.request("GET", target.path(subresource), params=query, accept=accept)
        except BadRequestError as exc:
            if not ("labelSelector" in params or "fieldSelector" in params):
                raise
            resource = target.resource
            version = resource.api_version if resource.group else f"/{resource.version}"
            raise CommandError(
                f'Error from server ({exc.reason}): Unable to find "{version}, '
                f'Resource={resource.plural}" that match label selector {_quoted(params.get("labelSelector", ""))}, '
                f"field selector {_quoted(params.get('fieldSelector', ''))}: {exc.status_message}",
                is_bare=True,
            ) from exc
        page = response.json()
        if not isinstance(page, dict):
            raise CommandError(f"unexpected response to GET {target.path(subresource)}: not an object of the API")
        pages.append(page)
        token = str((page.get("metadata") or {}).get("continue") or "") if not target.name else ""
        if not token:
            return pages


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def as_table(page: dict[str, Any]) -> dict[str, Any]:
    """Return the table of a response, also of a server that sends none."""
    if page.get("kind") == "Table":
        return page
    objects = page["items"] if isinstance(page.get("items"), list) else [page]
    columns = [
        {"name": "Name", "type": "string", "format": "name", "priority": 0},
        {"name": "Age", "type": "string", "format": "", "priority": 0},
    ]
    rows = []
    for obj in objects:
        metadata = obj.get("metadata") or {}
        rows.append({"cells": [metadata.get("name", ""), _age(metadata)], "object": obj})
    return {"kind": "Table", "columnDefinitions": columns, "rows": rows}


def _age(metadata: Mapping[str, Any]) -> str:
    return age_of(metadata.get("creationTimestamp"))


def items_of(page: dict[str, Any], target: Target) -> list[dict[str, Any]]:
    """Return the objects of a response, each with its kind, which items of a list have not."""
    if target.name or not isinstance(page.get("items"), list):
        return [page]
    head = {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
    return [{**head, **item} for item in page["items"]]
