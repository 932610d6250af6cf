"""The roles on the page about certificates of webhooks are what the operator uses."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, TypeAlias

import trio
import trio.testing
import yaml

from tests.support.webhook_replicas import (
    NAMESPACE,
    PLACE,
    SECRET,
    SERVICE,
    Rotation,
    installer,
    validating,
)
from tests.webhooks.test_install import converted, definition
from trioformer import SharedInformerFactory, open_client
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer
from trioformer.testing._recording import Recorder
from trioformer.testing._serving._access import operator_actions
from trioformer.webhooks._announcements import SERVICE as LABEL
from trioformer.webhooks._replica import ReplicaCertificate

Permission: TypeAlias = tuple[str, str, str]
"""Group, resource with subresource, and verb."""
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "webhook-certificates.rst"


def documented() -> set[Permission]:
    blocks = re.findall(r"code-block:: yaml\n\n((?:   .*\n|\n)+)", PAGE.read_text())
    (block,) = [each for each in blocks if "kind: Role" in each]
    roles: list[Any] = list(yaml.safe_load_all(textwrap.dedent(block)))
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


async def test_the_documented_roles_are_what_the_leader_and_a_replica_use(
    autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    api_server.create(definition())
    recorder = Recorder()
    operator_actions.set(recorder.observer("test"))
    transport = api_server.http_transport(operator=True)
    async with open_client(api_server.config, http_transport=transport) as client, trio.open_nursery() as nursery:
        rotation = Rotation(client, PLACE, installer(client, validating("a", "b"), converted()))
        factory = SharedInformerFactory(client)
        rotation.watch(factory)
        await nursery.start(factory.run)
        await nursery.start(rotation.run)
        await nursery.start(ReplicaCertificate(client, PLACE).run)
        lease = Lease(metadata=ObjectMeta(name="dead", namespace=NAMESPACE, labels={LABEL: SERVICE}))
        api_server.create(lease)
        await trio.sleep(5)
        api_server.delete(Secret, SECRET, namespace=NAMESPACE)
        await trio.sleep(300)
        nursery.cancel_scope.cancel()
    async with open_client(api_server.config, http_transport=transport) as client:
        await installer(client, validating("a"), release="2").install(b"CA")
        await installer(client, release="3").install(b"CA")
    used = {(each.group, each.resource, each.verb) for each in recorder.permissions()}
    assert documented() == used | only_of_mutating_webhooks()


def only_of_mutating_webhooks() -> set[Permission]:
    """The operator of this test has none, and only looks for an old configuration."""
    group, resource = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"
    return {(group, resource, verb) for verb in ("create", "patch", "update", "delete")}
