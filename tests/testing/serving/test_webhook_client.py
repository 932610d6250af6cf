"""The embedded server calls webhooks in memory, on virtual time."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import trio
import trio.testing

from trioformer.client import Client
from trioformer.crds import custom_resource, install_crds, resource_part
from trioformer.errors import InternalServerError, MethodNotAllowedError, NotFoundError, StatusError
from trioformer.models import KubernetesObject, Model, ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.testing._serving import _webhook_client
from trioformer.testing._storage._admission import Admission
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks


def config_map(name: str = "a", namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


@resource_part()
class OldSpec(Model):
    size: int = 0


@custom_resource("example.com/v1", kind="Widget", stored=False)
class OldWidget(KubernetesObject):
    """The older version of a kind."""

    spec: OldSpec = OldSpec()


@resource_part()
class NewSpec(Model):
    width: int = 0


@custom_resource("example.com/v2", kind="Widget", stored=True)
class Widget(KubernetesObject):
    """The hub."""

    spec: NewSpec = NewSpec()


def upgrade(old: OldWidget) -> Widget:
    return Widget(metadata=old.metadata, spec=NewSpec(width=old.spec.size))


def downgrade(new: Widget) -> OldWidget:
    return OldWidget(metadata=new.metadata, spec=OldSpec(size=new.spec.width))


CONVERTING = Webhooks(convert={Widget: {OldWidget: (upgrade, downgrade)}})


def old_widget(name: str, size: int) -> OldWidget:
    return OldWidget(metadata=ObjectMeta(name=name, namespace="default"), spec=OldSpec(size=size))


async def test_webhooks_change_and_refuse_objects(api_server: APIServer, k8s_client: Client) -> None:
    async def complete(request: AdmissionRequest[ConfigMap]) -> ConfigMap:
        return request.object.evolve(data={**request.object.data, "by": request.user.username})

    async def check(request: AdmissionRequest[ConfigMap]) -> list[str]:
        if request.name == "bad":
            raise Denied("bad name", causes={"metadata.name": "must not be bad"})
        return ["be careful"]

    await api_server.install_webhooks(Webhooks(mutate={ConfigMap: complete}, validate={ConfigMap: check}))
    api = k8s_client.api(ConfigMap)
    assert (await api.create(config_map())).data == {"by": "trioformer-admin"}
    with pytest.raises(StatusError) as caught:
        await api.create(config_map("bad"))
    assert [(cause.field, cause.message) for cause in caught.value.details.causes] == [
        ("metadata.name", "must not be bad")
    ]
    assert [one.name for one in api_server.list(ConfigMap, namespace="default")] == ["a"]


async def test_installing_webhooks_again_replaces_their_configurations(
    api_server: APIServer, k8s_client: Client
) -> None:
    async def refuse(request: AdmissionRequest[ConfigMap]) -> None:
        raise Denied("no")

    async def accept(request: AdmissionRequest[ConfigMap]) -> None:
        pass

    await api_server.install_webhooks(Webhooks(validate={ConfigMap: refuse}))
    await api_server.install_webhooks(Webhooks(validate={ConfigMap: accept}))
    await k8s_client.api(ConfigMap).create(config_map())
    assert len(api_server.list("validatingwebhookconfigurations")) == 1


async def test_a_slow_webhook_fails_after_its_timeout_on_virtual_time(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep_forever()

    for name, policy in (("a", "Ignore"), ("b", "Fail")):
        install(api_server, name, timeoutSeconds=7, failurePolicy=policy)
    await api_server.install_webhooks(app, service="w", namespace="default")
    started = trio.current_time()
    with pytest.raises(InternalServerError, match="context deadline exceeded"):
        await k8s_client.api(ConfigMap).create(config_map())
    assert trio.current_time() - started == 7  # both are called at the same time
    assert api_server.list(ConfigMap, namespace="default") == []


def install(server: APIServer, name: str, **webhook: object) -> None:
    """Create a configuration of one validating webhook of the Service ``w``."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps", "pods/exec"]}
    given = {
        "name": f"{name}.example.com",
        "rules": [rule],
        "clientConfig": {"service": {"name": "w", "namespace": "default", "path": f"/{name}"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **webhook,
    }
    kind, version = "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
    server.create({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "webhooks": [given]})


async def test_an_exception_in_a_webhook_is_logged_and_answered_with_500(
    api_server: APIServer, k8s_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("a bug in the webhook")

    install(api_server, "a")
    await api_server.install_webhooks(app, service="w", namespace="default")
    with pytest.raises(InternalServerError, match="an error on the server"):
        await k8s_client.api(ConfigMap).create(config_map())
    assert "a bug in the webhook" in caplog.text


async def test_a_client_that_disconnects_has_written_nothing(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    was_cancelled = trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await trio.sleep(5)
        except trio.Cancelled:
            was_cancelled.set()
            raise

    install(api_server, "a", failurePolicy="Ignore")
    await api_server.install_webhooks(app, service="w", namespace="default")
    with trio.move_on_after(2):
        await k8s_client.api(ConfigMap).create(config_map())
    await was_cancelled.wait()
    await trio.sleep(20)
    assert api_server.list(ConfigMap, namespace="default") == []


async def test_a_service_without_webhooks_cannot_be_called(api_server: APIServer, k8s_client: Client) -> None:
    install(api_server, "a")
    api = k8s_client.api(ConfigMap)
    with pytest.raises(InternalServerError, match='service "w" not found'):
        await api.create(config_map())
    spec = {"ports": [{"port": 443}]}
    api_server.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": spec})
    with pytest.raises(InternalServerError, match='no endpoints available for service "w"'):
        await api.create(config_map())


@pytest.mark.parametrize("bundle", [b"", b"\x30\x82\x01\x0a", b"no certificate"])
async def test_a_bundle_without_certificates_trusts_nobody(
    api_server: APIServer, k8s_client: Client, bundle: bytes
) -> None:
    encoded = base64.b64encode(bundle).decode()
    install(api_server, "a", clientConfig={"url": "https://127.0.0.1:1/a", "caBundle": encoded})
    with pytest.raises(InternalServerError, match="failed calling webhook"):
        await k8s_client.api(ConfigMap).create(config_map())


async def test_a_webhook_with_conditions_in_cel_is_not_served(api_server: APIServer, k8s_client: Client) -> None:
    install(api_server, "a", matchConditions=[{"name": "x", "expression": "true"}])
    with pytest.raises(StatusError) as caught:
        await k8s_client.api(ConfigMap).create(config_map())
    assert (caught.value.code, "a.example.com" in caught.value.message) == (501, True)


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"])
async def test_admission_policies_can_be_listed_and_not_created(k8s_client: Client, kind: str) -> None:
    plural = f"{kind.lower()}s"
    path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}}
    with pytest.raises(StatusError) as caught:
        await k8s_client.request("POST", path, body=body)
    assert caught.value.code == 501
    listed = await k8s_client.request("GET", path)
    assert listed.json()["items"] == []


async def test_a_webhook_reviews_the_connection_to_a_pod(api_server: APIServer, k8s_client: Client) -> None:
    reviews: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more_body = b"", True
        while more_body:
            message = await receive()
            body, more_body = body + message["body"], message["more_body"]
        review = json.loads(body)
        reviews.append(review["request"])
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": "no shells", "code": 403}}
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps({**review, "response": response}).encode()})

    install(api_server, "a")
    await api_server.install_webhooks(app, service="w", namespace="default")
    params = {"command": "ls", "container": "main", "stdout": "true", "tty": "false"}
    with pytest.raises(StatusError, match="no shells"):
        await k8s_client.request("GET", "/api/v1/namespaces/default/pods/p/exec", params=params)
    (request,) = reviews
    assert (request["operation"], request["subResource"]) == ("CONNECT", "exec")
    options = {"command": ["ls"], "container": "main", "stdout": True}
    assert request["object"] == {"kind": "PodExecOptions", "apiVersion": "v1", **options}
    assert (request["name"], request["options"]) == ("p", None)


async def test_repeated_requests_have_the_uids_and_times_of_one_request(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    seen: list[Any] = []

    async def check(request: AdmissionRequest[ConfigMap]) -> None:
        seen.append((request.object.uid, request.object.metadata.creation_timestamp))
        await trio.sleep(3)

    await api_server.install_webhooks(Webhooks(validate={ConfigMap: check}))
    api = k8s_client.api(ConfigMap)
    first, second = await api.create(config_map("a")), await api.create(config_map("b"))
    assert seen == [(one.uid, one.metadata.creation_timestamp) for one in (first, second)]
    assert first.uid != second.uid


async def test_a_webhook_may_write_to_the_server_that_calls_it(api_server: APIServer, k8s_client: Client) -> None:
    async def check(request: AdmissionRequest[ConfigMap]) -> None:
        if request.name == "a":
            await k8s_client.api(ConfigMap).create(config_map("made-by-webhook"))

    await api_server.install_webhooks(Webhooks(validate={ConfigMap: check}))
    await k8s_client.api(ConfigMap).create(config_map("a"))
    assert [one.name for one in api_server.list(ConfigMap, namespace="default")] == ["a", "made-by-webhook"]


async def test_a_webhook_that_always_changes_its_object_ends_in_a_timeout(
    api_server: APIServer, k8s_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_webhook_client, "_MOST_TURNS", 20)
    versions = 0

    async def touch(request: AdmissionRequest[ConfigMap]) -> None:
        nonlocal versions
        versions += 1
        api_server.patch(ConfigMap, request.name, {"metadata": {"annotations": {"version": str(versions)}}})

    await api_server.install_webhooks(Webhooks(validate={ConfigMap: Webhook(touch, operations=("UPDATE",))}))
    api_server.create(config_map())
    with pytest.raises(StatusError) as caught:
        await k8s_client.api(ConfigMap, namespace="default").patch("a", {"data": {"x": "1"}})
    assert (caught.value.code, caught.value.reason) == (504, "Timeout")
    assert api_server.get(ConfigMap, "a").data == {}


async def test_the_time_to_delete_a_collection_grows_with_its_objects(
    api_server: APIServer, k8s_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted, admit = 0, Admission.delete

    def counted(*args: Any) -> Any:
        nonlocal admitted
        admitted += 1
        return admit(*args)

    async def check(request: AdmissionRequest[ConfigMap]) -> None:
        """Allow everything."""

    for number in range(30):
        api_server.create(config_map(f"a{number}"))
    await api_server.install_webhooks(Webhooks(validate={ConfigMap: Webhook(check, operations=("DELETE",))}))
    monkeypatch.setattr(Admission, "delete", counted)
    await k8s_client.api(ConfigMap, namespace="default").delete_collection(everything=True)
    assert api_server.list(ConfigMap, namespace="default") == []
    assert admitted <= 3 * 30


async def test_the_direct_api_calls_no_webhooks(api_server: APIServer) -> None:
    async def refuse(request: AdmissionRequest[ConfigMap]) -> None:
        raise Denied("no")

    await api_server.install_webhooks(
        Webhooks(validate={ConfigMap: Webhook(refuse, operations=("CREATE", "UPDATE", "DELETE"))})
    )
    api_server.create(config_map(x="1"))
    api_server.patch(ConfigMap, "a", {"data": {"x": "2"}})
    api_server.delete(ConfigMap, "a")


async def test_objects_are_converted_in_memory(api_server: APIServer, k8s_client: Client) -> None:
    await install_crds(k8s_client, OldWidget, Widget)
    await api_server.install_webhooks(CONVERTING)
    made = await k8s_client.api(OldWidget).create(old_widget("a", 3))
    assert made.spec.size == 3
    assert (await k8s_client.api(Widget, namespace="default").get("a")).spec.width == 3
    assert api_server.get(Widget, "a").spec.width == 3
    with pytest.raises(MethodNotAllowedError, match="a webhook converts it to v2"):
        api_server.get(OldWidget, "a")


async def test_converted_objects_survive_a_snapshot(api_server: APIServer, k8s_client: Client) -> None:
    await install_crds(k8s_client, OldWidget, Widget)
    await api_server.install_webhooks(CONVERTING)
    await k8s_client.api(OldWidget).create(old_widget("a", 3))
    snapshot = api_server.snapshot()
    await k8s_client.api(OldWidget, namespace="default").delete("a")
    api_server.restore(snapshot)
    assert [one.spec.size for one in await k8s_client.api(OldWidget, namespace="default").list()] == [3]


async def test_conversions_need_the_definition_of_the_kind(api_server: APIServer) -> None:
    with pytest.raises(NotFoundError, match=r"widgets\.example\.com"):
        await api_server.install_webhooks(CONVERTING)


async def test_the_function_of_a_webhook_is_not_an_application(api_server: APIServer) -> None:
    async def check(request: AdmissionRequest[ConfigMap]) -> None:
        raise Denied("never called")

    with pytest.raises(TypeError, match="Webhooks"):
        await api_server.install_webhooks(check)
