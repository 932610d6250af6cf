"""kubex on asyncio and aiohttp, its faster backend: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import measure
from kubex.api import Api
from kubex.client import create_client
from kubex.k8s.v1_36.core.v1.pod import Pod
from listwatch import SNAKE, Store, follow


async def main() -> None:
    options = measure.options()
    os.environ["KUBECONFIG"] = options.kubeconfig
    async with await create_client() as client:
        api: Api[Pod] = Api(Pod, client=client)

        async def list_all(store: Store) -> str:
            listing = await api.list(resource_version="0", request_timeout=None)
            for pod in listing.items:
                store[SNAKE.key(pod)] = pod
            return str(listing.metadata.resource_version)

        async def events(version: str) -> AsyncIterator[object]:
            async for event in api.watch(resource_version=version, request_timeout=None):
                yield event.object

        await follow(options, SNAKE, list_all, events)


if __name__ == "__main__":
    asyncio.run(main())
