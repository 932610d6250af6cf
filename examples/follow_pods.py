"""Fill a cache of pods, query it, and follow its changes (the program in the
README).
"""

from __future__ import annotations

import argparse
import sys

import trio

from trioformer import Added, Deleted, SharedInformerFactory, Updated, open_client, run
from trioformer.models.core_v1 import Pod
from trioformer.testing import open_simulated_cluster


async def main(embedded: bool) -> None:
    cluster = open_simulated_cluster() if embedded else open_client()
    async with cluster as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client)
        informer = factory.informer(Pod)
        await nursery.start(factory.run)  # returns when the cache is full
        print(len(informer.lister.list(label_selector="app=web")), "pods of app=web")
        with informer.subscribe() as notifications:  # what is there, then what changes
            async for notification in notifications:
                match notification:
                    case Added(object=pod, is_initial=False):
                        print("new:", pod.name)
                    case Updated(new=pod):
                        print("changed:", pod.name, pod.status.phase)
                    case Deleted(object=pod):
                        print("gone:", pod.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Follow the pods of a cluster.")
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="simulate a small cluster in this process",
    )
    sys.exit(run(main, parser.parse_args().embedded))
