"""The permissions of operators, and which of their names are fixed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

from trioformer.client import Client
from trioformer.errors import NotFoundError
from trioformer.manager import run_controllers
from trioformer.models import ObjectMeta
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap, Namespace, Pod, Secret
from trioformer.testing import APIServer
from trioformer.testing._recording import Permission, Recorder
from trioformer.testing._serving._access import operator_actions
from trioformer.testing._serving._roles import Action
from trioformer.watchtools import wait_for
from trioformer.webhooks import AdmissionRequest, Webhooks, WebhookServer


async def recorded(nursery: trio.Nursery, operate: Any, server: APIServer | None = None) -> set[str]:
    """Return the permissions that a function uses, as texts."""
    recorder = await record(nursery, operate, server)
    return {f"{one.role}: {one}" for one in recorder.permissions()}


async def record(nursery: trio.Nursery, operate: Any, server: APIServer | None = None) -> Recorder:
    server = server or APIServer()
    await nursery.start(server.run)
    recorder = Recorder()
    operator_actions.set(recorder.observer("test"))
    async with server.open_client(operator=True) as client:
        await operate(client)
    return recorder


async def test_the_names_from_the_code_of_an_operator_are_fixed(nursery: trio.Nursery) -> None:
    async def operate(client: Client) -> None:
        leases = client.api(Lease, namespace="default")
        await leases.create(Lease(metadata=ObjectMeta(name="robot")))
        lease = await leases.get("robot")
        await client.api(Pod).list()
        await leases.replace(lease)
        await leases.list(field_selector="metadata.name=robot")

    assert await recorded(nursery, operate) == {
        "Role: create leases.coordination.k8s.io",
        "Role: get leases.coordination.k8s.io robot",
        "Role: list leases.coordination.k8s.io robot",
        "Role: update leases.coordination.k8s.io robot",
        "ClusterRole: list pods",
    }


@pytest.mark.parametrize("name", ["key", "web-key", "web.18ec"])
async def test_a_name_from_an_object_is_not_fixed(nursery: trio.Nursery, name: str) -> None:
    server = APIServer()
    server.create(ConfigMap(metadata=ObjectMeta(name="web"), data={"secret": "key"}))
    server.create(Secret(metadata=ObjectMeta(name=name)))

    async def operate(client: Client) -> None:
        await client.api(ConfigMap, namespace="default").list()
        await client.api(Secret, namespace="default").get(name)

    assert await recorded(nursery, operate, server) == {"Role: list configmaps", "Role: get secrets"}


async def test_an_operator_in_one_namespace_needs_only_a_role(nursery: trio.Nursery) -> None:
    async def operate(client: Client) -> None:
        api = client.api(ConfigMap, namespace="default")
        await api.list()
        await api.apply(ConfigMap(metadata=ObjectMeta(name="a")), field_manager="robot")

    expected = {"Role: list configmaps", "Role: create configmaps", "Role: patch configmaps"}
    assert await recorded(nursery, operate) == expected


async def test_a_namespace_is_in_the_cluster(nursery: trio.Nursery) -> None:
    async def operate(client: Client) -> None:
        await client.api(Namespace).get("default")

    assert await recorded(nursery, operate) == {"ClusterRole: get namespaces default"}


async def test_what_every_user_may_do_is_not_recorded(nursery: trio.Nursery) -> None:
    async def operate(client: Client) -> None:
        await client.request("GET", "/version")
        await client.request("GET", "/apis/apps/v1")
        await client.request("GET", "/readyz")
        with pytest.raises(NotFoundError):
            await client.request("GET", "/metrics")

    assert await recorded(nursery, operate) == {"ClusterRole: get /metrics"}


async def test_what_other_processes_record_is_added(nursery: trio.Nursery) -> None:
    async def operate(client: Client) -> None:
        await client.api(Pod, namespace="default").list()

    recorder, both = await record(nursery, operate), Recorder()
    both.add(recorder.state())
    both.add(recorder.state())
    assert both.permissions() == {Permission("Role", "", "pods", "list"): {"test"}}


async def test_only_clients_that_are_marked_are_operators(nursery: trio.Nursery) -> None:
    server, recorder = APIServer(), Recorder()
    await nursery.start(server.run)
    operator_actions.set(recorder.observer("test"))
    async with server.open_client() as client:
        await client.api(Pod).list()
    assert recorder.permissions() == {}


async def test_what_a_replica_requests_to_serve_webhooks_is_the_operators(nursery: trio.Nursery) -> None:
    server, recorder, stop = APIServer(), Recorder(), trio.Event()
    operator_actions.set(recorder.observer("test"))
    await nursery.start(server.run)

    async def check(request: AdmissionRequest[ConfigMap]) -> None:
        """Allow everything."""

    webhooks = WebhookServer(
        Webhooks(validate={ConfigMap: check}), "127.0.0.1:0", service="hooks", namespace="default", shutdown_delay=0
    )
    async with server.open_client() as client, trio.open_nursery() as running:
        running.start_soon(partial(run_controllers, client, {}, webhooks=webhooks, stop=stop))
        configurations = client.api(ValidatingWebhookConfiguration)
        await wait_for(configurations, "hooks.default", lambda _: True, missing_ok=True)
        stop.set()
    leases = {one.verb for one in recorder.permissions() if one.resource == "leases"}
    assert leases >= {"patch", "delete"}  # the announcement of the replica


async def test_what_the_function_of_a_webhook_uses_is_the_operators(nursery: trio.Nursery) -> None:
    server, recorder = APIServer(), Recorder()
    operator_actions.set(recorder.observer("test"))
    await nursery.start(server.run)
    async with server.open_client() as client:

        async def check(request: AdmissionRequest[ConfigMap]) -> None:
            await client.api(Secret, namespace="default").list()

        await server.install_webhooks(Webhooks(validate={ConfigMap: check}))
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    assert {str(one) for one in recorder.permissions()} == {"list secrets"}


@pytest.mark.parametrize(("tests", "role"), [(("one", "two"), "Role"), (("one", "one"), "ClusterRole")])
async def test_what_one_test_uses_in_two_namespaces_needs_a_cluster_role(tests: tuple[str, str], role: str) -> None:
    recorder = Recorder()
    for test, namespace in zip(tests, ("a", "b"), strict=True):
        action = Action("get", resource="configmaps", namespace=namespace, name="settings")
        recorder.observer(test).allows(action, APIServer()._storage, confirms_write=False)
    assert set(recorder.permissions()) == {Permission(role, "", "configmaps", "get", "settings")}
