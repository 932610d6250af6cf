"""Mistakes in the use of a client and a factory: names of other clients, and arguments of other types."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from trioformer.cache import SharedInformerFactory
from trioformer.client import Client, open_client
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import DeploymentSpec
from trioformer.models.core_v1 import Node, Pod, Secret
from trioformer.models.meta_v1 import LabelSelector
from trioformer.pods import run_in_pod
from trioformer.testing import APIServer
from trioformer.watchtools import resuming_watch

HAS_API = "client.api(Pod, namespace=...)"


async def test_a_method_of_another_client_is_named_as_it_is_here() -> None:
    for read, text in [
        (lambda client: client.list, f"'Client' object has no attribute 'list'; each kind has its own API: {HAS_API}"),
        (
            lambda client: client.list_namespaced_pod,
            f"'Client' object has no attribute 'list_namespaced_pod'; write {HAS_API}, with the class of the kind",
        ),
        (
            lambda client: SharedInformerFactory(client).start,
            "'SharedInformerFactory' object has no attribute 'start'; write await nursery.start(factory.run)",
        ),
    ]:
        async with APIServer().open_client() as client:
            with pytest.raises(AttributeError) as caught:
                read(client)
            assert str(caught.value).startswith(text)


async def test_a_path_in_the_place_of_a_configuration_says_where_it_belongs() -> None:
    for config in ["/home/me/.kube/config", {"server": "https://api.test"}]:
        with pytest.raises(TypeError) as caught:
            async with open_client(config):
                pytest.fail("the client is open")
        kind = type(config).__name__
        assert str(caught.value) == f"config must be a ClusterConfig, not a {kind}; pass a file as kubeconfig="


LABELS = "a label selector must look like 'app=web' or {'app': 'web'}"
SECRET: Any = {"metadata": {"name": "a"}, "stringData": {"password": "s3cret"}}


async def test_an_argument_of_another_type_says_what_to_pass() -> None:
    for call, text in [
        (
            lambda client: client.api(Pod, "shop").get(Node(metadata=ObjectMeta(name="a"))),
            "the API of Pod does not accept <Node a>; for the Pod with the same name, pass Request.of(obj)",
        ),
        (
            lambda client: client.api(Pod, "shop").delete(7),
            "expected a name, an ObjectRef, a controller's request or an object, not an int",
        ),
        (
            lambda client: client.api(Secret, "shop").create(SECRET),
            "the API of Secret does not accept a dict; convert it with from_dict(Secret, ...)",
        ),
        (
            lambda client: client.delete("web-0"),
            f"expected an object, not a str; for a name, call the methods of {HAS_API}",
        ),
        (
            lambda client: client.api(Pod, "shop").list(label_selector=LabelSelector(match_labels={"app": "web"})),
            f"{LABELS}, not a LabelSelector; its match_labels are a mapping",
        ),
        (
            lambda client: client.api(DeploymentSpec).list(),
            "DeploymentSpec is not a kind: it needs __resource__ = ResourceInfo(…)",
        ),
        (
            lambda client: run_in_pod(client, "web-0", ["ls"]),
            "api must be an Api, such as client.api(Pod, namespace=...), not a Client",
        ),
    ]:
        async with APIServer().open_client() as client:
            with pytest.raises(TypeError) as caught:
                await call(client)
            assert str(caught.value) == text


async def test_a_factory_needs_a_client_and_functions_as_indexers() -> None:
    async with APIServer().open_client() as client:
        block = re.escape("`async with open_client() as client:`")
        wrong: Any
        for wrong, what in ((client.api(Pod), "an Api"), (APIServer().open_client(), "an UnopenedContext")):
            with pytest.raises(TypeError, match=f"^a factory requires a Client from {block}, not {what}$"):
                SharedInformerFactory(wrong)
        informer: Any = SharedInformerFactory(client).informer(Pod)
        for indexers in (print, {"by-node": "spec.nodeName"}):
            with pytest.raises(TypeError, match=r"^indexers must be a mapping of names to functions, such as"):
                informer.add_indexers(indexers)


def test_the_constructor_of_a_client_names_the_function_that_opens_one() -> None:
    with pytest.raises(TypeError, match=r"open_client\(\)"):
        Client()


async def test_a_client_that_is_not_open_says_how_to_open_it() -> None:
    opening: Any = open_client(ClusterConfig(server="https://api.test"))
    hint = "write `async with open_client() as client:`"
    with pytest.raises(AttributeError) as no_client:
        opening.api(Pod)
    assert str(no_client.value) == f"the client is not open yet, so it has no 'api'; {hint}"
    with pytest.raises(TypeError, match=re.escape(hint)), opening:
        pytest.fail("the client is open")
    with pytest.raises(TypeError, match=re.escape(hint)):
        await opening
    with pytest.raises(KeyError, match="of the block"):
        async with opening:
            raise KeyError("of the block")


async def test_a_watch_a_stream_or_an_informer_without_its_block_says_what_to_write() -> None:
    async with APIServer().open_client() as client:
        pods, factory = client.api(Pod), SharedInformerFactory(client)
        unopened: list[tuple[Any, str]] = [
            (pods.watch(), "async with api.watch() as events:"),
            (client.stream("GET", "/version"), "async with client.stream(method, path) as stream:"),
            (factory.open_informer(Pod), "async with factory.open_informer(kind) as informer:"),
            (resuming_watch(pods, resource_version="1"), "async with resuming_watch("),
        ]
        for context, block in unopened:
            with pytest.raises(TypeError, match=re.escape(block)):
                aiter(context)
            with pytest.raises(TypeError, match=re.escape(block)):
                await anext(context)
            with pytest.raises(TypeError, match=re.escape(block)), context:
                pytest.fail("it is open")


def test_a_client_in_asyncio_says_that_it_needs_trio() -> None:
    async def main() -> None:
        async with open_client(ClusterConfig(server="https://api.test")):
            pytest.fail("the client is open")

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(main())
    assert "trioformer.run(main)" in str(caught.value)
    assert "trioformer.aio" in str(caught.value)
