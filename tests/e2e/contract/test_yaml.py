"""Bodies in YAML, on an embedded and on a real server."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
import yaml

from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.encodings import YAML
from trioformer.client import Client
from trioformer.models import resource_of

APPLY: Final = "application/apply-patch+yaml"
CONFIG_MAP: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
VALUES: Final = {
    "1": 1,
    "1.5": 1.5,
    "yes": True,
    "NO": False,
    "~": None,
    "2020-01-01": "2020-01-01",
    "012": 10,
    "0x10": 16,
    "1e3": 1000,
    "1_000": 1000,
    "1:30": "1:30",
    "12345678901234567890": 12345678901234567000,
    "!!str 1": "1",
    "[a, {b: c}]": ["a", {"b": "c"}],
    "|\n    two\n    lines\n": "two\nlines\n",
    "&x q\n  again: *x": "q",
}
"""The values that scalars in YAML have."""


async def write(client: Client, method: str, path: str, text: str, **params: str) -> tuple[int, Any]:
    """Send a body in YAML; a PATCH is an apply.  Return the code and the decoded body of the response."""
    given = {"fieldManager": "me", **params} if method == "PATCH" else params
    content_type = APPLY if method == "PATCH" else YAML
    response = await client._transport.request(
        method, path, params=given, content=text.encode(), content_type=content_type
    )
    return response.code, json.loads(response.body)


async def test_objects_are_written_in_yaml(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for method, url, code in (("POST", path, 201), ("PUT", f"{path}/a", 200), ("PATCH", f"{path}/a", 200)):
        found, obj = await write(server_client, method, url, f'{CONFIG_MAP}data:\n  {method.lower()}: "1"\n')
        assert (found, obj["data"][method.lower()]) == (code, "1")
    code, made = await write(server_client, "PATCH", f"{path}/b", f"# new\n{CONFIG_MAP.replace('name: a', 'name: b')}")
    assert (code, made["metadata"]["name"]) == (201, "b")
    assert (await write(server_client, "PUT", f"{path}/a", f"{CONFIG_MAP}---\n{CONFIG_MAP}"))[0] == 200
    assert (await write(server_client, "DELETE", f"{path}/a", "dryRun: [All]\n"))[0] == 200
    response = await server_client._transport.request("GET", f"{path}/a", accept=YAML)
    assert yaml.safe_load(response.body)["metadata"]["name"] == "a"


async def test_scalars_have_the_values_that_kubectl_gives_them(server_client: Client, namespace: str) -> None:
    async with serve_kind(server_client) as kind:
        info = resource_of(kind)
        path = f"/apis/{info.api_version}/namespaces/{namespace}/{info.plural}"
        found = {}
        for method, url in (("POST", path), ("PATCH", f"{path}/a")):
            for text in VALUES:
                body = f"apiVersion: {info.api_version}\nkind: {info.kind}\nmetadata: {{name: a}}\nspec:\n  v: {text}\n"
                code, obj = await write(server_client, method, url, body, dryRun="All")
                assert code == 201, (text, obj)
                found[text] = obj["spec"]["v"]
            assert found == VALUES


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize(
    "body",
    [
        "a: [",
        "- a\n",
        "a",
        f"\t{CONFIG_MAP}",
        f"{CONFIG_MAP}data: {{a: *nope}}\n",
        f"{CONFIG_MAP}data: {{a: .inf}}\n",
        f"{CONFIG_MAP}data: {{a: .nan}}\n",
    ],
)
async def test_other_bodies_are_rejected(server_client: Client, namespace: str, method: str, body: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    code, status = await write(server_client, method, path if method == "POST" else f"{path}/a", body)
    assert (code, status["reason"]) == (400, "BadRequest")


async def test_a_body_without_a_value_is_empty(server_client: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await write(server_client, "POST", path, "# nothing\n"))[0] == 422
    assert (await write(server_client, "PUT", f"{path}/a", "# nothing\n"))[0] == 400
    assert (await write(server_client, "PATCH", f"{path}/a", "# nothing\n"))[0] == 400
