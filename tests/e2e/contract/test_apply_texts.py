"""The body of an apply is YAML for a server: texts must come through as in JSON."""

from __future__ import annotations

import pytest

from trioformer.client import Client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap


@pytest.mark.parametrize(
    "text",
    [
        "\x7f",
        "\x80\x85\x9f",
        "a\u2028b\u2029c",
        "\ufeff",
        "\ufffe\uffff",
        "\U0001f600",
        "\x00\x01\t\n\r\x1b",
        " : # {a} [b] 'c' \"d\" \\ & * ! | > % @ `",
        "yes",
        "1e3",
        "ä" * 70_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
async def test_a_text_is_applied_as_it_is(server_client: Client, namespace: str, text: str) -> None:
    config_maps = server_client.api(ConfigMap, namespace=namespace)
    wanted = ConfigMap(metadata=ObjectMeta(name="a", annotations={"text": text}), data={"text": text})
    applied = await config_maps.apply(wanted, field_manager="tester")
    assert (applied.data["text"], applied.metadata.annotations["text"]) == (text, text)
