"""kr8s: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import kr8s.asyncio
import measure
from listwatch import CAMEL, Store, follow


async def main() -> None:
    options = measure.options()
    api = await kr8s.asyncio.api(kubeconfig=options.kubeconfig)

    async def list_all(store: Store) -> str:
        newest = 0
        async for pod in api.get("pods", namespace=kr8s.ALL):
            store[CAMEL.key(pod)] = pod
            newest = max(newest, int(pod.metadata.resourceVersion))
        return str(newest)  # it does not tell the list's own

    async def events(version: str) -> AsyncIterator[Any]:
        async for _, pod in api.watch("pods", namespace=kr8s.ALL, since=version):
            yield pod

    await follow(options, CAMEL, list_all, events)


if __name__ == "__main__":
    asyncio.run(main())
