"""Kinds without classes, and pods with only their metadata.

With an apiVersion and a kind as arguments, such as ``apps/v1 Deployment``, it shows the objects of a cluster; with one
name that kubectl accepts, such as ``deploy``, it counts them; without, it shows those of an embedded API server.
"""

from __future__ import annotations

import sys
from collections import Counter

import trio

from trioformer import Client, ResourceInfo, open_client, run
from trioformer.models import Unstructured, metadata_kind
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


async def show(client: Client, api_version: str, kind: str) -> None:
    """Print the objects of a kind, given by its name."""
    objects = client.api(await client.discover(api_version, kind))
    for obj in await objects.list():
        print(f"{obj['kind']} {obj.name}: {dict(obj.get('spec', {}))}")


async def count_objects(client: Client, name: str) -> int:
    """Count the objects of a kind, given by any name that kubectl accepts, such as ``deploy``."""
    try:
        objects = client.api(name)
    except LookupError:  # not built in, and not discovered yet
        objects = client.api(await client.discover(name))
    return len(await objects.list())


async def resize(client: Client, kind: type[Unstructured], name: str, size: int) -> Unstructured:
    """Change one member of the spec; all others stay."""
    widgets = client.api(kind, namespace="default")
    old = await widgets.get(name)
    return await widgets.replace(old.merge({"spec": {"size": size}}))


async def count_apps(client: Client) -> Counter[str]:
    """Count the pods of each app; requests only their metadata."""
    pods = client.api(metadata_kind(Pod))
    return Counter(pod.metadata.labels.get("app", "") for pod in await pods.list())


async def show_embedded() -> None:
    """Create a widget, resize it, and count some pods."""
    server = APIServer()
    server.register(ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True))
    for name, app in (("web-0", "web"), ("web-1", "web"), ("api-0", "api")):
        metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
        server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            Widget = await client.discover("example.com/v1", "Widget")  # noqa: N806  # a class
            made = Widget.of(
                {"metadata": {"name": "first", "namespace": "default"}, "spec": {"size": 1, "color": "red"}}
            )
            await client.api(Widget, namespace="default").create(made)
            await resize(client, Widget, "first", size=2)
            await show(client, "example.com/v1", "Widget")
            print(f"widgets: {await count_objects(client, 'widgets')}, po: {await count_objects(client, 'po')}")
            print(", ".join(f"{app}: {count}" for app, count in (await count_apps(client)).items()))
        nursery.cancel_scope.cancel()


async def main(arguments: list[str]) -> int:
    """Show the kind in the arguments, or the embedded server; returns the exit code."""
    match arguments:
        case []:
            await show_embedded()
        case [name]:
            async with open_client() as client:
                print(await count_objects(client, name))
        case [api_version, kind]:
            async with open_client() as client:
                await show(client, api_version, kind)
        case _:
            print("usage: dynamic_kinds.py [NAME | APIVERSION KIND]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
