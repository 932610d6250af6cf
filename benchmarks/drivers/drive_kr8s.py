"""kr8s: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import crud
import kr8s.asyncio
import measure
from kr8s.asyncio.objects import ConfigMap
from listwatch import CAMEL, Store, follow


async def crud_of(api: kr8s.asyncio.Api, name: str) -> None:
    metadata = {"name": name, "namespace": crud.NAMESPACE}
    await (await ConfigMap({"metadata": metadata, "data": crud.DATA}, api=api)).create()
    read = await ConfigMap.get(name, namespace=crud.NAMESPACE, api=api)
    await read.patch(crud.PATCH)
    await read.delete()


async def main() -> None:
    options = measure.options()
    api = await kr8s.asyncio.api(kubeconfig=options.kubeconfig)
    if options.workload == "crud":
        await crud.drive(options, partial(crud_of, api))

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
