"""The rows of the server's tables: pages, what is no table, and what ends a watch."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import trio

from tests.support.cli import opener_of
from trioformer import Client
from trioformer.cli._resources import Target
from trioformer.cli.commands._pods import PODS
from trioformer.cli.commands._watching import RowListWatch, follow
from trioformer.errors import ConnectionFailedError, StatusError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict, resource_of
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


def table(name: str, **metadata: str) -> dict[str, Any]:
    row = {"cells": [name], "object": {"metadata": {"name": name}}}
    return {"kind": "Table", "metadata": metadata, "columnDefinitions": [{"name": "Name"}], "rows": [row]}


def ignore(*_: object) -> None:
    """Report nothing."""


async def test_pages_of_rows_are_one_list() -> None:
    queries: list[dict[str, str]] = []

    def respond(request: httpx.Request) -> httpx.Response:
        queries.append(dict(request.url.params))
        is_last = "continue" in request.url.params
        return httpx.Response(200, json=table("b", resourceVersion="7") if is_last else table("a", **{"continue": "t"}))

    async with opener_of(httpx.MockTransport(respond))(ClusterConfig(server="http://server.example")) as client:
        rows = RowListWatch(client, Target(PODS, "default"))
        found = await rows.list(resource_version="5", page_size=None, on_undecodable=ignore)
        await rows.check(resource_version="7")
    assert [each.metadata.name for each in found.items] == ["a", "b"]
    assert (found.resource_version, found.pages) == ("7", 2)
    assert queries == [{"resourceVersion": "5"}, {"continue": "t"}, {"limit": "1", "resourceVersion": "7"}]
    assert rows.table_of(found.items[0])["rows"][0]["cells"] == ["a"]


async def test_what_is_no_table_is_an_error() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"kind": "PodList", "items": []}))
    async with opener_of(transport)(ClusterConfig(server="http://server.example")) as client:
        rows = RowListWatch(client, Target(PODS, "default"))
        with pytest.raises(UnexpectedResponseError, match="not a table"):
            await rows.list(resource_version="", page_size=500, on_undecodable=ignore)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}), StatusError),
        ('{"type": "ADDED", "obj', ConnectionFailedError),
        ("[]", ConnectionFailedError),
        ("", trio.EndOfChannel),
    ],
)
async def test_a_watch_ends_with_what_ends_its_events(line: str, error: type[Exception]) -> None:
    text = json.dumps({"type": "ADDED", "object": table("a")}) + "\n" + (f"{line}\n" if line else "")
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    async with opener_of(transport)(ClusterConfig(server="http://server.example")) as client:
        rows = RowListWatch(client, Target(PODS, "default"))
        watch = rows.watch(resource_version="1", timeout_seconds=9, send_initial_events=False, on_undecodable=ignore)
        async with watch as events:
            (event,) = await events.receive_batch()
            assert (event.type, event.object.metadata.name) == ("ADDED", "a")
            with pytest.raises(error):
                await events.receive_batch()


async def test_an_object_of_the_list_says_what_kind_it_is(api_server: APIServer, k8s_client: Client) -> None:
    """The items of a list have neither ``apiVersion`` nor ``kind``."""
    api_server.create(from_dict(ConfigMap, {"metadata": {"name": "a"}}))
    found: list[dict[str, Any]] = []
    with trio.CancelScope() as scope:

        def report(_: str, obj: dict[str, Any]) -> None:
            found.append(obj)
            scope.cancel()

        await follow(k8s_client, Target(resource_of(ConfigMap), "default"), report)
    (first,) = found
    assert (first["apiVersion"], first["kind"], first["metadata"]["name"]) == ("v1", "ConfigMap", "a")
