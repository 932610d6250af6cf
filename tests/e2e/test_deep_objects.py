"""How many levels a real kube-apiserver accepts, and that an informer goes on whatever it has stored."""

from __future__ import annotations

import json
import ssl
from contextlib import suppress
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from tests.e2e.recovery.figures import report
from trioformer import StatusError, load_config, open_client
from trioformer.cache import ApiListWatch, ResourceEventHandler, SharedInformer
from trioformer.errors import AlreadyExistsError, DecodeError, QuarantinedError, UnexpectedResponseError
from trioformer.models import ObjectMeta, Unstructured, from_dict, unstructured_kind
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import Namespace
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

Nest = unstructured_kind("deep.example.com/v1", "Nest", plural="nests", namespaced=True)
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
NAMES = {"kind": "Nest", "listKind": "NestList", "plural": "nests", "singular": "nest"}
KIND = {"group": "deep.example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION]}
DEFINITION = from_dict(CustomResourceDefinition, {"metadata": {"name": "nests.deep.example.com"}, "spec": KIND})
PATH = "/apis/deep.example.com/v1/namespaces/deep/nests"
LEVELS = (100, 128, 129, 1_000, 5_000, 9_000, 9_990, 10_000, 10_001, 20_000, 100_000)
"""Of maps in the spec; with the object and its spec, two more."""


class Reader(ResourceEventHandler[Unstructured]):
    """Reads the spec of each object, and remembers those that it could."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def on_add(self, obj: Unstructured, *, is_initial: bool) -> None:
        self._read(obj)

    async def on_update(self, old: Unstructured, new: Unstructured) -> None:
        self._read(new)

    def _read(self, obj: Unstructured) -> None:
        assert json.dumps(obj["spec"])
        assert obj == obj.merge({})
        self.seen.append(obj.name)


def body_of(name: str, spec: str) -> str:
    return f'{{"apiVersion":"deep.example.com/v1","kind":"Nest","metadata":{{"name":"{name}"}},"spec":{spec}}}'


@pytest.mark.parametrize("brackets", [('{"a":', "}"), ("[", "]")], ids=["maps", "lists"])
async def test_an_informer_goes_on_with_whatever_levels_the_server_stores(
    control_plane: ControlPlane, brackets: tuple[str, str]
) -> None:
    opening, closing = brackets
    form = "maps" if opening != "[" else "lists"
    tls = ssl.create_default_context(cafile=control_plane.directory / "ca.crt")
    tls.load_cert_chain(control_plane.directory / "client.crt", control_plane.directory / "client.key")
    async with (
        open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client,
        httpx.AsyncClient(base_url=control_plane.url, verify=tls, trust_env=False, timeout=60) as http,
        trio.open_nursery() as nursery,
    ):
        await prepare(client)
        nests = client.api(Nest, "deep")
        reader = Reader()

        async def post(name: str, spec: str) -> httpx.Response:
            return await http.post(PATH, content=body_of(name, spec), headers={"Content-Type": "application/json"})

        informer = SharedInformer(ApiListWatch(nests))
        informer.add_event_handler(reader)
        with trio.fail_after(30):
            await nursery.start(informer.run)
        stored: list[int] = []
        answers: list[tuple[Any, ...]] = []
        for levels in LEVELS:
            name = f"{form}-{levels}"
            response = await post(name, opening * levels + "1" + closing * levels)
            words = "" if response.is_success else response.json().get("message", "")[:90]
            answers.append((levels, response.status_code, words))
            assert (await post(f"{name}-after", '{"size":1}')).status_code == 201
            if response.is_success:
                stored.append(levels)
        report(f"what kube-apiserver answers to {form} in the spec", ("levels", "code", "message"), answers)
        assert stored == [levels for levels in LEVELS if levels < 10_000]
        assert all(code == 400 for levels, code, _ in answers if levels not in stored)

        last = await nests.create(Nest.of({"metadata": {"name": f"{form}-last"}, "spec": {"size": 1}}))
        with trio.fail_after(30):
            await informer.wait_until_at_least(last)
        await trio.testing.wait_all_tasks_blocked(0.5)
        assert informer.is_healthy
        good = [f"{form}-{levels}" for levels in stored if levels <= 128]
        after = [f"{form}-{levels}-after" for levels in LEVELS]
        mine = [name for name in reader.seen if name.startswith(form)]
        assert sorted(mine) == sorted([*good, *after, f"{form}-last"])
        for levels in stored:
            if levels > 128:
                # Some do not decode when they arrive, the others when their spec is read.
                with pytest.raises((QuarantinedError, DecodeError)):
                    json.dumps(informer.lister[f"deep/{form}-{levels}"]["spec"])
        nursery.cancel_scope.cancel()


async def prepare(client: Any) -> None:
    """Create the kind and the namespace, unless an earlier test has."""
    definitions = client.api(CustomResourceDefinition)
    with suppress(AlreadyExistsError):
        await definitions.create(DEFINITION)
        await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name="deep")))
    await wait_for(definitions, DEFINITION.name, has_condition("Established"))
    while True:  # a new kind is not served at once when it is established, and nothing says when
        try:
            await client.api(Nest, "deep").list_page()
        except StatusError:
            await trio.sleep(0.1)
        except UnexpectedResponseError:
            return
        else:
            return
