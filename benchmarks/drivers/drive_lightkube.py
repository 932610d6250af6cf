"""lightkube: a list and a watch of its synchronous client, which is the faster one; it has no informer."""

from __future__ import annotations

from collections.abc import Iterator

import measure
from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Pod
from listwatch import CAMEL, Store, follow_sync


def main() -> None:
    options = measure.options()
    client = Client(config=KubeConfig.from_file(options.kubeconfig), trust_env=False)

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
