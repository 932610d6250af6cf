"""Updates of objects that do not exist: kube-apiserver creates those of some kinds."""

from __future__ import annotations

import pytest

from trioformer.client import Client
from trioformer.errors import ConflictError, NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import ConfigMap


async def test_an_update_creates_a_lease_whatever_its_version(client: Client) -> None:
    leases = client.api(Lease, "default")
    made = await leases.replace(Lease(metadata=ObjectMeta(name="a", resource_version="1")))
    assert made.metadata.uid
    assert (await leases.get("a")).metadata.resource_version == made.metadata.resource_version
    with pytest.raises(ConflictError, match="uid mismatch"):
        await leases.replace(Lease(metadata=ObjectMeta(name="b", uid="other")))


async def test_an_update_does_not_create_a_config_map(client: Client) -> None:
    with pytest.raises(NotFoundError):
        await client.api(ConfigMap, "default").replace(ConfigMap(metadata=ObjectMeta(name="a")))
