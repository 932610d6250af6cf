"""Test webhooks together with the API server that calls them, on virtual time.

Run the tests with ``pytest examples``.
"""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer import Client, ObjectMeta
from trioformer.errors import ForbiddenError, InternalServerError
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks


async def check(request: AdmissionRequest[ConfigMap]) -> None:
    """The code under test, which refuses settings without an owner."""
    if "owner" not in request.object.data:
        raise Denied("the settings need an owner", causes={"data.owner": "is missing"})


async def complete(request: AdmissionRequest[ConfigMap]) -> ConfigMap:
    """The code under test, which asks a slow service about each owner."""
    await trio.sleep(20 if request.name == "slow" else 2)
    return request.object.evolve(data={**request.object.data, "team": "blue"})


WEBHOOKS = Webhooks(
    validate={ConfigMap: check},
    mutate={ConfigMap: Webhook(complete, failure_policy="Fail")},
)


def settings(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


async def test_settings_are_completed_and_checked(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    await api_server.install_webhooks(WEBHOOKS)
    api = k8s_client.api(ConfigMap)

    stored = await api.create(settings("good", owner="ann"))
    assert stored.data == {"owner": "ann", "team": "blue"}

    with pytest.raises(ForbiddenError, match="the settings need an owner"):
        await api.create(settings("bad"))
    assert [found.name for found in await api.list()] == ["good"]


async def test_settings_are_refused_if_the_service_is_too_slow(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    await api_server.install_webhooks(WEBHOOKS)
    with pytest.raises(InternalServerError, match="failed calling webhook"):
        await k8s_client.api(ConfigMap).create(settings("slow", owner="ann"))
