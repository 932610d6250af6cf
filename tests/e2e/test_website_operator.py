"""``examples/website_operator.py`` on a cluster where Deployments make pods and pods run; killed at every write."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import httpx
import pytest
import trio

from examples.website_operator import LABEL, Website, WebsiteSpec, serve
from tests.e2e.workloads import make_namespace
from tests.support.processes import ROOT, running
from trioformer import Api, Client, has_condition, load_config, open_client, resuming_watch, wait_for
from trioformer.controller import is_controlled_by
from trioformer.crds import install_crds
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.conditions import find_condition
from trioformer.models.core_v1 import Binding, ConfigMap, ObjectReference, Pod, Secret, Service
from trioformer.testing import ControlPlane
from trioformer.watchtools import deleted

NAME_OF_SITE = "site"


@attrs.define(eq=False)
class Site:
    """A Website in a namespace of its own, and what a user does with it."""

    client: Client
    namespace: str

    def api(self, kind: type[Website]) -> Api[Website]:
        return self.client.api(kind, namespace=self.namespace)

    async def live(self) -> None:
        """Create the Website, change all that it depends on, and delete it."""
        websites, client, namespace = self.api(Website), self.client, self.namespace
        config_maps, services = client.api(ConfigMap, namespace=namespace), client.api(Service, namespace=namespace)
        deployments, secrets = client.api(Deployment, namespace=namespace), client.api(Secret, namespace=namespace)
        spec = WebsiteSpec(page="Hello", replicas=2, secret="settings")  # a name
        await websites.create(Website(metadata=ObjectMeta(name=NAME_OF_SITE), spec=spec))
        await wait_for(websites, NAME_OF_SITE, lambda site: reason_of(site) == "SecretMissing")
        await secrets.create(Secret(metadata=ObjectMeta(name="settings"), string_data={"MODE": "1"}))

        website = await self.wait_until_ready(available=2)
        assert website.metadata.finalizers == (LABEL,)
        config_map, service = await config_maps.get(NAME_OF_SITE), await services.get(NAME_OF_SITE)
        deployment = await deployments.get(NAME_OF_SITE)
        assert all(is_controlled_by(each, website) for each in (config_map, service, deployment))
        assert config_map.data == {"index.html": "Hello"}
        assert [each.port for each in service.spec.ports] == [80]
        (container,) = deployment.spec.template.spec.containers
        assert [each.secret_ref and each.secret_ref.name for each in container.env_from] == ["settings"]

        await websites.patch(NAME_OF_SITE, {"spec": {"page": "Hello, world", "replicas": 3}})
        await self.wait_until_ready(available=3)
        assert (await config_maps.get(NAME_OF_SITE)).data == {"index.html": "Hello, world"}

        secret = await secrets.patch("settings", {"stringData": {"MODE": "2"}})
        await wait_for(deployments, NAME_OF_SITE, lambda each: version_in(each) == secret.resource_version)
        await self.wait_until_ready(available=3)

        # What is not applied any more is removed.
        await websites.patch(NAME_OF_SITE, {"spec": {"secret": ""}})
        await wait_for(deployments, NAME_OF_SITE, lambda each: not each.spec.template.spec.containers[0].env_from)
        website = await self.wait_until_ready(available=3)

        await websites.delete(NAME_OF_SITE)
        await wait_for(websites, NAME_OF_SITE, deleted(uid=website.uid))
        assert list(await deployments.list()) == []
        for gone in (config_map, service):  # by the garbage collector
            await wait_for(client.api(type(gone), namespace=namespace), gone.name, deleted(uid=gone.uid))

    async def wait_until_ready(self, *, available: int) -> Website:
        ready = has_condition("Ready")
        return await wait_for(
            self.api(Website), NAME_OF_SITE, lambda site: ready(site) and site.status.available == available
        )


def reason_of(website: Website) -> str:
    condition = find_condition(website.status.conditions, "Ready")
    return "" if condition is None else condition.reason


def version_in(deployment: Deployment) -> str:
    return deployment.spec.template.metadata.annotations.get("example.com/secret-version", "")


async def schedule(pods: Api[Pod]) -> None:
    """Be the scheduler, which this cluster does not have."""
    async with resuming_watch(pods, resource_version=(await pods.list()).resource_version) as events:
        async for event in events:
            if event.type == "ADDED" and not event.object.spec.node_name:
                node = ObjectReference(kind="Node", name="node-1")
                binding = Binding(metadata=ObjectMeta(name=event.object.name), target=node)
                await pods.create_subresource(event.object.name, "binding", binding)


@pytest.fixture
async def site(cluster: ControlPlane) -> AsyncIterator[Site]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client, trio.open_nursery() as nursery:
        namespace = await make_namespace(client, "website-operator")
        await install_crds(client, Website)
        nursery.start_soon(schedule, client.api(Pod, namespace=namespace))
        yield Site(client, namespace)
        nursery.cancel_scope.cancel()


async def test_a_website_lives_with_the_program_of_the_example(
    site: Site, cluster: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    with trio.fail_after(120):
        async with running(str(ROOT / "examples" / "website_operator.py"), "--http", "127.0.0.1:0") as operator:
            await site.live()
            assert await operator.interrupt() == 0
    assert operator.lines == []
    # The status is not written over a change that the operator has not seen. The conflict is logged, and tried again.
    assert [error for error in operator.errors if "Conflict" not in error] == []


# --- an operator that is killed ---------------------------------------------------------------------------------------


@attrs.define(eq=False)
class DeadlyTransport(httpx.AsyncBaseTransport):
    """Cancels the operator when the server has carried out its last write."""

    inner: httpx.AsyncBaseTransport
    writes_left: int
    operator: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.inner.handle_async_request(request)
        if request.method != "GET" and "/namespaces/website-operator" in request.url.path:
            self.writes_left -= 1
            if self.writes_left <= 0:
                self.operator.cancel()
                await trio.lowlevel.checkpoint_if_cancelled()
        return response


def network(kubeconfig: Path, directory: Path) -> httpx.AsyncHTTPTransport:
    """Make a transport of httpx, for the certificates of a kubeconfig."""
    config = load_config(kubeconfig=kubeconfig)
    assert config.ca_data is not None
    assert config.client_certificate_data is not None
    assert config.client_key_data is not None
    context = ssl.create_default_context(cadata=config.ca_data.decode())
    pair = directory / "pair.pem"
    pair.touch(mode=0o600)
    pair.write_bytes(config.client_certificate_data + b"\n" + bytes(config.client_key_data))
    context.load_cert_chain(pair)
    return httpx.AsyncHTTPTransport(verify=context)


async def test_an_operator_that_dies_after_every_number_of_writes_comes_to_the_same_end(
    site: Site, cluster: ControlPlane, tmp_path: Path
) -> None:
    """The first one dies after its first write, the second one after its second, and so on."""
    config = load_config(kubeconfig=cluster.kubeconfig)
    deaths = itertools.count()

    async def operate() -> None:
        async with network(cluster.kubeconfig, tmp_path) as inner:
            for number in itertools.count(1):
                transport = DeadlyTransport(inner, number)
                with transport.operator:
                    async with open_client(config, http_transport=transport) as client:
                        await serve(client, trio.Event())
                next(deaths)

    with trio.fail_after(300):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(operate)
            await site.live()
            nursery.cancel_scope.cancel()
    assert next(deaths) > 5
