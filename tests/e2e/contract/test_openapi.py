"""The OpenAPI documents of an embedded and a real server are equal."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
import trio

from tests.e2e.contract.custom_kinds import serve_kind
from trioformer.client import Client
from trioformer.models import resource_of

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "description": "How large."}}}
    },
}


async def document(client: Client, path: str) -> dict[str, Any]:
    """Return a document.  A real server has that of a new kind a moment after it serves the kind."""
    with trio.fail_after(30):
        while True:
            paths = (await client.request("GET", "/openapi/v3")).json()["paths"]
            if path in paths:
                found: dict[str, Any] = (await client.request("GET", f"/openapi/v3/{path}")).json()
                return found
            await trio.sleep(0.2)


async def test_the_documents_of_built_in_kinds_are_equal(both_clients: tuple[Client, Client]) -> None:
    embedded, real = both_clients
    for path in ("api/v1", "apis/apps/v1", "apis/apps", "apis", "version"):
        assert await document(embedded, path) == await document(real, path)


@pytest.mark.parametrize("namespaced", [True, False])
@pytest.mark.parametrize("subresources", [None, {"status": {}}])
@pytest.mark.parametrize("schema", [SCHEMA, None])
async def test_the_documents_of_custom_kinds_are_equal(
    both_clients: tuple[Client, Client], *, namespaced: bool, subresources: dict[str, Any] | None, schema: Any
) -> None:
    documents, selectable = [], [] if schema is None else [{"jsonPath": ".spec.size"}]
    for client in both_clients:
        async with serve_kind(
            client, schema, namespaced=namespaced, subresources=subresources, selectableFields=selectable
        ) as kind:
            group = resource_of(kind).group
            found = await document(client, f"apis/{group}/v1")
            name = group.partition(".")[0]  # the documents have it in several forms
            forms = (name, name.replace("-", ""), name.replace("-", "").capitalize())
            text = json.dumps(found, sort_keys=True)
            documents.append(functools.reduce(lambda done, form: done.replace(form, "GROUP"), forms, text))
    assert documents[0] == documents[1]
