"""Informers of trioformer with its default settings, for ``../test_recovery.py``.

::

    python -m tests.e2e.recovery.subject_program --kubeconfig FILE --namespace NAME URL...

It runs one informer of ConfigMaps for each URL, each with a client of its own, and writes ``{"synced": true}`` when all
have synced.
For each line that it reads it then writes one line: the state of each informer.
It ends when its standard input does.
``../recovery_client_go/main.go`` does the same with client-go.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import attrs
import trio

from trioformer import load_config, open_client
from trioformer.cache import ApiListWatch, ResourceEventHandler, SharedInformer
from trioformer.models import key_of
from trioformer.models.core_v1 import ConfigMap


@attrs.define(eq=False)
class Replay(ResourceEventHandler[ConfigMap]):
    """Makes a map from notifications, and notes those that contradict the earlier ones."""

    versions: dict[str, str] = attrs.field(factory=dict)
    """resourceVersions by key."""
    illegal: list[str] = attrs.field(factory=list)

    async def on_add(self, obj: ConfigMap, *, is_initial: bool) -> None:
        self._check("add", obj, is_legal=key_of(obj) not in self.versions)
        self.versions[key_of(obj)] = obj.resource_version

    async def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        self._check("update", new, is_legal=key_of(new) in self.versions)
        self.versions[key_of(new)] = new.resource_version

    async def on_delete(self, obj: ConfigMap, *, is_stale: bool) -> None:
        self._check("delete", obj, is_legal=key_of(obj) in self.versions)
        self.versions.pop(key_of(obj), None)

    def _check(self, what: str, obj: ConfigMap, *, is_legal: bool) -> None:
        if not is_legal:
            self.illegal.append(f"{what} {key_of(obj)} {obj.resource_version}")


async def answer_commands(informers: Iterable[tuple[SharedInformer[ConfigMap], Replay]]) -> None:
    """Write the state of each informer for each line of the standard input, until that ends."""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as commands:
        async for chunk in commands:
            for _ in range(chunk.count(b"\n")):
                states = [
                    {
                        "cache": {key_of(each): each.resource_version for each in informer.lister},
                        "replay": replay.versions,
                        "illegal": replay.illegal,
                    }
                    for informer, replay in informers
                ]
                print(json.dumps(states), flush=True)


async def run(kubeconfig: Path, namespace: str, urls: Sequence[str]) -> None:
    config = load_config(kubeconfig=kubeconfig)
    informers: list[tuple[SharedInformer[ConfigMap], Replay]] = []
    async with AsyncExitStack() as clients:
        for url in urls:
            client = await clients.enter_async_context(open_client(attrs.evolve(config, server=url)))
            informer = SharedInformer(ApiListWatch(client.api(ConfigMap, namespace=namespace)))
            replay = Replay()
            informer.add_event_handler(replay)
            informers.append((informer, replay))
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as starting:
                for informer, _ in informers:
                    starting.start_soon(nursery.start, informer.run)
            print(json.dumps({"synced": True}), flush=True)
            await answer_commands(informers)
            nursery.cancel_scope.cancel()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("urls", nargs="+")
    given = parser.parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    trio.run(run, given.kubeconfig, given.namespace, given.urls)


if __name__ == "__main__":
    main()
