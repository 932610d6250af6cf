"""The declaration of one webhook: its function, and the requests that it is called for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, final

import attrs

from .._suggestions import check_async
from ..models import FrozenMap, KubernetesObject, ResourceInfo, resource_of
from ..models.meta_v1 import LabelSelector
from ._admission import AdmissionRequest, Operation

Kind: TypeAlias = type[KubernetesObject]
Validate: TypeAlias = Callable[[AdmissionRequest[Any]], Awaitable[Iterable[str] | None]]
"""An async function that returns warnings for the user, or None.  It raises `Denied` to refuse the request."""
Mutate: TypeAlias = Callable[[AdmissionRequest[Any]], Awaitable[KubernetesObject | None]]
"""An async function that returns the changed object, or None.  It raises `Denied` to refuse the request."""
Convert: TypeAlias = Callable[[Any], KubernetesObject]
"""A function that converts an object to another version, without changing its identity."""
Converters: TypeAlias = Mapping[Kind, tuple[Convert, Convert]]
"""For each version, the functions that convert it to the hub, and the hub to it."""
Verb: TypeAlias = Literal["validate", "mutate"]

MARGIN: Final = 0.5
"""How many seconds before kube-apiserver's timeout a function is cancelled, so that the response arrives in time."""
_LEASES: Final = ("coordination.k8s.io", "leases")


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"a sequence of strings is required, such as ({values!r},), not a string")
    return tuple(values)


def _operations(values: Iterable[Operation]) -> tuple[Operation, ...]:
    _texts(values)
    return tuple(values)


def _check_function(webhook: Webhook, attribute: attrs.Attribute[Validate | Mutate], value: Validate | Mutate) -> None:
    check_async(value, "the function of a webhook", "async def check(request: AdmissionRequest[Website])", None)


@final
@attrs.frozen
class Webhook:
    """A function of :class:`Webhooks`, and the requests for which kube-apiserver calls it.

    The fields have the names, meanings and defaults of ``admissionregistration/v1 ValidatingWebhook`` and
    ``MutatingWebhook``, except that ``side_effects`` has a default.

    Raises:
        ValueError: ``timeout_seconds`` is not from 1 to 30.
        TypeError: The function is not an async function of one argument, or a string is given instead of a sequence
            of strings.
    """

    function: Validate | Mutate = attrs.field(validator=_check_function)
    """The async function.  It is cancelled half a second before the timeout, and when kube-apiserver disconnects."""
    operations: Iterable[Operation] = attrs.field(default=("CREATE", "UPDATE"), kw_only=True, converter=_operations)
    """The operations: ``CREATE``, ``UPDATE``, ``DELETE``, ``CONNECT``, or ``*`` for all of them."""
    subresources: Iterable[str] = attrs.field(default=("",), kw_only=True, converter=_texts)
    """The subresources, such as ``status``.  An empty string stands for the object itself."""
    failure_policy: Literal["Fail", "Ignore"] = attrs.field(default="Fail", kw_only=True)
    """Whether a request fails or continues if the webhook cannot be called or raises an exception."""
    match_policy: Literal["Equivalent", "Exact"] = attrs.field(default="Equivalent", kw_only=True)
    """Whether kube-apiserver converts requests for other versions of the kind, or does not call the webhook for
    them."""
    namespace_selector: LabelSelector | None = attrs.field(default=None, kw_only=True)
    """The labels of the namespaces.  The default, None, selects all namespaces except ``kube-system`` and the
    namespace of the operator, so that a failing operator cannot prevent its own repair."""
    object_selector: LabelSelector | None = attrs.field(default=None, kw_only=True)
    """The labels of the objects."""
    match_conditions: Mapping[str, str] = attrs.field(default=FrozenMap(), kw_only=True)
    """A mapping of names to CEL expressions, which must all be true."""
    side_effects: Literal["None", "NoneOnDryRun"] = attrs.field(default="None", kw_only=True)
    """Whether the function changes anything besides its object."""
    timeout_seconds: int = attrs.field(default=10, kw_only=True, validator=attrs.validators.in_(range(1, 31)))
    """How long kube-apiserver waits for the response, from 1 to 30 seconds."""
    reinvocation_policy: Literal["Never", "IfNeeded"] = attrs.field(default="Never", kw_only=True)
    """Whether a mutating webhook is called again if a later webhook has changed the object."""
    name: str | None = attrs.field(default=None, kw_only=True)
    """The name in messages to users, a domain name of at least three parts.  The default, None, is for example
    ``validate.websites.example.com``."""


@final
@attrs.frozen
class Route:
    """A declared webhook, with its path on the server."""

    verb: Verb
    kind: Kind
    webhook: Webhook
    path: str
    name: str

    @property
    def period(self) -> float:
        """How many seconds the function may take."""
        return self.webhook.timeout_seconds - MARGIN


def path_of(verb: str, info: ResourceInfo) -> str:
    """Return the path of a webhook on the server."""
    return f"/{verb}/{info.group or 'core'}/{info.plural}"


def routes_of(
    verb: Verb, declared: Mapping[Kind, Validate | Webhook] | Mapping[Kind, Mutate | Webhook]
) -> dict[str, Route]:
    """Return the webhooks of a declaration by path.  The exceptions are those of `Webhooks`."""
    routes: dict[str, Route] = {}
    for kind, value in declared.items():
        info, webhook = resource_of(kind), value if isinstance(value, Webhook) else Webhook(value)
        path = path_of(verb, info)
        if (info.group, info.plural) == _LEASES:
            raise ValueError(f"{verb}: webhooks for leases are not supported, because replicas could not become leader")
        if path in routes:
            both = f"{routes[path].kind.__name__} and {kind.__name__}"
            raise ValueError(f"{verb}: {both} are versions of the same kind; declare one, and the others are converted")
        if verb == "validate" and webhook.reinvocation_policy != "Never":
            raise ValueError(f"validate: {kind.__name__}: only mutating webhooks have a reinvocation_policy")
        name = webhook.name or f"{verb}.{info.plural}.{info.group or 'core'}"
        routes[path] = Route(verb, kind, webhook, path, name)
    return routes


def check_converters(hub: Kind, converters: Converters) -> None:
    """Check that all versions of a kind are versions of its hub.  The exceptions are those of `Webhooks`."""
    info, versions = resource_of(hub), {resource_of(hub).version}
    for kind, pair in converters.items():
        other = resource_of(kind)
        if (other.group, other.plural) != (info.group, info.plural) or other.version in versions:
            raise ValueError(f"convert: {kind.__name__} is not another version of {hub.__name__}")
        versions.add(other.version)
        if not all(map(callable, pair)):
            raise TypeError(f"convert: {kind.__name__}: two functions are required, to {hub.__name__} and back")
