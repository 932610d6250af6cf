"""A pod, and the API of pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from trioformer.client import Api, Client, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod, serve_http


def pod(name: str = "web-0", *containers: str, node: str = "node-1", **metadata: object) -> Pod:
    spec = {"nodeName": node or None, "containers": [{"name": each} for each in containers or ("main",)]}
    return from_dict(Pod, {"metadata": {"name": name, **metadata}, "spec": spec})


@pytest.fixture
def web(api_server: APIServer) -> ScriptedPod:
    """The pod "web-0", on a node."""
    api_server.create(pod())
    return api_server.script_pod("web-0")


@pytest.fixture
def pods(client: Client) -> Api[Pod]:
    return client.api(Pod, namespace="default")


@asynccontextmanager
async def either(is_socket: bool, server: APIServer, in_memory: Api[Pod]) -> AsyncIterator[Api[Pod]]:
    """Yield the API of a server on a socket, or the one in memory."""
    if not is_socket:
        yield in_memory
        return
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        async with open_client(ClusterConfig(server=url)) as client:
            yield client.api(Pod, namespace="default")
        nursery.cancel_scope.cancel()
