"""cert-manager: two requests are made for one certificate, and then none is ever issued.

The controller looked in its cache for the request of the next revision, and created one with a generated name if there
was none.  If the cache was behind, or the response was lost, it created a second one.  Another controller waited until
there were no duplicates, but nobody deleted them.  Now the name contains the revision.

https://github.com/cert-manager/cert-manager/issues/4956
"""

from __future__ import annotations

from contextlib import suppress

import attrs

from tests.testing.simulation.published._run import run_controller
from trioformer import AlreadyExistsError, Client, NotFoundError, ObjectMeta, SharedInformerFactory, crds
from trioformer.controller import Controller, Request, set_controller_reference
from trioformer.models import KubernetesObject, Model
from trioformer.testing.simulation import World, drawn, step


@crds.resource_part()
class CertificateSpec(Model):
    """The desired state."""

    revision: int = 1


@crds.resource_part()
class CertificateStatus(Model):
    """The observed state."""

    revision: int = 0


@crds.custom_resource("cert-manager.io/v1")
class Certificate(KubernetesObject):
    """A certificate, which is renewed when the revision in its spec grows."""

    spec: CertificateSpec = CertificateSpec()
    status: CertificateStatus = CertificateStatus()


@crds.custom_resource("cert-manager.io/v1")
class CertificateRequest(KubernetesObject):
    """A request to sign a revision of a certificate."""

    spec: CertificateSpec = CertificateSpec()


@attrs.define(eq=False)
class Reconciler:
    """Creates a request for each revision."""

    client: Client
    factory: SharedInformerFactory

    async def run(self) -> None:
        controller = Controller("certificates", self.reconcile)
        controller.watch(self.factory.informer(Certificate))
        controller.owns(self.factory, CertificateRequest, owner=Certificate)
        await run_controller(self.factory, controller)

    async def reconcile(self, request: Request) -> None:
        certificate = self.factory.informer(Certificate).lister.get(request)
        if certificate is None or certificate.metadata.deletion_timestamp is not None:
            return
        requests = self.factory.informer(CertificateRequest).lister.list(namespace=certificate.namespace)
        revision = certificate.spec.revision
        found = [each for each in requests if each.spec.revision == revision]
        if len(found) > 1:
            raise RuntimeError(f"{len(found)} requests for revision {revision}")
        if not found:
            await self.create_request(certificate, revision)
        else:
            changed = certificate.evolve(status=CertificateStatus(revision=revision))
            await self.client.api(Certificate).update_status(certificate, changed)
        for old in requests:
            if old.spec.revision < revision:
                with suppress(NotFoundError):
                    await self.client.api(CertificateRequest).delete(old)

    async def create_request(self, certificate: Certificate, revision: int) -> None:
        metadata = ObjectMeta(generate_name=f"{certificate.name}-", namespace=certificate.namespace)
        await self.create(certificate, metadata, revision)

    async def create(self, certificate: Certificate, metadata: ObjectMeta, revision: int) -> None:
        made = CertificateRequest(metadata=metadata, spec=CertificateSpec(revision=revision))
        await self.client.api(CertificateRequest).create(set_controller_reference(made, certificate))


class FixedReconciler(Reconciler):
    """The name is fixed, so a second request for a revision is rejected."""

    async def create_request(self, certificate: Certificate, revision: int) -> None:
        metadata = ObjectMeta(name=f"{certificate.name}-{revision}", namespace=certificate.namespace)
        with suppress(AlreadyExistsError):
            await self.create(certificate, metadata, revision)


async def operator(client: Client) -> None:
    await Reconciler(client, SharedInformerFactory(client)).run()


async def fixed(client: Client) -> None:
    await FixedReconciler(client, SharedInformerFactory(client)).run()


class Certificates:
    """A certificate is created and renewed."""

    kinds = (Certificate, CertificateRequest)

    @step
    def create(self, world: World) -> None:
        world.create(Certificate(metadata=ObjectMeta(name="tls", namespace="default")))

    @step
    def renew(self, world: World, revision: int = drawn(2, 4)) -> None:
        if revision > world.get(Certificate, "tls").spec.revision:
            world.patch(Certificate, "tls", {"spec": {"revision": revision}})
