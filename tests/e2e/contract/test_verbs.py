"""The verbs of every kind, on an embedded and on a real server."""

from __future__ import annotations

import pytest

from tests.e2e.contract.custom_kinds import serve_kind
from trioformer.client import Client
from trioformer.errors import AlreadyExistsError, ConflictError, NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap


async def test_an_object_is_created_read_replaced_patched_and_deleted(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    made = await api.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"k": "1"}))
    assert made.resource_version
    with pytest.raises(AlreadyExistsError):
        await api.create(ConfigMap(metadata=ObjectMeta(name="a")))
    assert (await api.get("a")).data == {"k": "1"}
    patched = await api.patch("a", {"data": {"k": None, "l": "2"}})
    assert patched.data == {"l": "2"}
    with pytest.raises(ConflictError):
        await api.replace(made)
    await api.delete("a")
    with pytest.raises(NotFoundError):
        await api.get("a")


async def test_an_object_of_a_custom_kind_is_created_and_read(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client) as widget:
        api = server_client.api(widget, namespace)
        await api.create(widget.of({"metadata": {"name": "w"}, "spec": {"size": 3}}))
        assert (await api.get("w"))["spec"] == {"size": 3}
