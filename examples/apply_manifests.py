"""Apply manifests from files and directories, wait until the objects are ready, and
prune removed objects.

With ``--set NAME``, removed objects of this set are pruned. With ``--delete``, the
objects are deleted instead of applied::

    python examples/apply_manifests.py --embedded
    python examples/apply_manifests.py --set hello examples/manifests
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio
from command_line import Arguments, connect, parser_of, path, start
from simulations import simulate_deployments

from trioformer import Client, TrioformerError
from trioformer.manifests import (
    ApplySet,
    Manifest,
    Readiness,
    apply_manifests,
    delete_manifests,
    load_manifests,
    wait_for_manifests,
)

PATIENCE = 300.0
"""Seconds in which everything has to become ready."""
HELLO = Path(__file__).parent / "manifests"


def show(manifest: Manifest, readiness: Readiness) -> None:
    """Print why an object is not ready yet."""
    print(f"{manifest}: {readiness.message}")


async def deploy(
    client: Client,
    manifests: tuple[Manifest, ...],
    *,
    name: str | None,
    namespace: str | None,
) -> None:
    """Apply and prune the objects, and wait until they are ready."""
    prune = None if name is None else ApplySet(name)
    await apply_manifests(
        client,
        manifests,
        field_manager="apply-manifests",
        namespace=namespace,
        prune=prune,
        on_progress=print,
    )
    with trio.move_on_after(PATIENCE) as scope:
        await wait_for_manifests(
            client, manifests, namespace=namespace, on_progress=show
        )
    if scope.cancelled_caught:
        raise TrioformerError(f"not everything was ready within {PATIENCE:g} s")


async def main(arguments: Arguments) -> None:
    """Apply or delete the manifests in the arguments."""
    # A large file takes seconds, so parse it in a thread.
    read = partial(load_manifests, *arguments.paths, recursive=arguments.recursive)
    manifests = await trio.to_thread.run_sync(read)
    async with connect(arguments, simulate_deployments) as client:
        if arguments.delete:
            await delete_manifests(
                client,
                manifests,
                namespace=arguments.namespace,
                wait=True,
                on_progress=print,
            )
        else:
            await deploy(
                client, manifests, name=arguments.set, namespace=arguments.namespace
            )


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "paths",
        nargs="*",
        type=path,
        default=[HELLO],
        metavar="PATH",
        help="default: examples/manifests",
    )
    parser.add_argument(
        "--recursive",
        action="store_true",
        help="read directories in directories as well",
    )
    parser.add_argument("--set", metavar="NAME", help="prune the set of this name")
    parser.add_argument("--delete", action="store_true", help="delete the manifests")
    start(main, parser)
