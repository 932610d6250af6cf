"""Names that the server refuses."""

from __future__ import annotations

import pytest

from trioformer.client import Client
from trioformer.errors import InvalidError
from trioformer.models import ObjectMeta
from trioformer.models.networking_v1 import IPAddress, IPAddressSpec, ParentReference


@pytest.mark.parametrize(
    ("name", "keyword"), [("10.0.0.2", ""), ("2001:db8::1", ""), ("2001:DB8::1", "canonical"), ("x", "IP address")]
)
async def test_an_ip_address_is_named_by_itself(client: Client, name: str, keyword: str) -> None:
    parent = ParentReference(resource="services", name="web", namespace="default")
    address = IPAddress(metadata=ObjectMeta(name=name), spec=IPAddressSpec(parent_ref=parent))
    if keyword:
        with pytest.raises(InvalidError, match=keyword):
            await client.create(address)
    else:
        assert (await client.create(address)).name == name
