"""Step 1: print the pods of a cluster."""

from __future__ import annotations

import argparse
import sys

import trio

from trioformer import Client, SharedInformerFactory, open_client, run
from trioformer.models.core_v1 import Pod
from trioformer.testing import open_simulated_cluster


async def serve(client: Client) -> None:
    factory = SharedInformerFactory(client)
    pods = factory.informer(Pod)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)  # returns when all pods are in the cache
        for pod in pods.lister:
            print(f"{pod.name} on {pod.spec.node_name}: {pod.status.phase}")
        nursery.cancel_scope.cancel()  # ends factory.run


async def main(embedded: bool) -> None:
    async with open_simulated_cluster() if embedded else open_client() as client:
        await serve(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="simulate a cluster")
    sys.exit(run(main, parser.parse_args().embedded))
