"""Webhooks whose certificates the operator makes, called by a real kube-apiserver through a rotation and a rollout.

The webhooks listen on loopback.  A small balancer stands for the Service, and sends connections only to replicas that
are ready, as kube-proxy does.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import attrs
import pytest
import trio

from trioformer import Client, open_client
from trioformer.crds import crd_of, custom_resource, install_crds, resource_part
from trioformer.errors import InternalServerError, NotFoundError, StatusError
from trioformer.leaderelection import LeaderElectionOptions
from trioformer.manager import LeaderElection, run_controllers
from trioformer.models import KubernetesObject, Model, ObjectMeta
from trioformer.models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import ConfigMap, Namespace, Secret
from trioformer.models.meta_v1 import LabelSelector
from trioformer.testing import ControlPlane
from trioformer.watchtools import wait_for
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks, WebhookServer
from trioformer.webhooks._secret_states import STATE

numbers = itertools.count()
WRITES_PER_SECOND = 50
OBJECTS = 1_000
OWNER = "gardens.example.com/owner"
"""The annotation in which the old version keeps a field that it does not have."""


@resource_part()
class GardenSpec(Model):
    width: int = 0
    height: int = 0
    owner: str = ""


@custom_resource("gardens.example.com/v2", stored=True)
class Garden(KubernetesObject):
    spec: GardenSpec = GardenSpec()


@resource_part()
class OldGardenSpec(Model):
    size: str = ""


@custom_resource("gardens.example.com/v1", kind="Garden", stored=False)
class OldGarden(KubernetesObject):
    spec: OldGardenSpec = OldGardenSpec()


def to_hub(old: OldGarden) -> Garden:
    width, height = map(int, old.spec.size.split("x"))
    annotations = dict(old.metadata.annotations)
    spec = GardenSpec(width=width, height=height, owner=annotations.pop(OWNER, ""))
    return Garden(metadata=old.metadata.evolve(annotations=annotations), spec=spec)


def from_hub(garden: Garden) -> OldGarden:
    annotations = dict(garden.metadata.annotations)
    if garden.spec.owner:
        annotations[OWNER] = garden.spec.owner
    spec = OldGardenSpec(size=f"{garden.spec.width}x{garden.spec.height}")
    return OldGarden(metadata=garden.metadata.evolve(annotations=annotations), spec=spec)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@attrs.define(eq=False)
class Replica:
    """A replica of the operator."""

    server: WebhookServer
    port: int
    stop: trio.Event = attrs.field(factory=trio.Event)
    ended: trio.Event = attrs.field(factory=trio.Event)

    @property
    def is_ready(self) -> bool:
        return not self.stop.is_set() and not self.server.not_ready_reason()


@attrs.define(eq=False)
class Cluster:
    """Replicas behind a balancer."""

    control_plane: ControlPlane
    client: Client
    namespace: str
    webhooks: Webhooks
    nursery: trio.Nursery
    port: int = attrs.field(factory=free_port)
    replicas: list[Replica] = attrs.field(factory=list)
    _turn: itertools.count[int] = attrs.field(factory=itertools.count)

    async def start_replica(self, release: str = "1") -> Replica:
        """Start a replica, and wait until it is ready."""
        port = free_port()
        server = WebhookServer(
            self.webhooks,
            f"127.0.0.1:{port}",
            service="hooks",
            namespace=self.namespace,
            url=f"https://127.0.0.1:{self.port}",
            release=release,
        )
        replica = Replica(server, port)
        await self.nursery.start(self._run, replica)
        while not replica.is_ready:  # noqa: ASYNC110  # as a kubelet probes it
            await trio.sleep(0.05)
        self.replicas.append(replica)
        return replica

    async def _run(self, replica: Replica, *, task_status: trio.TaskStatus[Any]) -> None:
        options = LeaderElectionOptions(lease_duration=5, renew_deadline=3, retry_period=0.5)
        election = LeaderElection("operator", self.namespace, options=options)
        async with open_client(kubeconfig=self.control_plane.kubeconfig) as client:
            await run_controllers(
                client,
                {},
                webhooks=replica.server,
                leader_election=election,
                stop=replica.stop,
                task_status=task_status,
            )
        replica.ended.set()

    async def stop_replica(self, replica: Replica) -> None:
        replica.stop.set()
        await replica.ended.wait()
        self.replicas.remove(replica)

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
        await trio.serve_listeners(self._pass_on, listeners, task_status=task_status)

    async def _pass_on(self, client: trio.SocketStream) -> None:
        ready = [each for each in self.replicas if each.is_ready]
        if not ready:
            await client.aclose()
            return
        port = ready[next(self._turn) % len(ready)].port
        with suppress(OSError, trio.BrokenResourceError):
            async with client, await trio.open_tcp_stream("127.0.0.1", port) as server, trio.open_nursery() as nursery:
                nursery.start_soon(_copy, client, server)
                nursery.start_soon(_copy, server, client)

    async def wait_for_secret(self, state: str, other_than: bytes = b"") -> Secret:

        def is_reached(found: Secret) -> bool:
            return found.metadata.annotations.get(STATE) == state and found.data["tls.crt"] != other_than

        secrets = self.client.api(Secret, namespace=self.namespace)
        return await wait_for(secrets, "hooks-webhook", is_reached, missing_ok=True)

    async def wait_until_installed(self) -> None:
        """Wait until the API server calls the webhooks, some milliseconds after they were installed."""
        api = self.client.api(ValidatingWebhookConfiguration)
        await wait_for(api, f"hooks.{self.namespace}", lambda _: True, missing_ok=True)
        await trio.sleep(2)


async def _copy(source: trio.SocketStream, target: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for data in source:
            await target.send_all(data)
        await target.send_eof()


@asynccontextmanager
async def cluster_of(control_plane: ControlPlane, **functions: Any) -> AsyncIterator[Cluster]:
    """A namespace with an operator, whose webhooks the API server calls only for this namespace."""
    namespace = f"webhooks-{next(numbers)}"
    selector = LabelSelector(match_labels={"webhooks": namespace})
    webhooks = Webhooks(
        validate={ConfigMap: attrs.evolve(functions["validate"], namespace_selector=selector)},
        mutate={ConfigMap: attrs.evolve(functions["mutate"], namespace_selector=selector)}
        if "mutate" in functions
        else {},
        convert=functions.get("convert", {}),
    )
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        metadata = ObjectMeta(name=namespace, labels={"webhooks": namespace})
        await client.create(Namespace(metadata=metadata))
        try:
            async with trio.open_nursery() as nursery:
                cluster = Cluster(control_plane, client, namespace, webhooks, nursery)
                await nursery.start(cluster.serve)
                await cluster.start_replica()
                await cluster.wait_until_installed()
                yield cluster
                nursery.cancel_scope.cancel()
        finally:
            for kind in (ValidatingWebhookConfiguration, MutatingWebhookConfiguration):
                with suppress(NotFoundError):
                    await client.api(kind).delete(f"hooks.{namespace}")


async def write(client: Client, namespace: str, failed: list[str], done: list[int]) -> None:
    """Write at a steady rate, whatever the writes take."""
    maps = client.api(ConfigMap, namespace=namespace)

    async def write_one(number: int) -> None:
        try:
            stored = await maps.create(ConfigMap(metadata=ObjectMeta(generate_name="map-"), data={"n": str(number)}))
            assert stored.data["seen"] == "yes"
            await maps.delete(stored.name)
            done.append(number)
        except StatusError as exc:
            failed.append(str(exc))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in itertools.count():
            await trio.sleep_until(began + number / WRITES_PER_SECOND)
            nursery.start_soon(write_one, number)


async def allow(request: AdmissionRequest[ConfigMap]) -> None: ...


async def mark(request: AdmissionRequest[ConfigMap]) -> ConfigMap:
    return request.object.evolve(data={**request.object.data, "seen": "yes"})


async def test_a_rotation_and_a_rolling_update_fail_no_call(control_plane: ControlPlane) -> None:
    failed: list[str] = []
    done: list[int] = []
    functions = {"validate": Webhook(allow, operations=["CREATE"]), "mutate": Webhook(mark, operations=["CREATE"])}
    with trio.fail_after(240):
        async with cluster_of(control_plane, **functions) as cluster, trio.open_nursery() as writing:
            await cluster.start_replica()
            first = await cluster.wait_for_secret("stable")
            writing.start_soon(write, cluster.client, cluster.namespace, failed, done)
            await trio.sleep(2)
            # A deleted Secret is restored, and its certificate rotated.
            await cluster.client.api(Secret, namespace=cluster.namespace).delete("hooks-webhook")
            second = await cluster.wait_for_secret("stable", other_than=first.data["tls.crt"])
            await trio.sleep(5)
            for replica in [*cluster.replicas]:
                await cluster.start_replica(release="2")
                await cluster.stop_replica(replica)
            await trio.sleep(5)
            found = await cluster.client.api(ValidatingWebhookConfiguration).get(f"hooks.{cluster.namespace}")
            third = await cluster.client.api(Secret, namespace=cluster.namespace).get("hooks-webhook")
            writing.cancel_scope.cancel()
    assert failed == []
    assert len(done) > WRITES_PER_SECOND * 60
    assert second.data["ca.crt"].count(b"BEGIN") == 1
    assert first.data["ca.crt"] not in second.data["ca.crt"]
    assert third.data == second.data  # a rolling update needs no new certificate
    assert found.webhooks[0].client_config.ca_bundle == second.data["ca.crt"]
    assert found.metadata.annotations["webhooks.trioformer/release"] == "2"


async def refuse(request: AdmissionRequest[ConfigMap]) -> list[str]:
    if "bad" in request.object.data:
        raise Denied("it is bad", {"data.bad": "must not exist"})
    return []


async def test_a_webhook_refuses_with_causes(control_plane: ControlPlane) -> None:
    with trio.fail_after(60):
        async with cluster_of(control_plane, validate=Webhook(refuse)) as cluster:
            maps = cluster.client.api(ConfigMap, namespace=cluster.namespace)
            await maps.create(ConfigMap(metadata=ObjectMeta(name="good")))
            with pytest.raises(StatusError) as caught:
                await maps.create(ConfigMap(metadata=ObjectMeta(name="bad"), data={"bad": "1"}))
    assert "it is bad" in str(caught.value)
    assert [cause.field for cause in caught.value.details.causes] == ["data.bad"]


async def hang(request: AdmissionRequest[ConfigMap]) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_webhook_that_is_too_late_fails_by_its_policy(control_plane: ControlPlane, policy: Any) -> None:
    late = Webhook(hang, timeout_seconds=1, failure_policy=policy)
    with trio.fail_after(60):
        async with cluster_of(control_plane, validate=late) as cluster:
            maps = cluster.client.api(ConfigMap, namespace=cluster.namespace)
            made = ConfigMap(metadata=ObjectMeta(name="late"))
            if policy == "Ignore":
                await maps.create(made)
            else:
                with pytest.raises(InternalServerError, match="failed calling webhook"):
                    await maps.create(made)
            assert await maps.exists("late") is (policy == "Ignore")


async def test_conversion_of_many_stored_objects_there_and_back_loses_nothing(control_plane: ControlPlane) -> None:
    definition = crd_of(Garden, OldGarden)
    convert = {Garden: {OldGarden: (to_hub, from_hub)}}
    with trio.fail_after(240):
        async with open_client(kubeconfig=control_plane.kubeconfig) as client:
            await install_crds(client, definition)
        try:
            async with cluster_of(control_plane, validate=Webhook(allow), convert=convert) as cluster:
                await cluster.start_replica()
                await _convert_all(cluster)
        finally:
            async with open_client(kubeconfig=control_plane.kubeconfig) as client:
                await client.api(CustomResourceDefinition).delete(definition.name)


async def _convert_all(cluster: Cluster) -> None:
    client, namespace = cluster.client, cluster.namespace
    gardens, old_gardens = client.api(Garden, namespace=namespace), client.api(OldGarden, namespace=namespace)
    made = {f"garden-{number}": GardenSpec(width=number, height=7, owner=f"o{number}") for number in range(OBJECTS)}
    await _each([partial(gardens.create, _garden(name, spec)) for name, spec in made.items()])
    for stored in ("v1", "v2"):
        await _store_as(client, stored)
        old = list(await old_gardens.list())
        assert {each.name: to_hub(each).spec for each in old} == made
        await _each([partial(old_gardens.replace, each) for each in old])
        assert {each.name: each.spec for each in await gardens.list()} == made
        assert all(OWNER not in each.metadata.annotations for each in await gardens.list())


def _garden(name: str, spec: GardenSpec) -> Garden:
    return Garden(metadata=ObjectMeta(name=name), spec=spec)


async def _each(calls: list[Any]) -> None:
    limiter = trio.CapacityLimiter(20)

    async def call(function: Any) -> None:
        async with limiter:
            await function()

    async with trio.open_nursery() as nursery:
        for function in calls:
            nursery.start_soon(call, function)


async def _store_as(client: Client, version: str) -> None:
    """Change the version in which objects are stored."""

    def change(definition: CustomResourceDefinition) -> CustomResourceDefinition:
        versions = [each.evolve(storage=each.name == version) for each in definition.spec.versions]
        return definition.evolve(spec=definition.spec.evolve(versions=versions))

    await client.api(CustomResourceDefinition).update_with_retry("gardens.gardens.example.com", change)
    await trio.sleep(3)  # until the API server uses it
