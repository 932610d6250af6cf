"""Reviews, which ask who a client is or what a user may do.  The server responds to them and does not store them.

Source: kubernetes ``pkg/registry/authentication``, ``pkg/registry/authorization``, and
``pkg/apis/authorization/validation``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...models._internal import dumps
from .._storage._clock import timestamp
from .._storage._field_errors import Verbatim, invalid_value
from .._storage._go_types import metadata_of
from .._storage._kinds import ServedKind
from .._storage._registry import Registry
from .._storage._status import bad_request, invalid
from .._storage._storage import JSONObject
from .._storage._values import value_at
from ._access import ADMINISTRATOR, Caller
from ._tokens import AUDIENCE, TokenError, user_of


def answer(registry: Registry, served: ServedKind, namespace: str, review: JSONObject, caller: Caller) -> JSONObject:
    """Return a review with its status.

    Raises:
        APIStatusError: The review is not valid (400 or 422).
    """
    match served.info.kind:
        case "SelfSubjectReview":
            created = {"creationTimestamp": timestamp(registry.clock)}
            return {"metadata": created, "status": {"userInfo": caller.user.info()}}
        case "SelfSubjectRulesReview":
            where = value_at(review, "spec", "namespace")
            if not where:
                raise bad_request("no namespace on request")
            return {"metadata": {}, "spec": {}, "status": _rules(caller, where)}
        case "TokenReview":
            metadata = {key: value for key, value in metadata_of(review).items() if key != "namespace"}
            return {"metadata": metadata, "spec": review.get("spec") or {}, "status": _authenticated(registry, review)}
        case _:
            names_user = not served.info.kind.startswith("Self")
            causes = list(_problems(review, namespace, names_user=names_user))
            if causes:  # kube-apiserver does not name the kind here
                raise invalid(served.info.group, "", "", causes)
            metadata = {"namespace": namespace} if namespace else {}
            spec = review["spec"]
            return {"metadata": metadata, "spec": spec, "status": caller.review(spec, names_user=names_user)}


def _rules(caller: Caller, namespace: str) -> JSONObject:
    """Return the rules of a user."""
    rules, problems = caller.roles.rules(caller.user, namespace)
    return {
        "resourceRules": [rule for rule in rules if "resources" in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,
        **({"evaluationError": problems} if problems else {}),
    }


def _authenticated(registry: Registry, review: JSONObject) -> JSONObject:
    token = value_at(review, "spec", "token")
    if not isinstance(token, str) or not token:
        raise bad_request("token is required for TokenReview in authentication")
    given = value_at(review, "spec", "audiences")
    audiences = [str(each) for each in given] if isinstance(given, list) and given else [AUDIENCE]
    try:
        user, accepted = user_of(registry, token, audiences) or (ADMINISTRATOR.info(), audiences)
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
