"""lightkube: a list and a watch of its synchronous client, which is the faster one; it has no informer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import crud
import measure
from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import PatchType
from listwatch import CAMEL, Store, follow_sync


def crud_of(client: Client, name: str) -> None:
    client.create(ConfigMap(metadata=ObjectMeta(name=name), data=crud.DATA), namespace=crud.NAMESPACE)
    client.get(ConfigMap, name, namespace=crud.NAMESPACE)
    client.patch(ConfigMap, name, crud.PATCH, namespace=crud.NAMESPACE, patch_type=PatchType.MERGE)
    client.delete(ConfigMap, name, namespace=crud.NAMESPACE)


def main() -> None:
    options = measure.options()
    client = Client(config=KubeConfig.from_file(options.kubeconfig), trust_env=False)
    if options.workload == "crud":
        crud.drive_threads(options, partial(crud_of, client))

    def list_all(store: Store) -> str:
        listing = client.list(Pod, namespace="*")
        for pod in listing:
            store[CAMEL.key(pod)] = pod
        return str(listing.resourceVersion)

    def events(version: str) -> Iterator[Pod]:
        for _, pod in client.watch(Pod, namespace="*", resource_version=version):
            yield pod

    follow_sync(options, CAMEL, list_all, events)


if __name__ == "__main__":
    main()
