"""A custom resource: the CronTab of Kubernetes' documentation, as two classes."""

from __future__ import annotations

import sys
from typing import ClassVar

import attrs

from trioformer import Client, KubernetesObject, Model, ObjectMeta, ResourceInfo, open_client, run


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CronTabSpec(Model):
    """The desired state."""

    cron_spec: str = ""
    image: str = ""
    replicas: int = 1


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CronTab(KubernetesObject):
    """A job with a schedule and a number of replicas."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="stable.example.com", version="v1", kind="CronTab", plural="crontabs", namespaced=True
    )

    spec: CronTabSpec = CronTabSpec()


async def scale(client: Client, name: str, replicas: int) -> CronTab:
    """Change one field of the spec; all others stay, including those that the class does not define."""
    crontabs = client.api(CronTab, namespace="default")
    old = await crontabs.get(name)
    return await crontabs.replace(attrs.evolve(old, spec=attrs.evolve(old.spec, replicas=replicas)))


async def main() -> None:
    """Create a CronTab and scale it; the cluster must have its CustomResourceDefinition."""
    async with open_client() as client:
        spec = CronTabSpec(cron_spec="*/5 * * * *", image="busybox")
        crontab = CronTab(metadata=ObjectMeta(name="every-five-minutes", namespace="default"), spec=spec)
        await client.api(CronTab, namespace="default").create(crontab)
        changed = await scale(client, "every-five-minutes", replicas=3)
        print(changed.name, changed.spec.replicas)


if __name__ == "__main__":
    sys.exit(run(main))
