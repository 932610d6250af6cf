"""Plain HTTP to an embedded API server, for tests that must not use trioformer's client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import httpx
import trio

from trioformer.models import ResourceInfo
from trioformer.testing import APIServer

URL = "http://embedded.invalid"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON: TypeAlias = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = {"content-type": "application/merge-patch+json"}

WIDGET = ResourceInfo(
    group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True, subresources=("status",)
)


def pod(name: str = "web-1", *, labels: dict[str, str] | None = None, **spec: Any) -> JSON:
    """Return a pod in the namespace ``default``; ``spec`` is added to its spec."""
    metadata: JSON = {"name": name, "namespace": "default", **({"labels": labels} if labels else {})}
    containers = [{"name": "web", "image": "nginx:1.27"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def config_map(name: str = "cm", *, namespace: str = "default", **more: Any) -> JSON:
    """Return a ConfigMap; ``more`` is added to its metadata."""
    metadata = {"name": name, "namespace": namespace, **more}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def merge_patch(patch: Any) -> dict[str, Any]:
    """Return the arguments of an httpx request with a merge patch."""
    return {"content": json.dumps(patch), "headers": MERGE}


def failure_of(response: httpx.Response) -> tuple[int, str, str]:
    """Check that a response is a failure Status; returns its code, reason and message."""
    status = response.json()
    assert status["kind"] == "Status"
    assert status["status"] == "Failure"
    assert status["code"] == response.status_code
    return response.status_code, status.get("reason", ""), status["message"]


@asynccontextmanager
async def http_client(server: APIServer) -> AsyncIterator[httpx.AsyncClient]:
    """Open an httpx client of a running embedded server."""
    async with httpx.AsyncClient(transport=server.http_transport(), base_url=URL, timeout=None) as client:
        yield client


@asynccontextmanager
async def running(server: APIServer) -> AsyncIterator[httpx.AsyncClient]:
    """Run an embedded server while the block runs; yields an httpx client of it."""
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with http_client(server) as client:
            yield client
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class WatchReader:
    """Reads the events of one watch; every HTTP chunk must be exactly one event."""

    response: httpx.Response

    async def event(self) -> tuple[str, JSON]:
        """Return the next event's type and object."""
        chunk = await self.chunk()
        assert chunk.count(b"\n") == 1
        assert chunk.endswith(b"\n")
        event = json.loads(chunk)
        assert set(event) == {"type", "object"}
        return event["type"], event["object"]

    async def events(self, count: int) -> list[tuple[str, str]]:
        """Return the types and names of the next events."""
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in [await self.event() for _ in range(count)]]

    async def chunk(self) -> bytes:
        """Return the next chunk; raises StopAsyncIteration at the end."""
        assert isinstance(self.response.stream, httpx.AsyncByteStream)
        return await self.response.stream.__aiter__().__anext__()

    async def rest(self) -> list[tuple[str, JSON]]:
        """Return all events until the response is completed."""
        events = []
        while True:
            try:
                events.append(await self.event())
            except StopAsyncIteration:
                return events


@asynccontextmanager
async def watching(server: APIServer, path: str, *, accept: str = "", **query: str | int) -> AsyncIterator[WatchReader]:
    """Open a watch without an httpx client, whose async generators would need to be closed."""
    params = {"watch": "1", **{name: str(value) for name, value in query.items()}}
    headers = {"accept": accept} if accept else {}
    request = httpx.Request("GET", URL + path, params=params, headers=headers)
    response = await server.http_transport().handle_async_request(request)
    try:
        yield WatchReader(response)
    finally:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        await response.stream.aclose()
