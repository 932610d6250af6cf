"""The options and the body of an apply, as kube-apiserver refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.client import Client
from trioformer.errors import InvalidError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap

PATH = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize(
    ("method", "path", "params", "field"),
    [
        ("POST", PATH, {"fieldManager": "x" * 129}, "fieldManager"),
        ("POST", PATH, {"fieldManager": "a\x07b"}, "fieldManager"),
        ("PATCH", f"{PATH}/a", {"fieldManager": "me", "force": "true"}, "force"),
    ],
)
async def test_an_option_that_is_not_valid_is_named(
    client: Client, method: str, path: str, params: dict[str, str], field: str
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    with pytest.raises(InvalidError) as caught:
        await client.request(method, path, params=params, body=body)
    assert [each.field for each in caught.value.details.causes] == [field]


@pytest.mark.parametrize("body", [b"metadata: {}", b"[]"])
async def test_a_body_that_is_not_an_object_of_json_is_refused(client: Client, body: bytes) -> None:
    async with client.http() as http:
        response = await http.patch(
            f"{PATH}/a", params={"fieldManager": "me"}, content=body, headers={"content-type": APPLY}
        )
    assert response.status_code == 400


async def test_kubectl_takes_over_the_fields_that_it_applied_by_itself(client: Client) -> None:
    """Its server-side apply has no conflict with its earlier client-side apply, which an annotation records."""
    head: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"x":"1"}}'
    made = ConfigMap(
        metadata=ObjectMeta(name="a", namespace="default", annotations={LAST_APPLIED: last}), data={"x": "1"}
    )
    api = client.api(ConfigMap, "default")
    await api.create(made, field_manager="kubectl-client-side-apply")
    wanted = {**head, "metadata": {"name": "a", "annotations": {"b": "c"}}, "data": {"x": "2"}}
    applied = await api.apply(wanted, field_manager="kubectl")
    assert applied.data == {"x": "2"}
    assert '"x":"2"' in applied.metadata.annotations[LAST_APPLIED].replace(" ", "")
