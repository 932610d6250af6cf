"""The roles of the embedded server alone; e2e/contract/test_access.py has what kube-apiserver says, too."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from trioformer.client import Client
from trioformer.errors import ForbiddenError
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod, Secret
from trioformer.models.meta_v1 import LabelSelector
from trioformer.models.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleRef,
    Subject,
)
from trioformer.testing import APIServer


def cluster_role(name: str, *rules: PolicyRule, label: str = "") -> ClusterRole:
    labels = {label: "true"} if label else {}
    return ClusterRole(metadata=ObjectMeta(name=name, labels=labels), rules=rules)


def reading(plural: str) -> PolicyRule:
    return PolicyRule(verbs=("get", "list", "watch"), api_groups=("",), resources=(plural,))


def bound(user: str, role: str) -> ClusterRoleBinding:
    return ClusterRoleBinding(
        metadata=ObjectMeta(name=f"{user}-{role}"),
        subjects=(Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io"),),
        role_ref=RoleRef(kind="ClusterRole", name=role, api_group="rbac.authorization.k8s.io"),
    )


async def is_allowed(client: Client, kind: type[KubernetesObject]) -> bool:
    try:
        await client.api(kind, namespace="default").list()
    except ForbiddenError:
        return False
    return True


async def test_the_given_roles_limit_a_client_that_impersonates(nursery: trio.Nursery) -> None:
    document: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "secrets"},
        "rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["secrets"]}],
    }
    server = APIServer(roles=[cluster_role("pods", reading("pods")), bound("jane", "pods"), document])
    await nursery.start(server.run)
    async with server.open_client() as administrator:
        jane = administrator.impersonating("jane")
        assert [await is_allowed(jane, kind) for kind in (Pod, Secret)] == [True, False]
        assert [await is_allowed(administrator, kind) for kind in (Pod, Secret)] == [True, True]
        server.create(bound("jane", "secrets"))
        assert await is_allowed(jane, Secret)
        with pytest.raises(ForbiddenError):
            async with jane.api(ConfigMap).watch():
                pass
    assert server.get(ClusterRole, "secrets").rules


async def test_an_aggregated_role_has_the_rules_of_the_roles_that_it_selects(nursery: trio.Nursery) -> None:
    def collecting(name: str, label: str, *, own: str = "") -> ClusterRole:
        rule = AggregationRule(cluster_role_selectors=(LabelSelector(match_labels={label: "true"}),))
        labels = {own: "true"} if own else {}
        return ClusterRole(metadata=ObjectMeta(name=name, labels=labels), aggregation_rule=rule)

    server = APIServer(
        roles=[
            collecting("outer", "outer", own="inner"),  # each contains the other, which must not go on forever
            collecting("inner", "inner", own="outer"),
            cluster_role("pods", reading("pods"), label="inner"),
            bound("jane", "outer"),
            bound("jane", "view"),
        ]
    )
    await nursery.start(server.run)
    async with server.open_client() as administrator:
        jane = administrator.impersonating("jane")
        assert [await is_allowed(jane, kind) for kind in (Pod, ConfigMap, Secret)] == [True, True, False]
        server.delete(ClusterRole, "pods")
        server.delete(ClusterRoleBinding, "jane-view")
        assert not await is_allowed(jane, Pod)
        server.create(cluster_role("secrets", reading("secrets"), label="outer"))
        assert await is_allowed(jane, Secret)


async def test_a_rule_without_resources_allows_nothing(nursery: trio.Nursery) -> None:
    empty = PolicyRule(verbs=("*",), api_groups=("*",))
    server = APIServer(roles=[cluster_role("empty", empty), bound("jane", "empty")])
    await nursery.start(server.run)
    async with server.open_client() as administrator:
        jane = administrator.impersonating("jane")
        with pytest.raises(ForbiddenError):
            await jane.request("GET", "/api/v1/namespaces/default/pods/a/status")


async def test_without_roles_everything_is_allowed(api_server: APIServer, client: Client) -> None:
    assert await is_allowed(client.impersonating("jane"), Secret)


async def test_a_restored_server_has_the_roles_of_the_snapshot(nursery: trio.Nursery) -> None:
    server = APIServer(roles=[cluster_role("pods", reading("pods")), bound("jane", "pods")])
    await nursery.start(server.run)
    before = server.snapshot()
    async with server.open_client() as administrator:
        jane = administrator.impersonating("jane")
        assert await is_allowed(jane, Pod)
        server.delete(ClusterRoleBinding, "jane-pods")
        assert not await is_allowed(jane, Pod)
        server.restore(before)
        assert await is_allowed(jane, Pod)
