"""Custom kinds for contract tests: a definition is created, and served a moment later."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from trioformer.client import Client
from trioformer.errors import NotFoundError, TooManyRequestsError
from trioformer.models import Unstructured, from_dict, unstructured_kind
from trioformer.models.apiextensions_v1 import CustomResourceDefinition

numbers = itertools.count()


@asynccontextmanager
async def serve_kind(
    client: Client,
    schema: dict[str, Any] | None = None,
    *,
    kind: str = "Widget",
    singular: str = "",
    subresources: dict[str, Any] | None = None,
    namespaced: bool = True,
    **version: object,
) -> AsyncIterator[type[Unstructured]]:
    """Create a definition of a new group, wait until the kind is served, and delete it at the end.

    Args:
        client: A client of the server.
        schema: The ``openAPIV3Schema``; None accepts every object.
        kind: Such as ``Widget``; the plural is ``widgets``.
        singular: The singular name; the default is such as ``widget``.
        subresources: Such as ``{"status": {}}``.
        namespaced: The scope.
        version: More members of the version, such as ``selectableFields``.
    """
    group, plural = f"c{next(numbers)}-{os.getpid()}.example.com", f"{kind.lower()}s"
    preserved = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or preserved}}
    if subresources is not None:
        served["subresources"] = subresources
    spec = {
        "group": group,
        "scope": "Namespaced" if namespaced else "Cluster",
        "names": {"plural": plural, "singular": singular or kind.lower(), "kind": kind, "listKind": f"{kind}List"},
        "versions": [served | version],
    }
    definitions = client.api(CustomResourceDefinition)
    name = f"{plural}.{group}"
    await definitions.create(from_dict(CustomResourceDefinition, {"metadata": {"name": name}, "spec": spec}))
    made = unstructured_kind(f"{group}/v1", kind, plural=plural, namespaced=namespaced)
    try:
        await _wait_until_served(client, made)
        yield made
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
            await definitions.delete(name)


async def _wait_until_served(client: Client, kind: type[Unstructured]) -> None:
    with trio.fail_after(30):
        while True:
            try:
                await client.api(kind).list()
            except (NotFoundError, TooManyRequestsError):
                await trio.sleep(0.1)
            else:
                return
