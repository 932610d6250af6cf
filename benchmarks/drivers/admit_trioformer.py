"""The webhooks of ``webhooks.py`` with trioformer."""

from __future__ import annotations

import argparse
from pathlib import Path

import trio

from trioformer import crds, manager, open_client
from trioformer.models import KubernetesObject, Model
from trioformer.webhooks import AdmissionRequest, Denied, Webhooks, WebhookServer


@crds.resource_part()
class WebsiteSpec(Model):
    host: str = ""
    page: str = ""
    replicas: int = 1
    tier: str = ""


@crds.custom_resource("example.com/v1")
class Website(KubernetesObject):
    spec: WebsiteSpec = WebsiteSpec()


async def check(request: AdmissionRequest[Website]) -> None:
    spec = request.object.spec
    if spec.replicas > 100 or not spec.host:
        raise Denied("a website needs a host and at most 100 replicas")


async def complete(request: AdmissionRequest[Website]) -> Website | None:
    website = request.object
    return None if website.spec.tier else website.evolve(spec=website.spec.evolve(tier="standard"))


async def main(options: argparse.Namespace) -> None:
    webhooks = Webhooks(validate={Website: check}, mutate={Website: complete})
    server = WebhookServer(webhooks, f"127.0.0.1:{options.port}", certificate=options.certificate, key=options.key)
    async with open_client(kubeconfig=options.kubeconfig) as client:
        await manager.run_controllers(client, {}, webhooks=server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve the webhooks with trioformer.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    trio.run(main, parser.parse_args())
