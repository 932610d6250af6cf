"""Clients with scripted responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.scripted_http import InMemory, Reply, response
from trioformer.client import Client, ClientOptions, open_client
from trioformer.kubeconfig import ClusterConfig


@asynccontextmanager
async def client_of(
    *replies: Reply | str, token: str | None = None, **options: Any
) -> AsyncIterator[tuple[Client, InMemory]]:
    """Open a client that receives these replies in turn; a text is the body of a success."""
    transport = InMemory([response(200, reply) if isinstance(reply, str) else reply for reply in replies])
    config = ClusterConfig(server="https://api.test", token=token)
    async with open_client(config, http_transport=transport, options=ClientOptions(**options)) as client:
        yield client, transport
