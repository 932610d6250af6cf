"""Run an operator for Websites. A Website is a page that a Deployment, a Service and a ConfigMap serve.

The operator runs against the cluster that kubectl uses, with one or more replicas, and serves metrics and health
checks. With ``--embedded``, it runs against an embedded server, in which a simulated user creates, changes and deletes
a Website. In a cluster, apply the definition together with the Deployment, because replicas of two versions must not
both change it::

    kubectl apply -f examples/deploy/manifests/crd.yaml
    python examples/website_operator.py --http 127.0.0.1:8080
    python examples/website_operator.py --embedded
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, TypeVar

import attrs
import command_line
import trio
from simulations import simulate_websites

from trioformer import Client, NotFoundError, SharedInformer, SharedInformerFactory, controller, crds, manager
from trioformer.controller import Controller, Request, RetryAfter
from trioformer.metrics import Metrics
from trioformer.models import KubernetesObject, Model, PartialObjectMetadata, from_dict, metadata_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.conditions import Condition, set_condition
from trioformer.models.core_v1 import ConfigMap, Secret, Service

NAME, LABEL = "website-operator", "example.com/website"
COLUMNS = (crds.PrinterColumn("Available", ".status.available"),)
T = TypeVar("T", bound=KubernetesObject)


@crds.resource_part()
class WebsiteSpec(Model):
    page: str = ""
    replicas: Annotated[int, crds.Schema(minimum=0, maximum=100)] = 1
    secret: str = ""
    """The Secret that the pods read their environment from; they are replaced when it changes."""


@crds.resource_part()
class WebsiteStatus(Model):
    available: int = 0
    conditions: tuple[Condition, ...] = ()


@crds.custom_resource("example.com/v1", stored=True, printer_columns=COLUMNS)
class Website(KubernetesObject):
    """A page and the pods that serve it."""

    spec: WebsiteSpec = WebsiteSpec()
    status: WebsiteStatus = WebsiteStatus()


@attrs.frozen
class Operator:
    client: Client
    websites: SharedInformer[Website]
    secrets: SharedInformer[PartialObjectMetadata]

    async def reconcile(self, request: Request) -> None:
        website = self.websites.lister.get(request)
        if website is not None and website.metadata.deletion_timestamp is None:
            await self.bring_up(await controller.ensure_finalizer(self.client, website, LABEL))
        elif website is not None:
            await self.take_down(website, request)

    async def bring_up(self, website: Website) -> None:
        spec, name, labels = website.spec, {"name": website.name}, {LABEL: website.name}
        secret = self.secrets.lister.get(spec.secret, namespace=website.namespace) if spec.secret else None
        if spec.secret and secret is None:
            await self.report(website, "SecretMissing", f"there is no Secret {spec.secret}")
            return
        await self.apply(website, ConfigMap, data={"index.html": spec.page})
        await self.apply(website, Service, spec={"selector": labels, "ports": [{"port": 80}]})
        mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
        container = {"name": "web", "image": "nginx:1.27", "volumeMounts": [mount]}
        container |= {"envFrom": [{"secretRef": {"name": spec.secret}}]} if secret else {}
        version = {"example.com/secret-version": secret.resource_version if secret else ""}
        pod = {"containers": [container], "volumes": [{"name": "page", "configMap": name}]}
        template = {"metadata": {"labels": labels, "annotations": version}, "spec": pod}
        wanted = {"replicas": spec.replicas, "selector": {"matchLabels": labels}, "template": template}
        deployment = await self.apply(website, Deployment, spec=wanted)
        available, observed = deployment.status.available_replicas or 0, deployment.status.observed_generation
        is_ready = available >= spec.replicas and observed == deployment.metadata.generation
        message = f"{available} of {spec.replicas} pods are available"
        await self.report(website, "Available" if is_ready else "Progressing", message, available=available)

    async def apply(self, website: Website, kind: type[T], **fields: object) -> T:
        wanted = from_dict(kind, {"metadata": {"name": website.name}, **fields})
        return await controller.apply_owned(self.client, wanted, owner=website, field_manager=NAME)

    async def take_down(self, website: Website, request: Request) -> None:
        """Delete the pods. When they are gone, the garbage collector of the cluster deletes the other objects."""
        with suppress(NotFoundError):
            await self.client.api(Deployment).delete(request, propagation_policy="Foreground")
            raise RetryAfter(5, "its pods are still running")
        await controller.drop_finalizer(self.client, website, LABEL)

    async def report(self, website: Website, reason: str, message: str, *, available: int = 0) -> None:
        """Write the status if it has changed."""
        old, is_ready, generation = website.status.conditions, reason == "Available", website.metadata.generation
        conditions = set_condition(
            old, type="Ready", status=is_ready, reason=reason, message=message, observed_generation=generation
        )
        new = website.evolve(status=WebsiteStatus(available=available, conditions=conditions))
        await self.client.api(Website).update_status(website, new, optimistic_lock=True)


async def start(context: manager.ManagerContext) -> Controller:
    websites = context.factory.informer(Website, indexers={"secret": lambda w: [f"{w.namespace}/{w.spec.secret}"]})
    secrets = context.factory.informer(metadata_kind(Secret))
    operator = Operator(context.client, websites, secrets)
    websites_controller = Controller(context.name, operator.reconcile, workers=4, reconcile_deadline=60)
    websites_controller.watch(websites)
    websites_controller.watch(secrets, enqueue=controller.requests_by_index(websites, "secret"))
    for kind in (ConfigMap, Service, Deployment):
        websites_controller.owns(context.factory, kind, owner=Website)
    return websites_controller


async def serve(client: Client, stop: trio.Event | None = None, http: str | None = None, namespace: str = "") -> None:
    """Run the operator while this process leads, until ``stop`` is set."""
    lease = manager.LeaderElection(NAME, client.config.namespace or "default")
    factory = SharedInformerFactory(client, namespace=namespace or None)
    await manager.run_controllers(
        client, {"websites": start}, http=http, leader_election=lease, metrics=Metrics(), factory=factory, stop=stop
    )


async def main(arguments: command_line.Arguments, stop: trio.Event) -> None:
    async with command_line.connect(arguments, simulate_websites) as client:
        if arguments.embedded:
            await crds.install_crds(client, Website)
        await serve(client, stop, http=arguments.http, namespace=arguments.namespace)


if __name__ == "__main__":
    command_line.start(main, command_line.parser_of(__doc__, serves_http=True), stop=trio.Event())
