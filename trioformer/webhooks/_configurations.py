"""The objects that tell kube-apiserver to call webhooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, final
from urllib.parse import urlsplit

import attrs

from .._text import quoted
from ..kubeconfig._internal import DNS_LABEL, has_host
from ..models import from_dict, resource_of, to_dict
from ..models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from ..models.apiextensions_v1 import CustomResourceConversion
from ._declarations import Kind, Route, path_of

Configuration: TypeAlias = ValidatingWebhookConfiguration | MutatingWebhookConfiguration
CONFIGURATIONS: Final = (ValidatingWebhookConfiguration, MutatingWebhookConfiguration)

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label with the name of each namespace, which kube-apiserver sets."""


def _pem(ca: str | bytes | None) -> bytes | None:
    return ca.encode() if isinstance(ca, str) else ca


@final
@attrs.frozen(kw_only=True)
class Place:
    """Where kube-apiserver reaches the webhooks.  The exceptions are those of `Webhooks.configurations`."""

    service: str
    namespace: str
    port: int = 443
    url: str | None = None
    ca: bytes | None = attrs.field(default=None, converter=_pem, repr=False)

    def __attrs_post_init__(self) -> None:
        for name, value in (("service", self.service), ("namespace", self.namespace)):
            if not DNS_LABEL.fullmatch(value):
                text = "it must be a DNS label (lower-case letters, digits and '-', at most 63)"
                raise ValueError(f"{name}: {text}, not {quoted(value)}")
        if self.url is not None and (not has_host(self.url, ("https",)) or {*"@?#"} & {*self.url}):
            raise ValueError("url: it must be https://host:port/path, in ASCII, without a user, a query or a fragment")
        if self.ca is not None and (b"PRIVATE KEY-----" in self.ca or b"-----BEGIN CERTIFICATE-----" not in self.ca):
            raise ValueError("ca: it must contain certificates in PEM format, and no private key")

    @property
    def name(self) -> str:
        """The name of the configurations."""
        return f"{self.service}.{self.namespace}"

    @property
    def secret(self) -> str:
        """The name of the Secret with the certificate."""
        return f"{self.service}-webhook"

    @property
    def host(self) -> str:
        """The host that the certificate is for."""
        return (urlsplit(self.url).hostname if self.url else None) or f"{self.name}.svc"

    def client_config(self, path: str) -> dict[str, object]:
        """Return the ``clientConfig`` of a webhook."""
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        config = {"service": service} if self.url is None else {"url": self.url.rstrip("/") + path}
        return {**config, **({} if self.ca is None else {"caBundle": self.ca})}


def configurations(routes: Iterable[Route], place: Place) -> Iterator[Configuration]:
    """Yield a configuration for the validating webhooks, and one for the mutating webhooks, if there are any."""
    metadata = {"name": place.name}
    for cls, verb in zip(CONFIGURATIONS, ("validate", "mutate"), strict=True):
        if webhooks := [_webhook(route, place) for route in routes if route.verb == verb]:
            info = resource_of(cls)
            members = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, "webhooks": webhooks}
            yield from_dict(cls, members)


def _webhook(route: Route, place: Place) -> dict[str, object]:
    info, declared = resource_of(route.kind), route.webhook
    selector, objects = declared.namespace_selector, declared.object_selector
    excluded = {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system", place.namespace]}
    conditions = [{"name": name, "expression": text} for name, text in declared.match_conditions.items()]
    return {
        "name": route.name,
        "clientConfig": place.client_config(route.path),
        "rules": [
            {
                "operations": [*declared.operations],
                "apiGroups": [info.group],
                "apiVersions": [info.version],
                "resources": [f"{info.plural}/{each}" if each else info.plural for each in declared.subresources],
                "scope": "Namespaced" if info.namespaced else "Cluster",
            }
        ],
        "failurePolicy": declared.failure_policy,
        "matchPolicy": declared.match_policy,
        "namespaceSelector": {"matchExpressions": [excluded]} if selector is None else to_dict(selector),
        **({} if objects is None else {"objectSelector": to_dict(objects)}),
        **({"matchConditions": conditions} if conditions else {}),
        "sideEffects": declared.side_effects,
        "timeoutSeconds": declared.timeout_seconds,
        **({"reinvocationPolicy": declared.reinvocation_policy} if route.verb == "mutate" else {}),
        "admissionReviewVersions": ["v1"],
    }


def conversion(hub: Kind, place: Place) -> CustomResourceConversion:
    """Return the ``spec.conversion`` of a CustomResourceDefinition."""
    config = place.client_config(path_of("convert", resource_of(hub)))
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    return from_dict(CustomResourceConversion, {"strategy": "Webhook", "webhook": webhook})
