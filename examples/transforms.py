"""Keep a cache small with a transform, and read your own writes from it.

Run it against the cluster that kubectl uses, in a namespace in which you can create
and delete config maps, or against a simulated cluster::

    python examples/transforms.py --embedded
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, namespace_of, parser_of, start

from trioformer import Client, ObjectMeta, SharedInformerFactory
from trioformer.models.core_v1 import ConfigMap

NAME = "seen-by-the-cache"


def without_values(config_map: ConfigMap) -> ConfigMap:
    """Keep only the names of the entries. Removed values use no memory."""
    return config_map.evolve(data=dict.fromkeys(config_map.data, ""), binary_data={})


async def write_and_read(client: Client, namespace: str) -> list[str]:
    """Create a config map, read it from the cache, and return its entries' names."""
    config_maps = client.api(ConfigMap, namespace=namespace)
    factory = SharedInformerFactory(client, namespace=namespace)
    informer = factory.informer(ConfigMap, transform=without_values)
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        data = {"motd": "hello " * 100, "empty": ""}
        created = await config_maps.create(
            ConfigMap(metadata=ObjectMeta(name=NAME), data=data)
        )
        # the watch delivers the write a moment later
        await informer.wait_until_at_least(created)
        cached = informer.lister[f"{namespace}/{NAME}"]
        await config_maps.delete(NAME)
        nursery.cancel_scope.cancel()
    return [f"{name}: {value!r}" for name, value in cached.data.items()]


async def main(arguments: Arguments) -> None:
    """Print the content of the cache."""
    async with connect(arguments) as client:
        print(*await write_and_read(client, namespace_of(arguments, client)), sep="\n")


if __name__ == "__main__":
    start(main, parser_of(__doc__, is_namespaced=True))
