"""Classes that were generated from a definition: the server accepts what they define, and fills in their defaults."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from tests.models.test_from_crd import WEBSITES, module_of, normalized
from trioformer.client import Client
from trioformer.crds import install_crds
from trioformer.errors import InvalidError, NotFoundError
from trioformer.models import ObjectMeta, Quantity, resource_of, to_dict
from trioformer.models._from_crd import generate, read_definitions
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.watchtools import deleted, wait_for


async def test_generated_classes_are_installed_written_and_read(server_client: Client, namespace: str) -> None:
    definitions = read_definitions(WEBSITES.read_text())
    generated = generate(definitions)
    module = module_of(generated)
    classes = [getattr(module, name) for name in generated.kinds]
    api = server_client.api(CustomResourceDefinition)
    try:
        with trio.fail_after(60):
            with suppress(NotFoundError):  # what another test of this server has left
                await api.delete("websites.example.com")
            await wait_for(api, "websites.example.com", deleted())
            await install_crds(server_client, *classes)
        assert await server_client.discover(module.Website) is module.Website
        assert resource_of(await server_client.discover("ws")).plural == "websites"
        websites = server_client.api(module.Website, namespace)
        spec = module.WebsiteSpec(host="a.example", from_="b", field_3d=True, memory=Quantity("1Gi"), data=b"hi")
        made = await websites.create(module.Website(metadata=ObjectMeta(name="a"), spec=spec))
        assert to_dict(made)["spec"] == {
            "host": "a.example",
            "from": "b",
            "3d": True,
            "memory": "1Gi",
            "data": "aGk=",
            # Defaults that the server has filled in.
            "replicas": 1,
            "class": "small",
            "port": 80,
            "hosts": ["a", "b"],
            "tls": {"minVersion": "1.2"},
        }
        assert made.spec == (await websites.get("a")).spec
        old = await server_client.api(module.WebsiteV1beta1, namespace).get("a")
        assert old.spec.host == "a.example"
        with pytest.raises(InvalidError, match=r"spec\.replicas"):
            await websites.patch("a", {"spec": {"replicas": -1}})
        # The definition that the classes were generated from says the same.
        before = to_dict(await api.get("websites.example.com"))
        after = to_dict(await api.patch("websites.example.com", {"spec": definitions[0]["spec"]}))
        assert _schemas(after) == _schemas(before)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await api.delete("websites.example.com")


def _schemas(definition: dict[str, Any]) -> list[Any]:
    found = [version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"]]
    of_object = ("apiVersion", "kind", "metadata")
    for schema in found:
        schema["properties"] = {key: one for key, one in schema["properties"].items() if key not in of_object}
    return [normalized(schema) for schema in found]
