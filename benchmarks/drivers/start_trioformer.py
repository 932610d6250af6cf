"""trioformer: the smallest program with an informer, measured from its start until the informer has synced."""

from __future__ import annotations

import measure
import trio

from trioformer import SharedInformerFactory, open_client
from trioformer.client import ClientOptions
from trioformer.models.core_v1 import Pod


async def main() -> None:
    options = measure.options()
    client_options = ClientOptions(protobuf=not options.json)
    async with (
        open_client(kubeconfig=options.kubeconfig, options=client_options) as client,
        trio.open_nursery() as nursery,
    ):
        factory = SharedInformerFactory(client)
        factory.informer(Pod)
        await nursery.start(factory.run)
        measure.finish(measure.whole_process())


if __name__ == "__main__":
    trio.run(main)
