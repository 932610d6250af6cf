"""Count the objects in some namespaces, and continue when a kind is forbidden.

Run it with the names of namespaces against the cluster that kubectl uses, or against a
simulated cluster in which Secrets are forbidden::

    python examples/many_namespaces.py default kube-system
    python examples/many_namespaces.py --embedded
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio
from command_line import (
    Arguments,
    check_reachable,
    connect,
    namespace_name,
    namespace_of,
    parser_of,
    start,
)
from simulations import simulate_forbidden_secrets

from trioformer import Client, ReflectorOptions, SharedInformerFactory
from trioformer.models import metadata_kind
from trioformer.models.core_v1 import ConfigMap, Pod, Secret


async def count(client: Client, namespaces: Sequence[str]) -> tuple[list[str], bool]:
    """Fill a cache for each kind. Return one line for each kind, with the number of
    objects or the problem, and whether any kind could be counted.
    """
    factory = SharedInformerFactory(
        client,
        namespace=namespaces,
        supervise=True,
        options=ReflectorOptions(grace_period=5),
    )
    factory.informer(Pod)
    for kind in (ConfigMap, Secret):
        # the metadata is enough for counting
        factory.informer(metadata_kind(kind))
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)  # every informer has synced or failed
        problems = factory.problems()
        lines = [
            f"{key}: {problems[key] if key in problems else len(informer.lister)}"
            for key, informer in factory.informers.items()
        ]
        nursery.cancel_scope.cancel()
    return lines, len(problems) < len(lines)


async def main(arguments: Arguments) -> int:
    """Count the objects in the namespaces of the command line. The exit code is 1 if
    no kind could be counted.
    """
    # the report contains the failures
    logging.getLogger("trioformer").setLevel(logging.CRITICAL)
    async with connect(arguments, simulate_forbidden_secrets) as client:
        names = arguments.names or [namespace_of(arguments, client)]
        await check_reachable(client)
        lines, is_any_counted = await count(client, names)
        print(*lines, sep="\n")
    return 0 if is_any_counted else 1


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "names",
        nargs="*",
        type=namespace_name,
        metavar="NAMESPACE",
        help="default: that of --namespace",
    )
    start(main, parser)
