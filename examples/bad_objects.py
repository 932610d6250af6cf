"""Handle objects that cannot be decoded: sum up replicas, and report the objects that
the sum does not include.

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
    """Return the object if the fields that this program needs can be decoded."""
    assert deployment.spec.replicas is None or deployment.spec.replicas >= 0
    return deployment


def total(lister: Lister[Deployment]) -> str:
    """Sum up the replicas, and name the Deployments whose newest state the sum does
    not include.
    """
    replicas = sum(deployment.spec.replicas or 0 for deployment in lister)
    names = ", ".join(map(str, lister.quarantined().values()))
    return f"{replicas} replicas" + (
        f", without the newest state of {names}" if names else ""
    )


async def follow(informer: SharedInformer[Deployment]) -> None:
    """Print the images of each changed Deployment."""
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
    """Print the sum, and then each change, until cancelled."""
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
