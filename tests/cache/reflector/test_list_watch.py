"""The requests of a reflector's source over an API."""

from __future__ import annotations

import httpx
import pytest

from tests.support.scripted_http import InMemory, response
from trioformer.cache import ApiListWatch
from trioformer.client import open_client
from trioformer.errors import ForbiddenError, ServerTimeoutError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

CONFIG = ClusterConfig(server="http://server.invalid", source="test")
TOO_LARGE = '{"kind":"Status","code":504,"reason":"Timeout","message":"Too large resource version: 9, current: 5"}'


async def check(reply: httpx.Response) -> dict[str, str]:
    """Check version 9 of the pods of one node, and return the query."""
    transport = InMemory([reply])
    async with open_client(CONFIG, http_transport=transport) as client:
        source = ApiListWatch(client.api(Pod, "shop"), label_selector="app=web", field_selector="spec.nodeName=n")
        await source.check(resource_version="9")
    (request,) = transport.requests
    return dict(request.url.params)


async def test_a_check_has_the_selectors() -> None:
    """Without them the server rejects the credentials of a node, and roles with resourceNames."""
    assert await check(response(200, '{"kind":"PodList","metadata":{},"items":[]}')) == {
        "labelSelector": "app=web",
        "fieldSelector": "spec.nodeName=n",
        "resourceVersion": "9",
        "resourceVersionMatch": "NotOlderThan",
        "limit": "1",
    }


@pytest.mark.parametrize("item", ["{}", '{"metadata":null}', '{"metadata":{"name":7}}', "[", ""])
async def test_an_undecodable_object_does_not_matter_to_a_check(item: str) -> None:
    await check(response(200, '{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[' + item + "]}"))


async def test_a_check_raises_the_status_of_the_server() -> None:
    with pytest.raises(ServerTimeoutError) as caught:
        await check(response(504, TOO_LARGE))
    assert caught.value.is_too_large_resource_version
    with pytest.raises(ForbiddenError):
        await check(response(403, "<html>"))
