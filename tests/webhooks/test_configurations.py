"""The objects that tell kube-apiserver to call webhooks."""

from __future__ import annotations

from typing import Any

import pytest
import trustme

from tests.support.webhooks import OldShop, Shop
from trioformer.models import KubernetesObject, to_dict
from trioformer.models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from trioformer.models.core_v1 import Node, Pod
from trioformer.models.meta_v1 import LabelSelector
from trioformer.testing import APIServer
from trioformer.webhooks import AdmissionRequest, Webhook, Webhooks

PLACE: Any = {"service": "shops", "namespace": "operators"}
CA = trustme.CA().cert_pem.bytes().decode()


async def allow(request: AdmissionRequest[Any]) -> None: ...


def same(obj: Any) -> Any:
    return obj


ALL = Webhooks(
    validate={
        Shop: allow,
        Pod: Webhook(
            allow,
            operations=("CREATE", "DELETE"),
            subresources=("", "eviction"),
            failure_policy="Ignore",
            match_policy="Exact",
            namespace_selector=LabelSelector(match_labels={"team": "a"}),
            object_selector=LabelSelector(match_labels={"app": "web"}),
            match_conditions={"not-ours": "request.userInfo.username != 'me'"},
            side_effects="NoneOnDryRun",
            timeout_seconds=3,
            name="pods.shops.example.com",
        ),
    },
    mutate={Node: Webhook(allow, reinvocation_policy="IfNeeded")},
    convert={Shop: {OldShop: (same, same)}},
)


def webhooks_in(obj: KubernetesObject) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_dict(obj)["webhooks"]
    return found


def test_a_webhook_has_defaults_that_exclude_the_operators_own_namespace() -> None:
    validating, mutating = ALL.configurations(**PLACE)
    assert isinstance(validating, ValidatingWebhookConfiguration)
    assert isinstance(mutating, MutatingWebhookConfiguration)
    assert {validating.name, mutating.name} == {"shops.operators"}
    assert webhooks_in(validating)[0] == {
        "name": "validate.shops.example.com",
        "clientConfig": {
            "service": {
                "namespace": "operators",
                "name": "shops",
                "path": "/validate/example.com/shops",
                "port": 443,
            }
        },
        "rules": [
            {
                "operations": ["CREATE", "UPDATE"],
                "apiGroups": ["example.com"],
                "apiVersions": ["v1"],
                "resources": ["shops"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "operators"]}
            ]
        },
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }


def test_the_options_of_a_webhook_are_in_its_configuration() -> None:
    validating, mutating = ALL.configurations(**PLACE, port=8443)
    pods, nodes = webhooks_in(validating)[1], webhooks_in(mutating)[0]
    assert pods["name"] == "pods.shops.example.com"
    assert pods["clientConfig"]["service"]["port"] == 8443
    assert pods["rules"][0]["operations"] == ["CREATE", "DELETE"]
    assert pods["rules"][0]["resources"] == ["pods", "pods/eviction"]
    assert (pods["failurePolicy"], pods["matchPolicy"], pods["sideEffects"]) == ("Ignore", "Exact", "NoneOnDryRun")
    assert (pods["namespaceSelector"], pods["objectSelector"]) == (
        {"matchLabels": {"team": "a"}},
        {"matchLabels": {"app": "web"}},
    )
    assert pods["matchConditions"] == [{"name": "not-ours", "expression": "request.userInfo.username != 'me'"}]
    assert pods["timeoutSeconds"] == 3
    assert nodes["rules"][0]["scope"] == "Cluster"
    assert (nodes["name"], nodes["reinvocationPolicy"]) == ("mutate.nodes.core", "IfNeeded")


@pytest.mark.parametrize("ca", [CA, CA.encode()])
def test_a_url_and_certificates_are_in_all_client_configs(ca: str | bytes) -> None:
    url = "https://127.0.0.1:9443/hooks/"
    validating, _ = ALL.configurations(**PLACE, url=url, ca=ca)
    assert isinstance(validating, ValidatingWebhookConfiguration)
    config = validating.webhooks[0].client_config
    assert (config.url, config.service) == ("https://127.0.0.1:9443/hooks/validate/example.com/shops", None)
    assert config.ca_bundle == CA.encode()
    webhook = ALL.conversion(Shop, **PLACE, url=url, ca=ca).webhook
    assert webhook is not None
    assert webhook.client_config is not None
    assert webhook.client_config.url == "https://127.0.0.1:9443/hooks/convert/example.com/shops"
    assert webhook.client_config.ca_bundle == CA.encode()
    assert webhook.conversion_review_versions == ("v1",)


@pytest.mark.parametrize(
    "url",
    [
        "http://shops",
        "shops:443",
        "https://",
        "https://me:pass@shops",
        "https://shops/?a=1",
        "https://shops#a",
        "https://[::1",
        "https://shops:x",
        "https://läden",
    ],
)
def test_a_url_that_kube_apiserver_would_not_accept_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url: ") as raised:
        ALL.configurations(**PLACE, url=url)
    assert "pass" not in str(raised.value)


@pytest.mark.parametrize("name", ["service", "namespace"])
@pytest.mark.parametrize("value", ["", "Shops", "shops.default", "s" * 64])
def test_a_name_that_no_service_has_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: .* DNS label"):
        ALL.configurations(**{**PLACE, name: value})


def test_a_ca_without_certificates_or_with_a_key_is_refused() -> None:
    key = trustme.CA().private_key_pem.bytes()
    for ca in ("", "tls.crt", key, CA.encode() + key):
        with pytest.raises(ValueError, match="ca: ") as raised:
            ALL.conversion(Shop, **PLACE, ca=ca)
        assert "BEGIN" not in str(raised.value)


def test_only_declared_webhooks_are_configured() -> None:
    assert Webhooks(convert={Shop: {}}).configurations(**PLACE) == ()
    (only,) = Webhooks(mutate={Shop: allow}).configurations(**PLACE)
    assert isinstance(only, MutatingWebhookConfiguration)
    with pytest.raises(KeyError, match="OldShop"):
        ALL.conversion(OldShop, **PLACE)


def test_the_configurations_are_valid_for_the_server() -> None:
    server = APIServer()
    for each in ALL.configurations(**PLACE, ca=CA):
        assert server.create(each).name == "shops.operators"
