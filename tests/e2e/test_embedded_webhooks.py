"""Webhooks of a manager of controller-runtime, which the embedded API server calls over TLS, as kube-apiserver does.

``embedded_go/webhooks.go`` has the webhooks: those of pods complete and check annotations, as controller-runtime's
example with built-in kinds does, and one converts parcels between a hub and a spoke.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import trio

from tests.e2e.embedded_cluster import kubeconfig_of
from tests.e2e.workloads import make_namespace
from trioformer import Api, Client, ClientOptions, open_client
from trioformer.crds import crd_of, custom_resource, install_crds, resource_part
from trioformer.errors import ForbiddenError, InternalServerError, InvalidError
from trioformer.models import KubernetesObject, Model, ObjectMeta, from_dict
from trioformer.models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from trioformer.models.apiextensions_v1 import CustomResourceConversion, CustomResourceDefinition
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ControlPlane
from trioformer.testing.control_plane._certificates import issue_certificates

TEAM: Final = "example.com/team"
PROTECTED: Final = "example.com/protected"
SECONDS: Final = 60
ClientConfig: TypeAlias = dict[str, str]


@resource_part()
class ParcelSpec(Model):
    width: int = 0
    height: int = 0


@custom_resource("go.example.com/v2", stored=True)
class Parcel(KubernetesObject):
    spec: ParcelSpec = ParcelSpec()


@resource_part()
class OldParcelSpec(Model):
    size: str = ""


@custom_resource("go.example.com/v1", kind="Parcel", stored=False)
class OldParcel(KubernetesObject):
    spec: OldParcelSpec = OldParcelSpec()


@asynccontextmanager
async def serving(assets: Path, kubeconfig: Path, directory: Path) -> AsyncIterator[ClientConfig]:
    """Run the program; yields the ``clientConfig`` of webhooks without a path."""
    certificates = issue_certificates(directory)
    files = ("-certificate", str(certificates.server_certificate), "-key", str(certificates.server_key))
    command = [str(assets / "embedded-go"), "-kubeconfig", str(kubeconfig), *files, "webhooks"]
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(partial(trio.run_process, command, stdout=subprocess.PIPE))
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            data = await process.stdout.receive_some()
            assert data, "the program has ended"
            line += data
        authority = base64.b64encode(certificates.authority.read_bytes()).decode()
        yield {"url": json.loads(line)["url"], "caBundle": authority}
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def pod_webhooks(client: Client, namespace: str, called: ClientConfig) -> AsyncIterator[None]:
    """Install both webhooks of the pods in a namespace, and wait until the server calls them."""
    made: list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration] = []
    kinds = {"mutate": MutatingWebhookConfiguration, "validate": ValidatingWebhookConfiguration}
    for verb, kind in kinds.items():
        operations = ["CREATE", "UPDATE", *(["DELETE"] if verb == "validate" else [])]
        webhook = {
            "name": f"{verb}.pods.example.com",
            "clientConfig": called | {"url": f"{called['url']}/{verb}--v1-pod"},
            "rules": [{"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        made.append(from_dict(kind, {"metadata": {"name": namespace}, "webhooks": [webhook]}))
        await client.apply(made[-1], field_manager="test")
        tried = pod("try") if verb == "mutate" else pod("try", team="")
        with trio.fail_after(30):
            while not await is_called(client.api(Pod, namespace=namespace), tried):  # noqa: ASYNC110  # remote
                await trio.sleep(0.05)
    yield
    for each in made:
        await client.api(type(each)).delete(each)


def pod(name: str, image: str = "nginx:1", **annotations: str) -> Pod:
    metadata = ObjectMeta(name=name, annotations={f"example.com/{key}": text for key, text in annotations.items()})
    return from_dict(Pod, {"spec": {"containers": [{"name": "main", "image": image}]}}).evolve(metadata=metadata)


async def is_called(pods: Api[Pod], tried: Pod) -> bool:
    """Whether a webhook completes or refuses a pod."""
    try:
        made = await pods.create(tried, dry_run=True)
    except ForbiddenError:
        return True
    return bool(made.metadata.annotations.get(TEAM))


async def check_pods(client: Client, namespace: str, warnings: list[str]) -> None:
    """Create, update and delete pods, and let each webhook refuse something."""
    pods = client.api(Pod, namespace=namespace)
    made = await pods.create(pod("web", "nginx"))
    assert made.metadata.annotations == {TEAM: "none"}
    assert made == await pods.get("web")
    assert warnings == ["the image of main has no tag"]
    refused = r'webhook "validate\.pods\.example\.com" denied the request: the annotation example\.com/team is empty'
    with pytest.raises(ForbiddenError, match=refused):
        await pods.create(pod("other", team=""))
    assert [each.name for each in await pods.list()] == ["web"]

    changed: dict[str, Any] = {"metadata": {"annotations": {PROTECTED: ""}, "labels": {"a": "b"}}}
    assert (await pods.patch("web", changed)).metadata.annotations == {TEAM: "none", PROTECTED: ""}
    with pytest.raises(InvalidError, match="a pod stays with its team") as invalid:
        await pods.patch("web", {"metadata": {"annotations": {TEAM: "red"}}})
    assert [each.field for each in invalid.value.details.causes] == [f"metadata.annotations[{TEAM}]"]
    # The first webhook completes what an update has removed, before the second one sees it.
    kept = await pods.patch("web", {"metadata": {"annotations": {TEAM: None}}})
    assert kept.metadata.annotations[TEAM] == "none"

    with pytest.raises(ForbiddenError, match=r"denied the request: web is protected"):
        await pods.delete("web", grace_period_seconds=0)
    await pods.patch("web", {"metadata": {"annotations": {PROTECTED: None}}})
    warnings.clear()
    await pods.delete("web", grace_period_seconds=0)
    assert warnings == ["web was not protected"]
    assert not list(await pods.list())


async def check_conversion(client: Client, namespace: str, called: ClientConfig) -> None:
    """Write and read objects in both versions, and a text that cannot be converted."""
    config = called | {"url": f"{called['url']}/convert"}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    conversion = from_dict(CustomResourceConversion, {"strategy": "Webhook", "webhook": webhook})
    (definition,) = await install_crds(client, crd_of(OldParcel, Parcel, conversion=conversion))
    parcels, old_parcels = client.api(Parcel, namespace=namespace), client.api(OldParcel, namespace=namespace)
    made = await old_parcels.create(OldParcel(metadata=ObjectMeta(name="old"), spec=OldParcelSpec(size="3x4")))
    assert made.spec.size == "3x4"
    await parcels.create(Parcel(metadata=ObjectMeta(name="new"), spec=ParcelSpec(width=5, height=6)))
    sizes = {each.name: (each.spec.width, each.spec.height) for each in await parcels.list()}
    assert sizes == {"old": (3, 4), "new": (5, 6)}
    assert {each.name: each.spec.size for each in await old_parcels.list()} == {"old": "3x4", "new": "5x6"}
    changed = await parcels.patch("old", {"spec": {"height": 7}})
    old = await old_parcels.get("old")
    assert (old.spec.size, old.metadata.resource_version) == ("3x7", changed.metadata.resource_version)
    with pytest.raises(InternalServerError, match=r'"much" is not a size'):
        await old_parcels.patch("new", {"spec": {"size": "much"}})
    for name in ("old", "new"):
        await old_parcels.delete(name)
    await client.api(CustomResourceDefinition).delete(definition)


async def check(assets: Path, kubeconfig: Path, directory: Path) -> None:
    warnings: list[str] = []
    options = ClientOptions(warning_handler=lambda warning: warnings.append(warning.text))
    with trio.fail_after(SECONDS):
        async with (
            serving(assets, kubeconfig, directory) as called,
            open_client(kubeconfig=kubeconfig, options=options) as client,
        ):
            namespace = await make_namespace(client, "webhooks-go")
            async with pod_webhooks(client, namespace, called):
                await check_pods(client, namespace, warnings)
            await check_conversion(client, namespace, called)


async def test_the_embedded_server_calls_them(assets: Path, tmp_path: Path) -> None:
    async with kubeconfig_of(APIServer(), tmp_path) as kubeconfig:
        await check(assets, kubeconfig, tmp_path)


async def test_kube_apiserver_calls_them_with_the_same_results(
    assets: Path, control_plane: ControlPlane, tmp_path: Path
) -> None:
    await check(assets, control_plane.kubeconfig, tmp_path)
