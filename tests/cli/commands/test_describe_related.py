"""What is requested beside a described object, from servers that list in pages, refuse or say what is no list."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.cli import run
from trioformer import open_client
from trioformer.cli.commands._describe_related import request_related
from trioformer.models import from_dict
from trioformer.models.coordination_v1 import Lease
from trioformer.models.core_v1 import Node
from trioformer.testing import APIServer

SERVICE: dict[str, Any] = {"kind": "Service", "metadata": {"name": "s", "namespace": "n"}}


async def related_of(api_server: APIServer, obj: dict[str, Any], resource: str, *answers: httpx.Response) -> Any:
    """Return what is found beside an object, and the tokens that the server was asked to continue with."""
    remaining, tokens = list(answers), list[str]()

    async def answer(request: httpx.Request) -> httpx.Response:
        tokens.append(request.url.params.get("continue", ""))
        return remaining.pop(0)

    async with open_client(api_server.config, http_transport=httpx.MockTransport(answer)) as client:
        return await request_related(client, resource, obj), tokens


async def test_each_page_of_a_list_is_requested(api_server: APIServer) -> None:
    first = httpx.Response(200, json={"metadata": {"continue": "t"}, "items": [{"a": 1}]})
    last = httpx.Response(200, json={"items": [{"b": 2}]})
    found, tokens = await related_of(api_server, SERVICE, "services", first, last)
    assert found == {"endpointslices": [{"a": 1}, {"b": 2}]}
    assert tokens == ["", "t"]


async def test_what_is_refused_or_no_list_is_missing(api_server: APIServer) -> None:
    refused = httpx.Response(403, json={"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403})
    for answer in (refused, httpx.Response(200, json=[])):
        found, _ = await related_of(api_server, SERVICE, "services", answer)
        assert not found["endpointslices"]


async def test_a_node_is_described_with_its_lease(api_server: APIServer) -> None:
    api_server.create(from_dict(Node, {"metadata": {"name": "n"}}))
    lease = {"metadata": {"name": "n", "namespace": "kube-node-lease"}, "spec": {"holderIdentity": "me"}}
    api_server.create(from_dict(Lease, lease))
    assert "\nLease:\n  HolderIdentity:  me\n" in (await run(api_server, "describe", "node", "n")).out


async def test_an_object_without_words_of_its_own_is_found_by_a_field(api_server: APIServer) -> None:
    for name in ("a", "b"):
        api_server.create(from_dict(Lease, {"metadata": {"name": name, "namespace": "default"}}))
    result = await run(api_server, "describe", "leases", "--field-selector=metadata.name=b")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Name:         b\nNamespace:    default\n")
    assert "API Version:  coordination.k8s.io/v1\nKind:         Lease\n" in result.out
