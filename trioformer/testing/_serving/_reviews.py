"""Reviews, which ask who a client is or what a user may do.  The server responds to them and does not store them.

The server does not authenticate its clients: every client is the same administrator, and everything is allowed.
Source: kubernetes ``pkg/registry/authentication``, ``pkg/registry/authorization``, and
``pkg/apis/authorization/validation``, with the authorizer AlwaysAllow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...models._internal import dumps
from .._storage._clock import timestamp
from .._storage._field_errors import Verbatim, invalid_value
from .._storage._go_types import metadata_of
from .._storage._kinds import ServedKind
from .._storage._registry import Registry
from .._storage._status import bad_request, invalid
from .._storage._storage import JSONObject
from .._storage._values import value_at
from ._tokens import AUDIENCE, TokenError, user_of

ADMINISTRATOR: Final[JSONObject] = {
    "username": "trioformer-admin",
    "groups": ["system:masters", "system:authenticated"],
}
_RULES: Final[list[JSONObject]] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
_ROLES: Final = ("system:basic-user", "system:discovery", "system:public-info-viewer")
"""The ClusterRoles that every user has in a new cluster."""


def answer(registry: Registry, served: ServedKind, namespace: str, review: JSONObject) -> JSONObject:
    """Return a review with its status.

    Raises:
        APIStatusError: The review is not valid (400 or 422).
    """
    match served.info.kind:
        case "SelfSubjectReview":
            created = {"creationTimestamp": timestamp(registry.clock)}
            return {"metadata": created, "status": {"userInfo": ADMINISTRATOR}}
        case "SelfSubjectRulesReview":
            if not value_at(review, "spec", "namespace"):
                raise bad_request("no namespace on request")
            return {"metadata": {}, "spec": {}, "status": _rules(registry)}
        case "TokenReview":
            metadata = {key: value for key, value in metadata_of(review).items() if key != "namespace"}
            return {"metadata": metadata, "spec": review.get("spec") or {}, "status": _authenticated(registry, review)}
        case _:
            causes = list(_problems(review, namespace, names_user=not served.info.kind.startswith("Self")))
            if causes:  # kube-apiserver does not name the kind here
                raise invalid(served.info.group, "", "", causes)
            metadata = {"namespace": namespace} if namespace else {}
            return {"metadata": metadata, "spec": review.get("spec"), "status": {"allowed": True}}


def _rules(registry: Registry) -> JSONObject:
    """Return the rules of an administrator."""
    found = (registry.storage.get("clusterroles.rbac.authorization.k8s.io", name) for name in _ROLES)
    rules = [*_RULES, *(rule for stored in found if stored is not None for rule in stored.decoded().get("rules") or ())]
    return {
        "resourceRules": [rule for rule in rules if "resources" in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,
    }


def _authenticated(registry: Registry, review: JSONObject) -> JSONObject:
    token = value_at(review, "spec", "token")
    if not isinstance(token, str) or not token:
        raise bad_request("token is required for TokenReview in authentication")
    given = value_at(review, "spec", "audiences")
    audiences = [str(each) for each in given] if isinstance(given, list) and given else [AUDIENCE]
    try:
        user, accepted = user_of(registry, token, audiences) or (ADMINISTRATOR, audiences)
    except TokenError as exc:
        return {"user": {}, "error": str(exc)}
    return {"authenticated": True, "user": user, "audiences": accepted}


def _problems(review: JSONObject, namespace: str, *, names_user: bool) -> Iterator[JSONObject]:
    """Yield the causes if an access review is not valid.

    The namespace is that of a LocalSubjectAccessReview, and empty for other kinds.
    """
    resource = value_at(review, "spec", "resourceAttributes")
    path = value_at(review, "spec", "nonResourceAttributes")
    given = {"Path": value_at(path, "path") or "", "Verb": value_at(path, "verb") or ""}
    if resource is not None and path is not None:
        problem = "cannot be specified in combination with resourceAttributes"
        yield invalid_value("spec.nonResourceAttributes", given, problem)
    elif resource is None and path is None:
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid_value("spec.resourceAttributes", None, problem)
    if names_user and not value_at(review, "spec", "user") and not value_at(review, "spec", "groups"):
        yield invalid_value("spec.user", "", "at least one of user or group must be specified")
    metadata = {key: value for key, value in metadata_of(review).items() if key not in ("namespace", "managedFields")}
    if metadata:
        yield invalid_value("metadata", Verbatim(dumps(metadata).decode()), "must be empty")
    if namespace and resource is not None and value_at(resource, "namespace") != namespace:
        found = value_at(resource, "namespace") or ""
        yield invalid_value("spec.resourceAttributes.namespace", found, "must match metadata.namespace")
    if namespace and path is not None:
        yield invalid_value("spec.nonResourceAttributes", given, "disallowed on this kind of request")
