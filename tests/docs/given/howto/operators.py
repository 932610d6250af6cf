"""What a reconcile of the example has: a Website, the informer of ConfigMaps and a recorder."""

from __future__ import annotations

import trio

from examples.website_operator import Website, WebsiteSpec
from trioformer import Client, ObjectMeta, SharedInformerFactory
from trioformer.events import EventRecorder
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    api_server.register(Website)
    metadata = ObjectMeta(name="shop", namespace="default")
    website = api_server.create(Website(metadata=metadata, spec=WebsiteSpec(page="<p>hello", secret="web-tls")))
    factory = SharedInformerFactory(client)
    config_maps = factory.informer(ConfigMap)
    await nursery.start(factory.run)
    recorder = EventRecorder(client, controller="example.com/websites")
    return {"website": website, "config_maps": config_maps, "recorder": recorder}
