"""kubernetes-asyncio: a list and its Watch; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import crud
import measure
from kubernetes_asyncio import client, config, watch
from listwatch import SNAKE, Store, follow


async def crud_of(api: client.CoreV1Api, name: str) -> None:
    made = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=crud.DATA)
    await api.create_namespaced_config_map(crud.NAMESPACE, made)
    await api.read_namespaced_config_map(name, crud.NAMESPACE)
    await api.patch_namespaced_config_map(name, crud.NAMESPACE, crud.PATCH)
    await api.delete_namespaced_config_map(name, crud.NAMESPACE)


async def main() -> None:
    options = measure.options()
    await config.load_kube_config(options.kubeconfig)
    async with client.ApiClient() as api_client:
        api = client.CoreV1Api(api_client)
        if options.workload == "crud":
            await crud.drive(options, partial(crud_of, api))

        async def list_all(store: Store) -> str:
            listing = await api.list_pod_for_all_namespaces(resource_version="0")
            for pod in listing.items:
                store[SNAKE.key(pod)] = pod
            return str(listing.metadata.resource_version)

        async def events(version: str) -> AsyncIterator[Any]:
            async with watch.Watch().stream(api.list_pod_for_all_namespaces, resource_version=version) as stream:
                async for event in stream:
                    yield event["object"]

        await follow(options, SNAKE, list_all, events)


if __name__ == "__main__":
    asyncio.run(main())
