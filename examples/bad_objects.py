"""Live with objects that cannot be decoded: sum up replicas, and say which objects are
not in the sum.

Run it against the cluster that kubectl uses, or against a simulated one, and stop it
with Ctrl-C::

    python examples/bad_objects.py --embedded
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, parser_of, start
from simulations import simulate_updates

from trioformer import Lister, SharedInformer, SharedInformerFactory, Updated
from trioformer.errors import DecodeError
from trioformer.models.apps_v1 import Deployment


def checked(deployment: Deployment) -> Deployment:
    """Read what this program cannot do without: an object that does not decode never
    gets further than this.
    """
    assert deployment.spec.replicas is None or deployment.spec.replicas >= 0
    return deployment


def total(lister: Lister[Deployment]) -> str:
    """Sum up the replicas, and name the deployments whose newest state is not in the
    sum.
    """
    replicas = sum(deployment.spec.replicas or 0 for deployment in lister)
    names = ", ".join(map(str, lister.quarantined().values()))
    return f"{replicas} replicas" + (
        f", without the newest state of {names}" if names else ""
    )


async def follow(informer: SharedInformer[Deployment]) -> None:
    """Print the images of each deployment that changes."""
    with informer.subscribe() as notifications:
        async for notification in notifications:
            obj = (
                notification.new
                if isinstance(notification, Updated)
                else notification.object
            )
            try:
                print(
                    obj.name,
                    *(
                        container.image
                        for container in obj.spec.template.spec.containers
                    ),
                )
            except DecodeError as error:
                print(obj.name, "is skipped:", error)


async def main(arguments: Arguments) -> None:
    """Print the sum, and then every change, until interrupted."""
    async with (
        connect(arguments, simulate_updates) as client,
        trio.open_nursery() as nursery,
    ):
        factory = SharedInformerFactory(client, namespace=arguments.namespace)
        informer = factory.informer(Deployment, transform=checked)
        await nursery.start(factory.run)
        print(total(informer.lister))
        await follow(informer)


if __name__ == "__main__":
    start(main, parser_of(__doc__))
