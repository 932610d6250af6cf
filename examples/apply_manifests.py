"""Applies the manifests of files and directories, waits until they are ready, and prunes what has left the set.

``--set NAME`` names the set that is pruned, ``--delete`` deletes the manifests instead; with ``--embedded`` the cluster
is an API server in this process, where nothing becomes ready.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

import trio

from trioformer import Client, open_client, run
from trioformer.manifests import (
    ApplySet,
    Manifest,
    Readiness,
    apply_manifests,
    delete_manifests,
    load_manifests,
    wait_for_manifests,
)
from trioformer.testing import APIServer


def show(manifest: Manifest, readiness: Readiness) -> None:
    """Print what an object waits for."""
    print(f"{manifest}: {readiness.message}")


async def deploy(client: Client, manifests: tuple[Manifest, ...], *, name: str | None, wait: bool) -> None:
    """Apply, prune and wait."""
    prune = None if name is None else ApplySet(name)
    await apply_manifests(client, manifests, field_manager="apply-manifests", prune=prune, on_progress=print)
    if wait:
        with trio.fail_after(300):
            await wait_for_manifests(client, manifests, on_progress=show)


async def work(client: Client, options: Namespace) -> None:
    """Do what the arguments say."""
    # Another thread parses: a large file takes seconds.
    manifests = await trio.to_thread.run_sync(lambda: load_manifests(*options.paths, recursive=options.recursive))
    if options.delete:
        await delete_manifests(client, manifests, wait=True, on_progress=print)
    else:
        await deploy(client, manifests, name=options.set, wait=not options.embedded)


async def main(arguments: list[str]) -> int:
    """Parse the arguments, and connect."""
    parser = ArgumentParser(description="Apply manifests, wait until they are ready, and prune what has left the set.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or a directory")
    parser.add_argument("--recursive", action="store_true", help="read directories in directories as well")
    parser.add_argument("--set", metavar="NAME", help="prune the set of this name")
    parser.add_argument("--delete", action="store_true", help="delete the manifests")
    parser.add_argument("--embedded", action="store_true", help="use an API server in this process")
    options = parser.parse_args(arguments)
    if not options.embedded:
        async with open_client() as client:
            await work(client, options)
        return 0
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            await work(client, options)
        nursery.cancel_scope.cancel()
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
