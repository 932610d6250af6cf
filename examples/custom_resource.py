"""A custom resource: the CronTab of Kubernetes' documentation, as two classes that also state its definition."""

from __future__ import annotations

import sys
from typing import Annotated

import attrs
import trio

from trioformer import Client, KubernetesObject, Model, ObjectMeta, open_client, run
from trioformer.crds import PrinterColumn, Schema, custom_resource, install_crds, resource_part


@resource_part()
class CronTabSpec(Model):
    """The desired state."""

    cron_spec: Annotated[str, Schema(pattern=r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$")]
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


async def scale(client: Client, name: str, replicas: int) -> CronTab:
    """Change one field of the spec; all others stay, including those that the class does not define."""
    crontabs = client.api(CronTab, namespace="default")
    old = await crontabs.get(name)
    return await crontabs.replace(attrs.evolve(old, spec=attrs.evolve(old.spec, replicas=replicas)))


async def main() -> None:
    """Install the definition, create a CronTab and scale it."""
    async with open_client() as client:
        with trio.fail_after(60):
            await install_crds(client, CronTab)
        spec = CronTabSpec(cron_spec="*/5 * * * *")
        crontab = CronTab(metadata=ObjectMeta(name="every-five-minutes", namespace="default"), spec=spec)
        await client.api(CronTab, namespace="default").create(crontab)
        changed = await scale(client, "every-five-minutes", replicas=3)
        print(changed.name, changed.spec.replicas)


if __name__ == "__main__":
    sys.exit(run(main))
