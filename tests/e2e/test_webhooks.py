"""Webhooks that a kube-apiserver calls: admission, failures under both policies, and conversion without loss."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from examples.website_webhooks import TEAM, Website, WebsiteSpec, WebsiteSpecV1Alpha1, WebsiteV1Alpha1, webhooks
from tests.e2e.workloads import make_namespace
from trioformer import Client, InvalidError, StatusError, open_client
from trioformer.crds import crd_of, install_crds
from trioformer.errors import InternalServerError
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.models.meta_v1 import LabelSelector
from trioformer.testing import ControlPlane
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks, WebhookServer

AUTHORITY = trustme.CA()
CA = AUTHORITY.cert_pem.bytes()


@asynccontextmanager
async def serving(app: Webhooks, directory: Path, client: Client, name: str) -> AsyncIterator[dict[str, Any]]:
    """Serve webhooks, and tell the API server to call them; yields the place for ``conversion()``."""
    issued = AUTHORITY.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(directory / "tls.crt")
    issued.private_key_pem.write_to_path(directory / "tls.key")
    server = WebhookServer(app, "127.0.0.1:0", certificate=directory / "tls.crt", key=directory / "tls.key")
    async with trio.open_nursery() as nursery:
        url = await nursery.start(server.run)
        place = {"service": name, "namespace": "operators", "url": url, "ca": CA}
        configurations = app.configurations(**place)
        for each in configurations:
            await client.apply(each, field_manager="test")
        yield place
        for each in configurations:
            await client.api(type(each)).delete(each)
        nursery.cancel_scope.cancel()


async def until_called(create: Any) -> None:
    """Repeat a request until the API server knows the configurations, and refuses it."""
    with trio.fail_after(30):
        while True:
            try:
                await create(dry_run=True)
            except StatusError as error:
                if "denied the request" in str(error):
                    return
            await trio.sleep(0.1)


async def test_a_kind_is_checked_completed_and_converted(
    control_plane: ControlPlane, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        namespace = await make_namespace(client, "webhooks")
        async with serving(webhooks, tmp_path, client, "websites") as place:
            definition = crd_of(WebsiteV1Alpha1, Website, conversion=webhooks.conversion(Website, **place))
            await install_crds(client, definition, may_drop_fields=True)
            sites, old_sites = (client.api(kind, namespace=namespace) for kind in (Website, WebsiteV1Alpha1))
            too_large = Website(metadata=ObjectMeta(name="large"), spec=WebsiteSpec(page="x" * 100_001))
            await until_called(partial(sites.create, too_large))
            with pytest.raises(
                InvalidError, match=r'"validate\.websites\.example\.com" denied the request: spec\.page'
            ):
                await sites.create(too_large)

            made = await sites.create(Website(metadata=ObjectMeta(name="hello"), spec=WebsiteSpec(replicas=0)))
            assert made.metadata.labels[TEAM] == "none"
            assert "nobody can see the page" in caplog.text

            # matchPolicy Equivalent: the object of the old version is converted, checked and completed
            for number in range(100):
                spec = WebsiteSpecV1Alpha1(html=f"page {number} <&>", pods=number % 7, secret="s")
                await old_sites.create(WebsiteV1Alpha1(metadata=ObjectMeta(name=f"old-{number}"), spec=spec))
            new = {each.name: each for each in await sites.list()}
            old = {each.name: each for each in await old_sites.list()}
            assert len(new) == len(old) == 101
            for number in range(100):
                name = f"old-{number}"
                assert (new[name].spec.page, new[name].spec.replicas) == (f"page {number} <&>", number % 7)
                assert (old[name].spec.html, old[name].spec.pods) == (f"page {number} <&>", number % 7)
                assert new[name].metadata.labels == old[name].metadata.labels == {TEAM: "none"}
            with pytest.raises(InvalidError, match=r"spec\.secret cannot be removed"):
                await old_sites.patch("old-1", {"spec": {"secret": None}})
            for name in new:
                await sites.delete(name)


async def test_failures_follow_the_failure_policy(control_plane: ControlPlane, tmp_path: Path) -> None:
    async def judge(request: AdmissionRequest[ConfigMap]) -> None:
        match request.object.data.get("verdict"):
            case "late":
                await trio.sleep(5)
            case "bug":
                raise KeyError(request.object.data["secret"])
            case "denied":
                raise Denied("not you", {"data.verdict": "is denied"}, code=409)

    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        for policy in ("Fail", "Ignore"):
            namespace = await make_namespace(client, "webhooks")
            selector = LabelSelector(match_labels={"kubernetes.io/metadata.name": namespace})
            webhook = Webhook(
                judge,
                failure_policy="Fail" if policy == "Fail" else "Ignore",
                namespace_selector=selector,
                timeout_seconds=1,
            )
            app, maps = Webhooks(validate={ConfigMap: webhook}), client.api(ConfigMap, namespace=namespace)
            async with serving(app, tmp_path, client, f"policy-{policy.lower()}"):

                def config_map(verdict: str) -> ConfigMap:
                    data = {"verdict": verdict, "secret": "hunter2"}
                    return ConfigMap(metadata=ObjectMeta(generate_name="map-"), data=data)

                await until_called(partial(maps.create, config_map("denied")))
                with pytest.raises(StatusError, match="not you") as denied:
                    await maps.create(config_map("denied"))
                assert (denied.value.code, denied.value.reason) == (409, "Conflict")
                assert [each.field for each in denied.value.details.causes] == ["data.verdict"]
                await maps.create(config_map("fine"))
                for verdict in ("late", "bug"):
                    if policy == "Ignore":
                        await maps.create(config_map(verdict))
                        continue
                    with pytest.raises(InternalServerError, match="failed calling webhook") as failed:
                        await maps.create(config_map(verdict))
                    assert "hunter2" not in str(failed.value)


async def test_a_mutated_pod_keeps_what_was_not_changed(control_plane: ControlPlane, tmp_path: Path) -> None:
    async def pin(request: AdmissionRequest[Pod]) -> Pod:
        annotations = {**request.object.metadata.annotations, "example.com/a": "~/"}
        return request.object.evolve(metadata=request.object.metadata.evolve(annotations=annotations))

    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        namespace = await make_namespace(client, "webhooks")
        selector = LabelSelector(match_labels={"kubernetes.io/metadata.name": namespace})
        app = Webhooks(mutate={Pod: Webhook(pin, namespace_selector=selector)})
        spec = {"containers": [{"name": "web", "image": "nginx", "env": [{"name": "A", "value": "<&>é"}]}]}
        pod = from_dict(Pod, {"metadata": {"name": "web"}, "spec": spec})
        pods = client.api(Pod, namespace=namespace)

        async def create(*, dry_run: bool) -> None:
            made = await pods.create(pod, dry_run=dry_run)
            if made.metadata.annotations:
                raise StatusError("not denied the request, but changed", code=400, reason="")

        async with serving(app, tmp_path, client, "pods"):
            await until_called(create)
            made = to_dict(await pods.create(pod))
        assert made["metadata"]["annotations"] == {"example.com/a": "~/"}
        assert made["spec"]["containers"][0]["env"] == [{"name": "A", "value": "<&>é"}]
