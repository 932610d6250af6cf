"""``examples/crd_operator.py`` as a process against a real kube-apiserver, killed and started again in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from examples.crd_operator import FINALIZER, LABEL, Website, WebsiteSpec
from tests.support.processes import ROOT, Program, running
from trioformer import Api, Client, NotFoundError, StatusError, has_condition, load_config, open_client, wait_for
from trioformer.controller import is_controlled_by
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod, Service
from trioformer.models.events_v1 import Event
from trioformer.testing import ControlPlane
from trioformer.watchtools import deleted, resuming_watch

OPERATOR = ROOT / "examples" / "crd_operator.py"


@attrs.define(eq=False)
class Cluster:
    """A namespace of a real control plane."""

    kubeconfig: Path
    client: Client
    namespace: str

    @property
    def websites(self) -> Api[Website]:
        return self.client.api(Website, namespace=self.namespace)

    @property
    def pods(self) -> Api[Pod]:
        return self.client.api(Pod, namespace=self.namespace)

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Program]:
        """Run the operator; leaving the block kills it."""
        with trio.fail_after(120):
            async with running(str(OPERATOR), "--kubeconfig", str(self.kubeconfig)) as program:
                await program.wait_for_line("operating")
                yield program

    async def create(self, **spec: object) -> None:
        await self.websites.create(Website(metadata=ObjectMeta(name="site"), spec=from_dict(WebsiteSpec, spec)))

    async def wait_until_ready(self) -> Website:
        return await wait_for(self.websites, "site", has_condition("Ready"))

    async def wait_until_pods(self, enough: Callable[[int], bool]) -> None:
        """Wait until the number of pods is as wanted."""
        listing = await self.pods.list()
        names = {pod.name for pod in listing}
        async with resuming_watch(self.pods, resource_version=listing.resource_version) as events:
            while not enough(len(names)):
                event = await anext(aiter(events))
                (names.discard if event.type == "DELETED" else names.add)(event.object.name)

    async def check(self, website: Website, *, page: str, pods: int, not_owned: Sequence[str] = ()) -> None:
        """Make sure that there is what there should be, and nothing else."""
        everything = list(await self.pods.list())
        own = [pod for pod in everything if is_controlled_by(pod, website)]
        assert len(own) == pods
        assert sorted(pod.name for pod in everything if pod not in own) == sorted(not_owned)
        (config_map,) = await self.client.api(ConfigMap, namespace=self.namespace).list(label_selector=LABEL)
        (service,) = await self.client.api(Service, namespace=self.namespace).list()
        assert is_controlled_by(config_map, website)
        assert is_controlled_by(service, website)
        assert config_map.data == {"index.html": page}
        assert website.metadata.finalizers == (FINALIZER,)
        assert website.status.observed_generation == website.metadata.generation
        assert website.status.pods == pods

    async def finish_deletions(self) -> None:
        """Delete the pods that are terminating, as kube-controller-manager does with those that no node has.

        kube-apiserver writes a deletion in two steps, and does the first one alone when a client dies in between.
        """
        for pod in await self.pods.list():
            if pod.metadata.deletion_timestamp is not None:
                with suppress(NotFoundError):
                    await self.pods.delete(pod.name)

    async def check_nothing_left(self, *, not_owned: Sequence[str] = ()) -> None:
        assert sorted(pod.name for pod in await self.pods.list()) == sorted(not_owned)
        assert list(await self.client.api(ConfigMap, namespace=self.namespace).list(label_selector=LABEL)) == []
        assert list(await self.client.api(Service, namespace=self.namespace).list()) == []


@pytest.fixture
async def cluster(control_plane: ControlPlane, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    namespace = request.node.name.replace("_", "-")[:63].rstrip("-")
    async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
        yield Cluster(control_plane.kubeconfig, client, namespace)


async def test_a_website_comes_changes_and_goes(cluster: Cluster) -> None:
    async with cluster.operator() as operator:
        orphan = {
            "metadata": {"name": "orphan", "labels": {LABEL: "site"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await cluster.pods.create(from_dict(Pod, orphan))
        await cluster.create(page="Hello", replicas=3)
        website = await cluster.wait_until_ready()
        await cluster.check(website, page="Hello", pods=3)
        assert is_controlled_by(await cluster.pods.get("orphan"), website)
        await cluster.websites.patch("site", {"spec": {"page": "Hello, world", "replicas": 1}})
        await cluster.check(await cluster.wait_until_ready(), page="Hello, world", pods=1)
        (left,) = await cluster.pods.list()
        await cluster.pods.patch(left.name, {"metadata": {"labels": {LABEL: None}}})
        await wait_for(cluster.pods, left.name, lambda pod: not pod.metadata.owner_references)
        await cluster.websites.patch("site", {"spec": {"replicas": 2}})
        await cluster.check(await cluster.wait_until_ready(), page="Hello, world", pods=2, not_owned=[left.name])
        await cluster.websites.delete("site")
        await wait_for(cluster.websites, "site", deleted())
        await cluster.check_nothing_left(not_owned=[left.name])
        assert await operator.interrupt() == 0
    # A kind is not served at once when it is established, and informers say so.
    assert [line for line in operator.errors if "storage is (re)initializing" not in line] == []
    all_events = await cluster.client.api(Event, namespace=cluster.namespace).list()
    # kube-apiserver itself reports a Service whose address it finds before its own cache has it.
    events = [event for event in all_events if event.reporting_controller == "website-operator"]
    assert {"Created", "Deleted", "TakenDown"} == {event.reason for event in events}
    assert all(event.regarding.name == "site" and event.regarding.uid == website.uid for event in events)


async def test_a_spec_that_is_not_valid_is_refused_by_the_server(cluster: Cluster) -> None:
    async with cluster.operator():
        with pytest.raises(StatusError, match=r"spec\.replicas"):
            await cluster.create(page="Hello", replicas=-1)


async def test_an_operator_that_is_killed_again_and_again_goes_on_where_it_was(cluster: Cluster) -> None:
    """While it creates, while it deletes what is too much, and while it takes all down."""
    async with cluster.operator():
        pass
    await cluster.create(page="Hello", replicas=40)
    after_death: list[int] = []
    for least in (5, 20, 35):
        async with cluster.operator():
            await cluster.wait_until_pods(lambda pods, least=least: pods >= least)  # type: ignore[misc]  # bound early
        after_death.append(len(await cluster.pods.list()))
    assert any(pods < 40 for pods in after_death), "it was always too quick for us"
    async with cluster.operator():
        await cluster.check(await cluster.wait_until_ready(), page="Hello", pods=40)
    await cluster.websites.patch("site", {"spec": {"page": "Bye", "replicas": 20}})
    async with cluster.operator():
        await cluster.wait_until_pods(lambda pods: pods <= 35)
    await cluster.finish_deletions()
    assert len(await cluster.pods.list()) >= 20
    async with cluster.operator():
        website = await cluster.wait_until_ready()
        await cluster.check(website, page="Bye", pods=20)
    await cluster.websites.delete("site")
    async with cluster.operator():
        await cluster.wait_until_pods(lambda pods: pods <= 15)
    await cluster.finish_deletions()
    async with cluster.operator():
        await wait_for(cluster.websites, "site", deleted(uid=website.uid))
        await cluster.check_nothing_left()
