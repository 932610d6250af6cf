"""Step 3: react to every change of a pod, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys

import trio

from trioformer import (
    Added,
    Client,
    Deleted,
    Lister,
    SharedInformerFactory,
    Updated,
    open_client,
    run,
)
from trioformer.models.conditions import is_condition_true
from trioformer.models.core_v1 import Pod
from trioformer.testing import open_simulated_cluster


def app_of(pod: Pod) -> list[str]:
    """Return the key of the app of a pod, such as ``default/web``, or nothing."""
    app = pod.metadata.labels.get("app")
    return [f"{pod.namespace}/{app}"] if app else []


def count_ready(pods: Lister[Pod], app: str) -> int:
    found = pods.by_index("app", app)
    return sum(is_condition_true(pod.status.conditions, "Ready") for pod in found)


def report(pods: Lister[Pod], pod: Pod, change: str) -> None:
    for app in app_of(pod):
        print(f"{app}: {count_ready(pods, app)} ready; {pod.name} {change}")


async def serve(client: Client) -> None:
    factory = SharedInformerFactory(client)
    pods = factory.informer(Pod, indexers={"app": app_of})
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)  # returns when all pods are in the cache
        with pods.subscribe() as notifications:
            async for notification in notifications:
                match notification:
                    case Added(object=pod):
                        report(pods.lister, pod, "is new")
                    case Updated(new=pod):
                        report(pods.lister, pod, "has changed")
                    case Deleted(object=pod):
                        report(pods.lister, pod, "is gone")


async def main(embedded: bool) -> None:
    async with open_simulated_cluster() if embedded else open_client() as client:
        await serve(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="simulate a cluster")
    sys.exit(run(main, parser.parse_args().embedded))
