"""Test what a user may do: the embedded server enforces the given roles."""

from __future__ import annotations

import pytest
import trio

from trioformer import ForbiddenError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.models.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from trioformer.testing import APIServer

RBAC = "rbac.authorization.k8s.io"
READER = Role(
    metadata=ObjectMeta(name="reader", namespace="default"),
    rules=(PolicyRule(api_groups=("",), resources=("pods",), verbs=("get", "list")),),
)
BINDING = RoleBinding(
    metadata=ObjectMeta(name="reader", namespace="default"),
    subjects=(Subject(kind="ServiceAccount", name="web", namespace="default"),),
    role_ref=RoleRef(api_group=RBAC, kind="Role", name="reader"),
)


async def test_a_service_account_may_only_read_pods(nursery: trio.Nursery) -> None:
    server = APIServer(roles=[READER, BINDING])
    await nursery.start(server.run)
    async with server.open_client() as client:
        web = client.impersonating("system:serviceaccount:default:web")
        assert list(await web.api(Pod, namespace="default").list()) == []
        config = ConfigMap(metadata=ObjectMeta(name="a", namespace="default"))
        with pytest.raises(ForbiddenError, match="cannot create resource"):
            await web.api(ConfigMap).create(config)
        await client.api(ConfigMap).create(config)
