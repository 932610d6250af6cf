"""Replicas with webhooks whose certificates the leader rotates, on virtual time and without ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import cache
from typing import Any

import attrs
import trio
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

from tests.support.lease_candidates import FaultInjector
from trioformer import SharedInformerFactory, open_client
from trioformer._surroundings import Surroundings, surroundings
from trioformer.client import Client
from trioformer.errors import NotFoundError
from trioformer.models import KubernetesObject, from_dict
from trioformer.models.admissionregistration_v1 import ValidatingWebhookConfiguration
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer
from trioformer.webhooks._configurations import Place
from trioformer.webhooks._install import Installer
from trioformer.webhooks._issue import _is_signed_by
from trioformer.webhooks._replica import ReplicaCertificate
from trioformer.webhooks._rotation import Rotation
from trioformer.webhooks._secret_states import STATE, fingerprint

SERVICE, NAMESPACE = "hooks", "default"
SECRET = "hooks-webhook"
PLACE = Place(service=SERVICE, namespace=NAMESPACE)
HOST = f"{SERVICE}.{NAMESPACE}.svc"
CONFIGURATION = f"{SERVICE}.{NAMESPACE}"
DAY = 86_400.0
LATE = 55.0
"""Seconds for which an API server may not know a new configuration; less than the leader waits."""


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
    return Installer(client, PLACE, release, wanted, check_leader)


@asynccontextmanager
async def client_with_faults(server: APIServer, nursery: trio.Nursery) -> AsyncIterator[tuple[Client, FaultInjector]]:
    """A client, each of whose requests takes some time."""
    transport = FaultInjector(server.http_transport(), nursery, fault=lambda _: "slow", latency=lambda: 0.2)
    async with open_client(server.config, http_transport=transport, field_manager="operator") as client:
        yield client, transport


@attrs.define(eq=False)
class Replica:
    """The part of the webhooks that each replica runs."""

    server: APIServer
    nursery: trio.Nursery
    certificate: ReplicaCertificate | None = None
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    transport: FaultInjector | None = None

    @property
    def is_serving(self) -> bool:
        return self.certificate is not None and not self.certificate.not_ready_reason()

    @property
    def fingerprint(self) -> str:
        assert self.certificate is not None
        return self.certificate._fingerprint

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with client_with_faults(self.server, self.nursery) as (client, self.transport):
            self.certificate = ReplicaCertificate(client, PLACE)
            with self.scope:
                await self.certificate.run(task_status=task_status)
        self.certificate = None

    def stop(self) -> None:
        """End it as a program ends on SIGTERM."""
        self.scope.cancel()

    def kill(self) -> None:
        """End it as a program ends on SIGKILL: no request reaches the server any more."""
        assert self.transport is not None
        self.transport.fault = lambda _: "hang"
        self.scope.cancel()


@attrs.define(eq=False)
class Leader:
    """The part of the webhooks that only the leader runs."""

    server: APIServer
    nursery: trio.Nursery
    wanted: Sequence[KubernetesObject]
    release: str = "1"
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with client_with_faults(self.server, self.nursery) as (client, _):
            install = installer(client, *self.wanted, release=self.release)
            rotation = Rotation(client, PLACE, install)
            factory = SharedInformerFactory(client)
            rotation.watch(factory)
            with self.scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(factory.run)
                    await rotation.run(task_status=task_status)


@attrs.define(eq=False)
class Witness:
    """Calls all replicas all the time, as API servers do of which some learn of a configuration late."""

    server: APIServer
    replicas: list[Replica]
    failed: list[str] = attrs.field(factory=list)
    states: list[str] = attrs.field(factory=list)
    """The states of the rotation in their order."""
    changed: trio.Event = attrs.field(factory=trio.Event)
    _certificates: dict[str, bytes] = attrs.field(factory=dict)
    _bundles: list[tuple[float, bytes]] = attrs.field(factory=list)
    """The CAs of the configuration, and until when an API server uses them."""

    async def run(self) -> None:
        while True:
            self.look()
            await trio.sleep(10 if self.states[-1:] == ["stable"] and len(self._bundles) == 1 else 0.5)

    def look(self) -> None:
        with suppress(NotFoundError):
            secret = stored_secret(self.server)
            for key in ("tls.crt", "next-tls.crt"):
                if certificate := secret.data.get(key, b""):
                    self._certificates[fingerprint(certificate)] = certificate
            state = secret.metadata.annotations.get(STATE, "")
            if self.states[-1:] != [state]:
                self.states.append(state)
                self.changed.set()
                self.changed = trio.Event()
        with suppress(NotFoundError):
            ca, now = installed_ca(self.server) or b"", trio.current_time()
            known = [bundle for bundle in self._bundles if bundle[0] > now and bundle[1] != ca]
            self._bundles = [*known, (now + LATE, ca)]
            for replica in self.replicas:
                if replica.is_serving:
                    self._call(replica.fingerprint)

    def _call(self, served: str) -> None:
        for _, bundle in self._bundles:
            if not is_trusted(self._certificates[served], bundle):
                self.failed.append(f"{trio.current_time():g}: {self.states[-1]}")


@cache
def is_trusted(certificate: bytes, bundle: bytes) -> bool:
    """Whether an API server that trusts some CAs can call a replica."""
    found = load_pem_x509_certificate(certificate)
    return any(_is_signed_by(found, each) for each in load_pem_x509_certificates(bundle))


def stored_secret(server: APIServer) -> Secret:
    return server.get(Secret, SECRET, namespace=NAMESPACE)


def edit_secret(server: APIServer, **changes: bytes) -> None:
    """Edit the Secret as a user does with kubectl; an underscore stands for a dot."""
    found = stored_secret(server)
    server.replace(
        found.evolve(data={**found.data, **{key.replace("_", "."): value for key, value in changes.items()}})
    )


def installed_ca(server: APIServer, index: int = 0) -> bytes | None:
    """The CAs that the API server trusts for a webhook."""
    found = server.get(ValidatingWebhookConfiguration, CONFIGURATION)
    return found.webhooks[index].client_config.ca_bundle
