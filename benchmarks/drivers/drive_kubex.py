"""kubex on asyncio and aiohttp, its faster backend: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial

import crud
import measure
from kubex.api import Api
from kubex.client import create_client
from kubex.core.patch import MergePatch
from kubex.k8s.v1_36.core.v1.config_map import ConfigMap
from kubex.k8s.v1_36.core.v1.pod import Pod
from listwatch import SNAKE, Store, follow


async def crud_of(api: Api[ConfigMap], name: str) -> None:
    made = {"metadata": {"name": name, "namespace": crud.NAMESPACE}, "data": crud.DATA}
    await api.create(ConfigMap.model_validate(made))
    await api.get(name)
    await api.patch(name, MergePatch(ConfigMap.model_validate({"metadata": {"name": name}, **crud.PATCH})))
    await api.delete(name)


async def main() -> None:
    options = measure.options()
    os.environ["KUBECONFIG"] = options.kubeconfig
    async with await create_client() as client:
        if options.workload == "crud":
            await crud.drive(options, partial(crud_of, Api(ConfigMap, client=client, namespace=crud.NAMESPACE)))
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
