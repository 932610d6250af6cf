"""The certificate of one replica, and its announcement."""

from __future__ import annotations

import httpx
import trio
import trio.testing

from tests.support.lease_candidates import Fault, FaultInjector
from tests.support.webhook_replicas import HOST, NAMESPACE, PLACE, SECRET, edit_secret
from trioformer import open_client
from trioformer.models.coordination_v1 import Lease
from trioformer.testing import APIServer
from trioformer.webhooks._announcements import FINGERPRINT
from trioformer.webhooks._issue import IssuedCertificate, issue
from trioformer.webhooks._replica import ReplicaCertificate
from trioformer.webhooks._secret_states import fingerprint, first, secret_with


def issued(api_server: APIServer) -> IssuedCertificate:
    """Make the Secret."""
    made = issue(HOST, 1_800_000_000.0)
    api_server.create(secret_with(None, first(made), name=SECRET, namespace=NAMESPACE))
    return made


async def test_a_replica_reads_the_secret_again_after_its_announcement(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    issued(api_server)
    new = issue(HOST, 1_800_000_000.0)
    changes = iter([{"tls_crt": new.certificate, "tls_key": new.key.reveal()}])

    def fault(request: httpx.Request) -> Fault:
        if request.method == "PATCH":  # the announcement: the leader has just decided without it
            for change in changes:
                edit_secret(api_server, **change)
        return "hang" if "watch" in request.url.params else "none"

    transport = FaultInjector(api_server.http_transport(), nursery, fault=fault)
    async with open_client(api_server.config, http_transport=transport) as client, trio.open_nursery() as tasks:
        replica = ReplicaCertificate(client, PLACE)
        await tasks.start(replica.run)
        await trio.sleep(1)
        (lease,) = api_server.list(Lease, namespace=NAMESPACE)
        assert lease.metadata.annotations[FINGERPRINT] == fingerprint(new.certificate)
        tasks.cancel_scope.cancel()


async def test_a_replica_keeps_its_certificate_when_the_secret_is_not_valid(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    made = issued(api_server)
    async with api_server.open_client(field_manager="operator") as client, trio.open_nursery() as tasks:
        replica = ReplicaCertificate(client, PLACE)
        await tasks.start(replica.run)
        context = replica.context()
        edit_secret(api_server, tls_key=issue(HOST, 1_800_000_000.0).key.reveal())
        edit_secret(api_server, tls_crt=b"rubbish")
        await trio.sleep(20)
        assert replica.context() is context
        assert replica.not_ready_reason() == ""
        (lease,) = api_server.list(Lease, namespace=NAMESPACE)
        assert lease.metadata.annotations[FINGERPRINT] == fingerprint(made.certificate)
        tasks.cancel_scope.cancel()
