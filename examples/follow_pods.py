"""The README's program: fill a cache of pods, query it, and follow its changes."""

from __future__ import annotations

import sys

import trio

from trioformer import Added, Deleted, SharedInformerFactory, Updated, open_client, run
from trioformer.models.core_v1 import Pod


async def main() -> None:
    async with open_client() as client, trio.open_nursery() as nursery:
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
    sys.exit(run(main))
