"""Divide the namespaces between the replicas of a controller. Each replica caches and
reconciles the ConfigMaps of its own namespaces, and takes over those of others.

Run it in several terminals against the cluster that kubectl uses, and stop one process
with Ctrl-C or ``kill``. Or run it against an embedded server, with three replicas in
one process, of which the first one ends after half a minute::

    python examples/share_objects.py --embedded
    python examples/share_objects.py --identity a
    python examples/share_objects.py --identity b
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, namespace_of, parser_of, start
from simulations import simulate_teams

from trioformer import Client
from trioformer.controller import Controller, Request
from trioformer.manager import ManagerContext, run_controllers
from trioformer.models.core_v1 import ConfigMap
from trioformer.sharding import Shares


async def run_replica(
    client: Client, shares: Shares, stop: trio.Event | None = None
) -> None:
    """Run one replica of the controller."""

    async def start_configs(context: ManagerContext) -> Controller:
        configs = context.factory.informer(ConfigMap)
        assert context.shares is not None  # they are passed below
        me = context.shares.identity

        async def reconcile(request: Request) -> None:
            # Another replica reconciles the objects that are not in this cache.
            config = configs.lister.get(request)
            state = "is gone" if config is None else f"has {len(config.data)} keys"
            print(f"{me}: {request} {state}")

        controller = Controller(context.name, reconcile)
        controller.watch(configs)
        return controller

    await run_controllers(client, {"configs": start_configs}, shares=shares, stop=stop)
    print(f"{shares.identity or 'the replica'} has ended")


async def main(arguments: Arguments) -> None:
    """Run the replica of this process, or three replicas with ``--embedded``."""
    async with (
        connect(arguments, simulate_teams) as client,
        trio.open_nursery() as nursery,
    ):
        namespace, stop = namespace_of(arguments, client), trio.Event()
        names = ["a", "b", "c"] if arguments.embedded else [arguments.identity]
        for name in names:
            shares = Shares("example", namespace=namespace, identity=name)
            nursery.start_soon(
                run_replica, client, shares, stop if name == "a" else None
            )
        if arguments.embedded:
            await trio.sleep(30)
            print("a is stopped")
            stop.set()


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "--identity",
        metavar="NAME",
        help="unique to the process; default: host name and a random part",
    )
    start(main, parser)
