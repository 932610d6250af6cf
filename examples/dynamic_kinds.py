"""Use kinds without classes, and pods with only their metadata.

With a name that kubectl accepts, the program counts the objects of a kind. With an API
version and a kind, it prints the objects. Without a name, it creates and changes a
widget in an embedded API server::

    python examples/dynamic_kinds.py --embedded
    python examples/dynamic_kinds.py deploy
    python examples/dynamic_kinds.py --api-version apps/v1 Deployment
"""

from __future__ import annotations

from collections import Counter

import trio
from command_line import Arguments, api_version, connect, parser_of, start

from trioformer import Client, ResourceInfo, TrioformerError
from trioformer.models import Unstructured, metadata_kind
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer


async def show(
    client: Client, api_version: str, kind: str, namespace: str | None = None
) -> None:
    """Print the objects of a kind."""
    objects = client.api(await client.discover(api_version, kind), namespace)
    for obj in await objects.list():
        print(f"{obj['kind']} {obj.name}: {dict(obj.get('spec', {}))}")


async def count_objects(client: Client, name: str, namespace: str | None = None) -> int:
    """Count the objects of a kind. Its name can be any name that kubectl accepts, such
    as ``deploy``.
    """
    try:
        objects = client.api(name, namespace)
    except LookupError:  # neither built in nor discovered yet
        objects = client.api(await client.discover(name), namespace)
    return len(await objects.list())


async def resize(
    client: Client, kind: type[Unstructured], name: str, size: int
) -> Unstructured:
    """Change one member of the spec. All other members stay."""
    widgets = client.api(kind, namespace="default")
    old = await widgets.get(name)
    return await widgets.replace(old.merge({"spec": {"size": size}}))


async def count_apps(client: Client) -> Counter[str]:
    """Count the pods of each app. Only their metadata is requested."""
    pods = client.api(metadata_kind(Pod))
    return Counter(pod.metadata.labels.get("app", "") for pod in await pods.list())


async def simulate_widgets(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serve a kind that is unknown to trioformer, and create some pods."""
    server.register(
        ResourceInfo(
            group="example.com",
            version="v1",
            kind="Widget",
            plural="widgets",
            namespaced=True,
        )
    )
    for name, app in (("web-0", "web"), ("web-1", "web"), ("api-0", "api")):
        metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
        server.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"containers": []},
            }
        )
    task_status.started()


async def change_widget(client: Client) -> None:
    """Create a widget, resize it, and count some pods."""
    Widget = await client.discover("example.com/v1", "Widget")  # noqa: N806  # a class
    made = Widget.of(
        {
            "metadata": {"name": "first", "namespace": "default"},
            "spec": {"size": 1, "color": "red"},
        }
    )
    await client.api(Widget, namespace="default").create(made)
    await resize(client, Widget, "first", size=2)
    await show(client, "example.com/v1", "Widget")
    print(
        f"widgets: {await count_objects(client, 'widgets')}, "
        f"po: {await count_objects(client, 'po')}"
    )
    print(
        ", ".join(
            f"{app}: {count}" for app, count in (await count_apps(client)).items()
        )
    )


async def main(arguments: Arguments) -> None:
    """Show or count the objects of the kind in the arguments."""
    name, namespace = arguments.name, arguments.namespace
    async with connect(arguments, simulate_widgets) as client:
        try:
            if name is None:
                await change_widget(client)
            elif arguments.api_version is None:
                print(await count_objects(client, name, namespace))
            else:
                await show(client, arguments.api_version, name, namespace)
        except ValueError as error:  # such as a namespace for a cluster-scoped kind
            raise TrioformerError(str(error)) from error


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a kind, such as deploy"
    )
    parser.add_argument(
        "--api-version",
        type=api_version,
        metavar="VERSION",
        help="such as apps/v1, of the kind NAME",
    )
    start(main, parser, required=["NAME"])
