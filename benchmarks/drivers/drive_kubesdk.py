"""kubesdk: a list and a watch; it has no informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import crud
import measure
from kube_models.api_v1.io.k8s.api.core.v1 import ConfigMap, Pod
from kube_models.api_v1.io.k8s.apimachinery.pkg.apis.meta.v1 import ObjectMeta
from kubesdk import (
    K8sQueryParams,
    KubeConfig,
    create_k8s_resource,
    delete_k8s_resource,
    get_k8s_resource,
    login,
    update_k8s_resource,
    watch_k8s_resources,
)
from listwatch import CAMEL, Store, follow


async def crud_of(name: str) -> None:
    metadata = ObjectMeta(name=name, namespace=crud.NAMESPACE)
    await create_k8s_resource(ConfigMap(metadata=metadata, data=crud.DATA))
    await get_k8s_resource(ConfigMap, name, crud.NAMESPACE)
    await update_k8s_resource(ConfigMap(metadata=metadata, data=crud.PATCH["data"]))
    await delete_k8s_resource(ConfigMap, name, crud.NAMESPACE)


async def main() -> None:
    options = measure.options()
    await login(KubeConfig(path=options.kubeconfig))
    if options.workload == "crud":
        await crud.drive(options, crud_of)

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
