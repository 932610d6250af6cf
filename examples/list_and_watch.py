"""List pods, label one, and watch their changes, without a cache.

Run it against the cluster that kubectl uses, or against a simulated one::

    python examples/list_and_watch.py --embedded
"""

from __future__ import annotations

import contextlib

import trio
from command_line import Arguments, connect, namespace_of, parser_of, seconds, start

from trioformer import Client, ExpiredError, NotFoundError
from trioformer.models.core_v1 import Pod


async def show(client: Client, namespace: str) -> str:
    """Print the pods of a namespace, and return the resourceVersion of the list."""
    listing = await client.api(Pod, namespace=namespace).list()
    for pod in listing:
        print(
            f"{pod.name:<40} {pod.status.phase or 'Unknown':<10} "
            f"{pod.spec.node_name or '-'}"
        )
    return listing.resource_version


async def label(client: Client, namespace: str, name: str, **labels: str) -> None:
    """Set labels of a pod if it exists."""
    try:
        await client.api(Pod, namespace=namespace).patch(
            name, {"metadata": {"labels": labels}}
        )
    except NotFoundError:
        print(f"there is no pod {name}")


async def follow(client: Client, namespace: str, resource_version: str) -> None:
    """Print the events after a resourceVersion, until the server ends the watch."""
    async with client.api(Pod, namespace=namespace).watch(
        resource_version=resource_version
    ) as events:
        async for event in events:
            print(f"{event.type:<10} {event.object.name}")


async def main(arguments: Arguments) -> None:
    """List and watch pods for the number of seconds in the arguments."""
    async with connect(arguments) as client:
        namespace = namespace_of(arguments, client)
        resource_version = await show(client, namespace)
        with trio.move_on_after(arguments.seconds):
            while True:
                with contextlib.suppress(ExpiredError):
                    await follow(client, namespace, resource_version)
                # The watch has ended, or the resourceVersion is too old.  An informer
                # lists again only in the second case.
                resource_version = await show(client, namespace)


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "--for",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        dest="seconds",
        help="default: 60",
    )
    start(main, parser)
