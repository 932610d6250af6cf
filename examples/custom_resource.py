"""Define a custom resource, the CronTab from the documentation of Kubernetes, as two
classes.

The program installs the definition, creates a CronTab and scales it, in the cluster
that kubectl uses or in an embedded cluster::

    python examples/custom_resource.py --embedded
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from command_line import Arguments, connect, namespace_of, parser_of, start

from trioformer import AlreadyExistsError, Client, KubernetesObject, Model, ObjectMeta
from trioformer.crds import (
    PrinterColumn,
    Schema,
    custom_resource,
    install_crds,
    resource_part,
)


@resource_part()
class CronTabSpec(Model):
    """The desired state."""

    cron_spec: Annotated[
        str, Schema(pattern=r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$")
    ]
    """When it runs: minute, hour, day of the month, month, day of the week."""
    image: str = "busybox"
    replicas: Annotated[int, Schema(minimum=1, maximum=10)] = 1
    """How many pods run at a time."""


@custom_resource(
    "stable.example.com/v1",
    short_names=("ct",),
    printer_columns=(
        PrinterColumn("Spec", ".spec.cronSpec"),
        PrinterColumn("Replicas", ".spec.replicas"),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
    ),
)
class CronTab(KubernetesObject):
    """A job with a schedule and a number of replicas."""

    spec: CronTabSpec


async def scale(client: Client, namespace: str, name: str, replicas: int) -> CronTab:
    """Change one field of the spec. All other fields stay, including fields that are
    unknown to the class.
    """
    crontabs = client.api(CronTab, namespace=namespace)
    old = await crontabs.get(name)
    return await crontabs.replace(old.evolve(spec=old.spec.evolve(replicas=replicas)))


async def main(arguments: Arguments) -> None:
    """Install the definition, create a CronTab and scale it."""
    async with connect(arguments) as client:
        await install_crds(client, CronTab)
        namespace, name = namespace_of(arguments, client), "every-five-minutes"
        crontab = CronTab(
            metadata=ObjectMeta(name=name), spec=CronTabSpec(cron_spec="*/5 * * * *")
        )
        with suppress(AlreadyExistsError):  # it was created by an earlier run
            await client.api(CronTab, namespace=namespace).create(crontab)
        changed = await scale(client, namespace, name, replicas=3)
        print(changed.name, changed.spec.replicas)


if __name__ == "__main__":
    start(main, parser_of(__doc__, is_namespaced=True))
