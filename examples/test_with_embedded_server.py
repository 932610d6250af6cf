"""Test a program that uses informers, on virtual time and without a cluster.

The fixtures ``api_server`` and ``k8s_client`` are part of trioformer. ``nursery`` and
``autojump_clock`` are part of pytest-trio. Run the tests with ``pytest examples``.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer import Client, ObjectMeta, ResourceEventHandler, SharedInformerFactory
from trioformer.errors import ApplyConflictError
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer


class PodNames(ResourceEventHandler[Pod]):
    """The code under test, which keeps the names of the existing pods."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def on_add(self, obj: Pod, *, is_initial: bool) -> None:
        self.names.add(obj.name)

    async def on_delete(self, obj: Pod, *, is_stale: bool) -> None:
        self.names.discard(obj.name)


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default"))


async def test_created_and_deleted_pods_are_tracked(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    k8s_client: Client,
    nursery: trio.Nursery,
) -> None:
    api_server.create(pod("first"))
    handler = PodNames()
    factory = SharedInformerFactory(k8s_client)
    factory.informer(Pod).add_event_handler(handler)
    await nursery.start(factory.run)

    api_server.create(pod("second"))
    api_server.delete(Pod, "first")
    await trio.testing.wait_all_tasks_blocked()

    assert handler.names == {"second"}


async def test_a_program_labels_new_pods(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    k8s_client: Client,
    nursery: trio.Nursery,
) -> None:
    async def label_first_pod() -> None:
        await trio.sleep(30)
        patch = {"metadata": {"labels": {"seen": "yes"}}}
        await k8s_client.api(Pod, "default").patch(
            "first", patch, field_manager="labeller"
        )

    api_server.create(pod("first"))
    nursery.start_soon(label_first_pod)

    await api_server.expect(
        Pod,
        "first",
        lambda found: found.metadata.labels.get("seen") == "yes",
        within=60,
    )

    (write,) = [request for request in api_server.requests if request.is_write]
    assert (write.verb, write.resource, write.name, write.manager) == (
        "patch",
        "pods",
        "first",
        "labeller",
    )


async def test_no_change_is_missed_when_history_is_compacted_during_a_disconnect(
    autojump_clock: trio.testing.MockClock,
    api_server: APIServer,
    k8s_client: Client,
    nursery: trio.Nursery,
) -> None:
    api_server.create(pod("before"))
    handler = PodNames()
    factory = SharedInformerFactory(k8s_client)
    informer = factory.informer(Pod)
    informer.add_event_handler(handler)
    await nursery.start(factory.run)

    api_server.disconnect_watches()
    api_server.delete(Pod, "before")
    api_server.create(pod("after"))
    api_server.compact()  # the next watch gets 410 Gone
    await trio.sleep(60)  # virtual time: backoff and relist take no real time

    assert handler.names == {"after"}
    assert informer.statistics().reflector.lists == 2


async def test_a_field_of_somebody_else_is_a_conflict(
    api_server: APIServer, k8s_client: Client
) -> None:
    settings = k8s_client.api(ConfigMap, "default")
    wanted = ConfigMap(metadata=ObjectMeta(name="settings"), data={"size": "1"})
    await settings.apply(wanted, field_manager="operator")

    # as a user with kubectl would
    api_server.patch(ConfigMap, "settings", {"data": {"size": "2"}})

    with pytest.raises(ApplyConflictError, match=r"\.data\.size"):
        await settings.apply(wanted, field_manager="operator")
    assert (
        await settings.apply(wanted, field_manager="operator", force=True)
    ).data == {"size": "1"}


async def test_the_permissions_that_a_program_needs_are_in_its_requests(
    api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(k8s_client)  # the program
    factory.informer(Pod)
    await nursery.start(factory.run)
    settings = ConfigMap(metadata=ObjectMeta(name="settings"), data={"size": "1"})
    await k8s_client.api(ConfigMap, "default").apply(settings, field_manager="operator")
    await trio.testing.wait_all_tasks_blocked()

    used = {
        (each.group, each.resource, each.verb)
        for each in api_server.requests
        if each.is_resource
    }
    # Applying an object that does not exist also needs "create".
    assert used == {
        ("", "pods", "list"),
        ("", "pods", "watch"),
        ("", "configmaps", "patch"),
    }
