"""Step 5: write what the controller has found into the status of each App."""

from __future__ import annotations

import argparse
import sys

import attrs
import trio

from trioformer import (
    Client,
    Lister,
    ObjectMeta,
    SharedInformer,
    SharedInformerFactory,
    open_client,
    run,
)
from trioformer.controller import Controller, Request, generation_changed
from trioformer.crds import PrinterColumn, custom_resource, install_crds, resource_part
from trioformer.models import KubernetesObject, Model
from trioformer.models.conditions import Condition, is_condition_true, set_condition
from trioformer.models.core_v1 import Pod
from trioformer.testing import open_simulated_cluster


@resource_part()
class AppSpec(Model):
    min_ready: int = 1
    """The number of pods that must be ready."""


@resource_part()
class AppStatus(Model):
    ready: int = 0
    """The number of pods that are ready."""
    conditions: tuple[Condition, ...] = ()


READY = PrinterColumn("Ready", ".status.ready")
AVAILABLE = PrinterColumn(
    "Available", ".status.conditions[?(@.type=='Available')].status"
)


@custom_resource("example.com/v1", printer_columns=(READY, AVAILABLE))
class App(KubernetesObject):
    """The pods of a namespace that have the App's name as their label ``app``."""

    spec: AppSpec = AppSpec()
    status: AppStatus = AppStatus()


def app_of(pod: Pod) -> list[str]:
    """Return the key of the app of a pod, such as ``default/web``, or nothing."""
    app = pod.metadata.labels.get("app")
    return [f"{pod.namespace}/{app}"] if app else []


def requests_of(pod: Pod) -> list[Request]:
    return [Request.parse(app) for app in app_of(pod)]


def count_ready(pods: Lister[Pod], app: str) -> int:
    found = pods.by_index("app", app)
    return sum(is_condition_true(pod.status.conditions, "Ready") for pod in found)


@attrs.frozen
class Reconciler:
    client: Client
    apps: SharedInformer[App]
    pods: SharedInformer[Pod]

    async def reconcile(self, request: Request) -> None:
        app = self.apps.lister.get(request)
        if app is None:
            return  # it has been deleted
        ready = count_ready(self.pods.lister, str(request))
        status = AppStatus(ready=ready, conditions=conditions_of(app, ready))
        if status == app.status:
            return
        print(f"{request}: {ready} ready, {app.spec.min_ready} needed")
        apps, new = self.client.api(App), app.evolve(status=status)
        await apps.update_status(app, new, optimistic_lock=True)


def conditions_of(app: App, ready: int) -> tuple[Condition, ...]:
    is_available = ready >= app.spec.min_ready
    return set_condition(
        app.status.conditions,
        type="Available",
        status=is_available,
        reason="EnoughPods" if is_available else "TooFewPods",
        message=f"{ready} ready, {app.spec.min_ready} needed",
        observed_generation=app.metadata.generation,
    )


async def serve(client: Client) -> None:
    factory = SharedInformerFactory(client)
    apps = factory.informer(App)
    pods = factory.informer(Pod, indexers={"app": app_of})
    reconciler = Reconciler(client, apps, pods)
    controller = Controller("apps", reconciler.reconcile, workers=2)
    controller.watch(apps, predicates=[generation_changed])
    controller.watch(pods, enqueue=requests_of)
    async with trio.open_nursery() as nursery:
        await nursery.start(
            factory.run
        )  # returns when all apps and pods are in the caches
        await controller.run()


async def main(embedded: bool) -> None:
    async with open_simulated_cluster() if embedded else open_client() as client:
        await install_crds(client, App)
        if embedded:
            for name in ("web", "api"):
                metadata = ObjectMeta(name=name, namespace="default")
                app = App(metadata=metadata, spec=AppSpec(min_ready=2))
                await client.api(App).create(app)
        await serve(client)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="simulate a cluster")
    sys.exit(run(main, parser.parse_args().embedded))
