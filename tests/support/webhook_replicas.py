"""Replicas with webhooks whose certificates the leader rotates, on virtual time and without ports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import attrs
import trio

from trioformer import SharedInformerFactory
from trioformer._surroundings import Surroundings, surroundings
from trioformer.client import Client
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer
from trioformer.webhooks._install import Installer
from trioformer.webhooks._replica import ReplicaCertificate
from trioformer.webhooks._rotation import Rotation

SERVICE, NAMESPACE = "hooks", "default"
SECRET = "hooks-webhook"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
CONFIGURATION = f"{SERVICE}.{NAMESPACE}"
DAY = 86_400.0


@attrs.define
class WallClock:
    """A wall clock that advances with trio's clock, and can be set."""

    offset: float = 1_800_000_000.0

    def read(self) -> float:
        return self.offset + trio.current_time()

    def install(self, stack: ExitStack) -> None:
        token = surroundings.set(Surroundings(wall_time=self.read))
        stack.callback(surroundings.reset, token)


def validating(*names: str, policy: str = "Fail") -> ValidatingWebhookConfiguration:
    """A configuration with some webhooks."""
    webhooks = [
        {
            "name": f"{name}.example.com",
            "clientConfig": {"service": {"name": SERVICE, "namespace": NAMESPACE, "path": f"/{name}", "port": 443}},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
            "failurePolicy": policy,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for name in names
    ]
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    members: dict[str, Any] = {**head, "metadata": {"name": CONFIGURATION}, "webhooks": webhooks}
    return from_dict(ValidatingWebhookConfiguration, members)


def installer(
    client: Client,
    *wanted: KubernetesObject,
    release: str = "1",
    check_leader: Callable[[], None] = lambda: None,
) -> Installer:
    return Installer(client, SERVICE, release, wanted, CONFIGURATION, check_leader)


@attrs.define(eq=False)
class Replica:
    """One replica, whose parts run in the test's nursery until it is killed."""

    certificate: ReplicaCertificate
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    is_serving: bool = False

    @classmethod
    async def start(cls, server: APIServer, nursery: trio.Nursery) -> Replica:
        replica: Replica = await nursery.start(cls._run, server)
        return replica

    @classmethod
    async def _run(cls, server: APIServer, *, task_status: trio.TaskStatus[Replica]) -> None:
        async with server.open_client(field_manager="operator") as client:
            replica = cls(ReplicaCertificate(client, SERVICE, NAMESPACE, SECRET))
            with replica.scope:
                task_status.started(replica)
                async with trio.open_nursery() as inner:
                    await inner.start(replica.certificate.run)
                    replica.is_serving = True

    def stop(self) -> None:
        """End it as a program ends that is told to: it withdraws its announcement."""
        self.scope.cancel()


async def run_leader(
    server: APIServer,
    *wanted: KubernetesObject,
    release: str = "1",
    task_status: trio.TaskStatus[trio.CancelScope] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the leader's part until cancelled."""
    with trio.CancelScope() as scope:
        async with server.open_client(field_manager="operator") as client:
            rotation = Rotation(client, SERVICE, NAMESPACE, SECRET, HOST, installer(client, *wanted, release=release))
            factory = SharedInformerFactory(client)
            rotation.watch(factory)
            async with trio.open_nursery() as nursery:
                await nursery.start(factory.run)
                task_status.started(scope)
                await rotation.run()


def stored_secret(server: APIServer) -> Secret:
    return server.get(Secret, SECRET, namespace=NAMESPACE)


def installed_ca(server: APIServer, index: int = 0) -> bytes | None:
    """The CAs that the API server trusts for a webhook."""
    found = server.get(ValidatingWebhookConfiguration, CONFIGURATION)
    return found.webhooks[index].client_config.ca_bundle
