"""What requests log: nothing, unless something happens that an operator should know."""

from __future__ import annotations

import logging

import pytest
import trio

from trioformer.cache import SharedInformerFactory
from trioformer.client import open_client
from trioformer.errors import NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer, serve_http


async def test_requests_and_watches_that_succeed_log_nothing(
    caplog: pytest.LogCaptureFixture, nursery: trio.Nursery
) -> None:
    caplog.set_level(logging.DEBUG)  # of the root: also httpx and httpcore, whose INFO line is for each request
    server = APIServer()
    config = ClusterConfig(server=await nursery.start(serve_http, server))
    async with open_client(config) as client, trio.open_nursery() as informers:
        config_maps = client.api(ConfigMap, namespace="default")
        factory = SharedInformerFactory(client)
        informer = factory.informer(ConfigMap)
        await informers.start(factory.run)
        created = await config_maps.create(ConfigMap(metadata=ObjectMeta(name="settings")))
        await informer.wait_until_at_least(created)
        with pytest.raises(NotFoundError):
            await config_maps.get("unknown")
        informers.cancel_scope.cancel()
    nursery.cancel_scope.cancel()
    assert [(record.name, record.getMessage()) for record in caplog.records] == []
