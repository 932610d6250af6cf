"""Run an operator: a custom resource and the controller that reconciles it.

A Website is a page and a number of pods that serve it.  The operator manages a
ConfigMap with the page, a Service and the pods. It creates missing objects, deletes
excess pods, and adopts objects that have the Website's label and no controller. It
writes the status and records events. Before a Website is removed, it deletes all of
its objects. (A Deployment could manage the pods, but this example shows how to manage
them directly.)

Run it against an API server in this process, or against the cluster that kubectl uses::

    python examples/crd_operator.py --embedded
    python examples/crd_operator.py --kubeconfig ~/.kube/config
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import ClassVar, TypeVar

import attrs
import trio
from command_line import Arguments, connect, parser_of, start
from simulations import simulate_website_user

from trioformer import (
    AlreadyExistsError,
    Client,
    NotFoundError,
    SharedInformerFactory,
    StatusError,
)
from trioformer.controller import (
    Controller,
    Request,
    RequeueAfter,
    claim_objects,
    controller_reference,
    drop_finalizer,
    ensure_finalizer,
    is_controlled_by,
    request_for_owner,
)
from trioformer.events import EventRecorder
from trioformer.models import KubernetesObject, Model, ResourceInfo, from_dict, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.conditions import Condition, set_condition
from trioformer.models.core_v1 import ConfigMap, Pod, Service
from trioformer.watchtools import has_condition, wait_for

LABEL = "example.com/website"
FINALIZER = "example.com/take-down"
ENDED = ("Succeeded", "Failed")
OWNED: tuple[type[KubernetesObject], ...] = (ConfigMap, Service, Pod)
T = TypeVar("T", bound=KubernetesObject)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WebsiteSpec(Model):
    """The desired state."""

    page: str = ""
    replicas: int = 1


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WebsiteStatus(Model):
    """The state that the operator has observed."""

    observed_generation: int = 0
    pods: int = 0
    conditions: tuple[Condition, ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Website(KubernetesObject):
    """A page and the number of pods that serve it."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com",
        version="v1",
        kind="Website",
        plural="websites",
        namespaced=True,
        subresources=("status",),
    )

    spec: WebsiteSpec = WebsiteSpec()
    status: WebsiteStatus = WebsiteStatus()


FIELDS = {
    "page": {"type": "string"},
    "replicas": {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
}
SPEC = {"type": "object", "properties": FIELDS}
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": SPEC, "status": STATUS},
    }
}
VERSION: dict[str, object] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {"status": {}},
    "schema": SCHEMA,
}
NAMES = {
    "kind": "Website",
    "listKind": "WebsiteList",
    "plural": "websites",
    "singular": "website",
}
KIND = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": NAMES,
    "versions": [VERSION],
}
DEFINITION = from_dict(
    CustomResourceDefinition,
    {"metadata": {"name": "websites.example.com"}, "spec": KIND},
)


async def install(client: Client) -> None:
    """Create the definition, and wait until the server serves Websites."""
    definitions = client.api(CustomResourceDefinition)
    with suppress(AlreadyExistsError):
        await definitions.create(DEFINITION)
    await wait_for(definitions, DEFINITION.name, has_condition("Established"))


def owned(
    website: Website, kind: type[T], metadata: Mapping[str, str], **rest: object
) -> T:
    """Build an object that a Website controls."""
    owner = to_dict(controller_reference(website))
    meta = {
        "namespace": website.namespace,
        "labels": {LABEL: website.name},
        "ownerReferences": [owner],
    }
    return from_dict(kind, {"metadata": {**meta, **metadata}, **rest})


def page_of(website: Website) -> ConfigMap:
    return owned(
        website,
        ConfigMap,
        {"name": website.name},
        data={"index.html": website.spec.page},
    )


def service_of(website: Website) -> Service:
    spec = {"selector": {LABEL: website.name}, "ports": [{"port": 80}]}
    return owned(website, Service, {"name": website.name}, spec=spec)


def pod_of(website: Website, number: int) -> Pod:
    """Return a pod. Its name has a number, so that a pod which an outdated cache lacks
    is not created again: the server responds that it exists.
    """
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    container = {"name": "web", "image": "nginx:1.27", "volumeMounts": [mount]}
    spec = {
        "containers": [container],
        "volumes": [{"name": "page", "configMap": {"name": website.name}}],
    }
    return owned(website, Pod, {"name": f"{website.name}-{number}"}, spec=spec)


owner_of = request_for_owner(Website)


def website_of(obj: KubernetesObject) -> Iterable[Request]:
    """Return the Website that controls an object or could adopt it."""
    name = obj.metadata.labels.get(LABEL)
    return owner_of(obj) or ([Request(obj.namespace, name)] if name else [])


@attrs.define(eq=False)
class Operator:
    """Reconciles Websites and the objects that belong to them."""

    client: Client
    factory: SharedInformerFactory
    recorder: EventRecorder
    now: Callable[[], datetime]

    def controller(self) -> Controller:
        controller = Controller(
            "websites", self.reconcile, workers=4, reconcile_deadline=60
        )
        controller.watch(self.factory.informer(Website))
        for kind in OWNED:
            controller.watch(self.factory.informer(kind), enqueue=website_of)
        return controller

    async def reconcile(self, request: Request) -> RequeueAfter | None:
        """Reconcile one Website. The method is idempotent."""
        website = self.factory.informer(Website).lister.get(request)
        if website is None:
            return None
        try:
            if website.metadata.deletion_timestamp is not None:
                return await self.take_down(website)
            await self.bring_up(website)
        except (StatusError, ExceptionGroup) as error:  # claim_objects raises a group
            causes = error.exceptions if isinstance(error, ExceptionGroup) else [error]
            note = "; ".join(map(str, causes))
            self.recorder.event(
                website, type="Warning", reason="Failed", action="Reconcile", note=note
            )
            raise
        return None

    async def bring_up(self, website: Website) -> None:
        """Create missing objects, delete excess pods, and report the observed state."""
        # before any object is created
        website = await ensure_finalizer(self.client, website, FINALIZER)
        missing: list[str] = []
        page, wanted = (
            (await self.claim(website, ConfigMap)).get(website.name),
            page_of(website),
        )
        if page is None:
            missing.append("no page")
            await self.create(website, wanted)
        elif page.data != wanted.data:
            missing.append("an old page")
            await self.client.api(ConfigMap).replace(page.evolve(data=wanted.data))
        if website.name not in await self.claim(website, Service):
            missing.append("no service")
            await self.create(website, service_of(website))
        pods = (await self.claim(website, Pod)).values()
        alive = [
            pod
            for pod in pods
            if not pod.metadata.deletion_timestamp and pod.status.phase not in ENDED
        ]
        if len(alive) != website.spec.replicas:
            missing.append(f"{len(alive)} of {website.spec.replicas} pods")
        known = self.factory.informer(Pod).lister  # released pods keep their names
        new = (pod_of(website, number) for number in itertools.count())
        free = (pod for pod in new if known.get(pod) is None)
        for _ in range(website.spec.replicas - len(alive)):
            await self.create(website, next(free))
        alive.sort(key=lambda pod: str(pod.metadata.creation_timestamp))
        for pod in alive[website.spec.replicas :]:
            await self.delete(website, pod)
        await self.report(website, len(alive), ", ".join(missing))

    async def take_down(self, website: Website) -> RequeueAfter | None:
        """Delete all objects of a Website, and then remove its finalizer."""
        left: list[KubernetesObject] = []
        for kind in OWNED:
            # Read from the server, because the cache may lack an object whose create
            # request got no response.
            found = await self.client.api(kind, namespace=website.namespace).list(
                label_selector={LABEL: website.name}
            )
            left += [obj for obj in found if is_controlled_by(obj, website)]
        for obj in left:
            if obj.metadata.deletion_timestamp is None:
                await self.delete(website, obj)
        has_finalizer = FINALIZER in website.metadata.finalizers
        if (
            not left
            and has_finalizer
            and await drop_finalizer(self.client, website, FINALIZER) is not None
        ):
            self.record(website, "TakenDown", "Delete", "nothing is left")
        # or earlier, after the event of a deletion
        return RequeueAfter(5) if left else None

    async def claim(self, website: Website, kind: type[T]) -> Mapping[str, T]:
        """Adopt and release objects, and return the objects of the Website by name."""
        objects = self.factory.informer(kind).lister.list(namespace=website.namespace)
        return {
            obj.name: obj
            for obj in await claim_objects(
                self.client, website, objects, {LABEL: website.name}
            )
        }

    async def create(self, website: Website, obj: KubernetesObject) -> None:
        made = await self.client.api(type(obj)).create(obj)
        self.record(website, "Created", "Create", f"created {made.kind} {made.name}")

    async def delete(self, website: Website, obj: KubernetesObject) -> None:
        api = self.client.api(type(obj), namespace=obj.namespace)
        with suppress(NotFoundError):
            await api.delete(obj.name, uid=obj.uid)
            self.record(website, "Deleted", "Delete", f"deleted {obj.kind} {obj.name}")

    async def report(self, website: Website, pods: int, missing: str) -> None:
        """Write the status if it has changed."""
        generation = website.metadata.generation or 0
        conditions = set_condition(
            website.status.conditions,
            type="Ready",
            status=not missing,
            reason="Incomplete" if missing else "Complete",
            message=missing or "all objects exist",
            observed_generation=generation,
            now=self.now(),
        )
        status = website.status.evolve(
            observed_generation=generation,
            pods=pods,
            conditions=conditions,
        )
        await self.client.api(Website).update_status(
            website, website.evolve(status=status), optimistic_lock=True
        )

    def record(self, website: Website, reason: str, action: str, note: str) -> None:
        self.recorder.event(website, reason=reason, action=action, note=note)
        print(f"{Request.of(website)}: {note}")


async def serve(
    client: Client,
    now: Callable[[], datetime],
    stop: trio.Event,
    *,
    namespace: str | None = None,
) -> None:
    """Install the kind and run the operator until ``stop`` is set. Then drain the
    queue for at most ten seconds.
    """
    factory = SharedInformerFactory(client, namespace=namespace)
    recorder = EventRecorder(client, controller="website-operator")
    controller = Operator(client, factory, recorder, now).controller()

    async def operate() -> None:
        await install(client)
        for each in (recorder, factory, controller):
            await nursery.start(each.run)
        print("operating")

    async with trio.open_nursery() as nursery:
        # not start(), so that a signal ends it even if the server does not respond
        nursery.start_soon(operate)
        await stop.wait()
        with trio.move_on_after(10):
            await controller.stop()
        nursery.cancel_scope.cancel()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Connect to the cluster and run the operator until ``stop`` is set."""
    async with connect(arguments, simulate_website_user) as client:
        await serve(
            client, lambda: datetime.now(UTC), stop, namespace=arguments.namespace
        )


if __name__ == "__main__":
    start(main, parser_of(__doc__), stop=trio.Event())
