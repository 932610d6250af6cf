"""Count the objects in some namespaces, and continue when a kind is forbidden.

Run it against the cluster that kubectl uses, with the names of namespaces::

    python examples/many_namespaces.py default kube-system
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import trio

from trioformer import Client, ReflectorOptions, SharedInformerFactory, open_client, run
from trioformer.models import metadata_kind
from trioformer.models.core_v1 import ConfigMap, Pod, Secret


async def count(client: Client, namespaces: Sequence[str]) -> list[str]:
    """Fill a cache for each kind; returns the number of its objects, or the problem, as one line for each kind."""
    factory = SharedInformerFactory(
        client, namespace=namespaces, supervise=True, options=ReflectorOptions(grace_period=5)
    )
    factory.informer(Pod)
    for kind in (ConfigMap, Secret):
        factory.informer(metadata_kind(kind))  # counting needs no more than the metadata
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)  # every informer has synced or failed
        problems = factory.problems()
        lines = [
            f"{key}: {problems[key] if key in problems else len(informer.lister)}"
            for key, informer in factory.informers.items()
        ]
        nursery.cancel_scope.cancel()
    return lines


async def main() -> None:
    """Count the objects in the namespaces of the command line."""
    async with open_client() as client:
        print(*await count(client, sys.argv[1:] or ["default"]), sep="\n")


if __name__ == "__main__":
    sys.exit(run(main))
