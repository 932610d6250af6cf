"""Reviews as the API server sends them to Kubernetes' own examples, cert-manager and Kyverno."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.webhooks import Caller, read_review
from trioformer.crds import custom_resource
from trioformer.models import KubernetesObject, Unstructured, unstructured_kind
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks

Certificate = unstructured_kind("cert-manager.io/v1", "Certificate", plural="certificates", namespaced=True)


async def test_a_scale_of_kubernetes_documentation_has_the_kind_of_the_subresource() -> None:
    async def check(request: AdmissionRequest[Unstructured]) -> None:
        assert request.old is not None
        seen = request.object.kind, request.subresource, request.name, request.namespace
        assert seen == ("Scale", "scale", "shop", "web")
        assert request.user.extra["example.com/tickets"] == ("4711", "4712")
        grows_by = request.object["spec"]["replicas"] - request.old["spec"]["replicas"]
        raise Denied(f"{request.user.username} may not add {grows_by} replicas", code=409)

    caller = Caller(Webhooks(validate={Deployment: Webhook(check, subresources=("scale",))}))
    answer = await caller.call("/validate/apps/deployments", read_review("kubernetes_scale"))
    assert answer["status"]["message"] == "ops may not add 3 replicas"
    assert answer["status"]["reason"] == "Conflict"


async def test_a_connection_has_the_options_of_the_command_as_its_object() -> None:
    async def check(request: AdmissionRequest[Unstructured]) -> list[str]:
        assert (request.operation, request.subresource, request.old) == ("CONNECT", "exec", None)
        return [f"{' '.join(request.object['command'])} in {request.name}"]

    caller = Caller(Webhooks(validate={Pod: Webhook(check, operations=("CONNECT",), subresources=("exec",))}))
    answer = await caller.call("/validate/core/pods", read_review("kubernetes_exec"))
    assert (answer["allowed"], answer["warnings"]) == (True, ["sh in shop-0"])


async def test_a_certificate_of_cert_manager_is_checked_without_a_class() -> None:
    async def check(request: AdmissionRequest[Unstructured]) -> None:
        spec = request.object["spec"]
        hours = [int(spec[name].removesuffix("h")) for name in ("duration", "renewBefore")]
        if hours[1] >= hours[0]:
            raise Denied("it would always be renewed", {"spec.renewBefore": "must be less than the duration"})

    caller, body = Caller(Webhooks(validate={Certificate: check})), read_review("cert_manager_certificate")
    answer = await caller.call("/validate/cert-manager.io/certificates", body)
    assert answer["uid"] == body["request"]["uid"]
    assert answer["status"]["details"]["causes"][0]["field"] == "spec.renewBefore"
    body["request"]["object"] = body["request"]["oldObject"]
    assert (await caller.call("/validate/cert-manager.io/certificates", body))["allowed"]


async def test_a_pod_of_a_kyverno_policy_is_mutated_and_keeps_everything_else() -> None:
    async def pin(request: AdmissionRequest[Pod]) -> Pod:
        pod = request.object
        assert request.dry_run
        assert (request.name, pod.metadata.generate_name) == ("", "shop-7c9d-")
        containers = [
            each.evolve(image=each.image.replace(":latest", ":1.27")) if each.image else each
            for each in pod.spec.containers
        ]
        labels = {**pod.metadata.labels, "pinned/by": "webhook"}
        spec = pod.spec.evolve(containers=tuple(containers))
        return pod.evolve(spec=spec, metadata=pod.metadata.evolve(labels=labels))

    body = read_review("kyverno_pod")
    expected = copy.deepcopy(body["request"]["object"])
    expected["spec"]["containers"][0]["image"] = "nginx:1.27"
    expected["metadata"]["labels"]["pinned/by"] = "webhook"
    assert await Caller(Webhooks(mutate={Pod: pin})).mutated("/mutate/core/pods", body) == expected


@custom_resource("stable.example.com/v1beta1", kind="CronTab", stored=False)
class OldCronTab(KubernetesObject):
    host_port: str = ""


@custom_resource("stable.example.com/v1", kind="CronTab", stored=True)
class CronTab(KubernetesObject):
    host: str = ""
    port: str = ""


def upgrade(old: OldCronTab) -> CronTab:
    host, _, port = old.host_port.rpartition(":")
    return CronTab(metadata=old.metadata, host=host, port=port)


def downgrade(new: CronTab) -> OldCronTab:
    return OldCronTab(metadata=new.metadata, host_port=f"{new.host}:{new.port}")


async def test_the_crontabs_of_kubernetes_documentation_are_converted_there_and_back() -> None:
    caller, body = (
        Caller(Webhooks(convert={CronTab: {OldCronTab: (upgrade, downgrade)}})),
        read_review("kubernetes_crontabs"),
    )
    answer = await caller.call("/convert/stable.example.com/crontabs", body)
    assert [(each["host"], each["port"]) for each in answer["convertedObjects"]] == [
        ("localhost", "1234"),
        ("example.com", "2345"),
    ]
    assert [each["metadata"] for each in answer["convertedObjects"]] == [
        each["metadata"] for each in body["request"]["objects"]
    ]
    request: dict[str, Any] = {**body["request"], "desiredAPIVersion": "stable.example.com/v1beta1"}
    back = await caller.call(
        "/convert/stable.example.com/crontabs",
        {**body, "request": {**request, "objects": answer["convertedObjects"]}},
    )
    assert [each["hostPort"] for each in back["convertedObjects"]] == ["localhost:1234", "example.com:2345"]


@pytest.mark.parametrize("name", ["kubernetes_scale", "kubernetes_exec", "cert_manager_certificate", "kyverno_pod"])
async def test_reviews_of_the_version_before_are_refused(name: str) -> None:
    async def allow(request: AdmissionRequest[Pod]) -> None: ...

    body = {**read_review(name), "apiVersion": "admission.k8s.io/v1beta1"}
    answer = await Caller(Webhooks(validate={Pod: allow})).post("/validate/core/pods", body)
    assert answer.status_code == 400
    assert "admission.k8s.io/v1 AdmissionReview" in answer.text
