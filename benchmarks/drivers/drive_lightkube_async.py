"""lightkube: a list and a watch of its asynchronous client; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import measure
from lightkube import AsyncClient, KubeConfig
from lightkube.resources.core_v1 import Pod
from listwatch import CAMEL, Store, follow


async def main() -> None:
    options = measure.options()
    client = AsyncClient(config=KubeConfig.from_file(options.kubeconfig), trust_env=False)

    async def list_all(store: Store) -> str:
        listing = client.list(Pod, namespace="*")
        async for pod in listing:
            store[CAMEL.key(pod)] = pod
        return str(listing.resourceVersion)

    async def events(version: str) -> AsyncIterator[Pod]:
        async for _, pod in client.watch(Pod, namespace="*", resource_version=version):
            yield pod

    await follow(options, CAMEL, list_all, events)


if __name__ == "__main__":
    asyncio.run(main())
