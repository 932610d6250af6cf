"""kubesdk: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import measure
from kube_models.api_v1.io.k8s.api.core.v1 import Pod
from kubesdk import K8sQueryParams, KubeConfig, get_k8s_resource, login, watch_k8s_resources
from listwatch import CAMEL, Store, follow


async def main() -> None:
    options = measure.options()
    await login(KubeConfig(path=options.kubeconfig))

    async def list_all(store: Store) -> str:
        listing = await get_k8s_resource(Pod)
        for pod in listing.items:
            store[CAMEL.key(pod)] = pod
        return str(listing.metadata.resourceVersion)

    async def events(version: str) -> AsyncIterator[Any]:
        async for event in watch_k8s_resources(Pod, params=K8sQueryParams(resourceVersion=version)):
            yield event.object

    await follow(options, CAMEL, list_all, events)


if __name__ == "__main__":
    asyncio.run(main())
