"""Query a cache by index, for the pods of each node and of each image.

Run it against the cluster that kubectl uses, or against a simulated one::

    python examples/indexes.py --embedded
"""

from __future__ import annotations

from collections.abc import Iterable

import trio
from command_line import Arguments, connect, parser_of, start

from trioformer import Lister, SharedInformerFactory, field_index
from trioformer.models.core_v1 import Pod


def by_image(pod: Pod) -> Iterable[str]:
    """Return the images of a pod as index values."""
    return {container.image for container in pod.spec.containers if container.image}


INDEXERS = {"node": field_index("spec.node_name"), "image": by_image}


def report(lister: Lister[Pod]) -> list[str]:
    """Describe the cluster. The function reads only the cache, so it is synchronous."""
    lines: list[str] = []
    for node in sorted(lister.index_values("node")):
        pods = lister.by_index("node", node)
        lines.append(f"{node}: {', '.join(sorted(pod.name for pod in pods))}")
    lines += [
        f"{image}: {len(lister.by_index('image', image))}"
        for image in sorted(lister.index_values("image"))
    ]
    return lines


async def main(arguments: Arguments) -> None:
    """Fill the cache, print the report, and stop."""
    async with connect(arguments) as client:
        factory = SharedInformerFactory(client, namespace=arguments.namespace)
        informer = factory.informer(Pod, indexers=INDEXERS)
        async with trio.open_nursery() as nursery:
            await nursery.start(factory.run)
            print(*report(informer.lister), sep="\n")
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    start(main, parser_of(__doc__))
