"""The verbs of every kind, on an embedded and on a real server."""

from __future__ import annotations

import pytest

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
