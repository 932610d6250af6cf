"""Count what is in some namespaces, and go on where something may not be read.

Run it against the cluster that kubectl uses, with the namespaces' names::

    python examples/many_namespaces.py default kube-system
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import trio

from trioformer import Client, ReflectorOptions, SharedInformerFactory, open_client
from trioformer.models import metadata_kind
from trioformer.models.core_v1 import ConfigMap, Pod, Secret


async def count(client: Client, namespaces: Sequence[str]) -> list[str]:
    """Fill a cache for each kind, and say how much is in it, or why nothing is."""
    factory = SharedInformerFactory(
        client, namespace=namespaces, supervise=True, options=ReflectorOptions(grace_period=5)
    )
    factory.informer(Pod)
    for kind in (ConfigMap, Secret):
        factory.informer(metadata_kind(kind))  # to be counted, they need not be held whole
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)  # every informer has filled its cache, or has failed
        problems = factory.problems()
        lines = [
            f"{key}: {problems[key] if key in problems else len(informer.lister)}"
            for key, informer in factory.informers.items()
        ]
        nursery.cancel_scope.cancel()
    return lines


async def main() -> None:
    """Count in the namespaces that the command line names."""
    async with open_client() as client:
        print(*await count(client, sys.argv[1:] or ["default"]), sep="\n")


if __name__ == "__main__":
    trio.run(main)
