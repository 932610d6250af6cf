"""Service account tokens in the format of kube-apiserver.  Only TokenReviews of this server accept these tokens.

Source: kubernetes ``pkg/registry/core/serviceaccount/storage/token.go`` and ``pkg/apis/authentication/validation``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from ...models._internal import decode, dumps
from .._storage._clock import timestamp
from .._storage._field_errors import invalid_value
from .._storage._go_types import metadata_of
from .._storage._kinds import ServedKind
from .._storage._locations import check_namespace
from .._storage._registry import Registry
from .._storage._status import bad_request, invalid
from .._storage._storage import JSONObject
from .._storage._values import value_at

AUDIENCE: Final = "https://kubernetes.default.svc"
"""The default audience of tokens, which is also their issuer."""
_KEY: Final = b"the embedded API server of trioformer"
_DEFAULT_SECONDS: Final = 3600
_BOUND: Final = {("", "Pod"): "pods", ("", "Secret"): "secrets", ("", "Node"): "nodes"}
"""The kinds that a token may be bound to."""
_GROUP: Final = "authentication.k8s.io"


def grant(registry: Registry, served: ServedKind, namespace: str, name: str, request: JSONObject) -> JSONObject:
    """Return a TokenRequest with a new token in its status."""
    given = metadata_of(request)
    check_namespace(served, namespace, given)
    account = registry.get(served, namespace, name).decoded()["metadata"]
    if given.get("name") not in (None, "", name):
        wrong = invalid_value("metadata.name", given["name"], "must match the service account name if specified")
        raise invalid(_GROUP, "TokenRequest", name, [wrong])
    seconds = value_at(request, "spec", "expirationSeconds")
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    if (why := _problem_of(seconds)) is not None:
        raise invalid(_GROUP, "TokenRequest", "", [invalid_value("spec.expirationSeconds", seconds, why)])
    audiences = value_at(request, "spec", "audiences") or [AUDIENCE]
    bound = value_at(request, "spec", "boundObjectRef")
    claims: JSONObject = {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["uid"]}}
    if bound is not None:
        claims |= _bound_claim(registry, namespace, name, bound)
    now = registry.clock()
    expires = now + timedelta(seconds=seconds)
    token = _signed(
        {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": registry.new_uid(),
            "kubernetes.io": claims,
            "nbf": int(now.timestamp()),
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
    )
    kept = {key: account[key] for key in ("name", "namespace", "uid")}
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {**kept, "creationTimestamp": timestamp(registry.clock)},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
        "status": {"token": token, "expirationTimestamp": timestamp(lambda: expires)},
    }


def _problem_of(seconds: object) -> str | None:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        return "must be an integer"
    if seconds < 600:
        return "may not specify a duration less than 10 minutes"
    return "may not specify a duration larger than 2^32 seconds" if seconds > 2**32 else None


def _bound_claim(registry: Registry, namespace: str, account: str, bound: object) -> JSONObject:
    """Return the claim for the object that a token is bound to."""
    version, kind, name = (str(value_at(bound, key) or "") for key in ("apiVersion", "kind", "name"))
    plural = _BOUND.get((version.rpartition("/")[0], kind))
    served = None if plural is None else registry.kinds.find("", "v1", plural)
    if served is None:
        group_version = version if "/" in version else f"/{version}"
        raise bad_request(f"cannot bind token to object of type {group_version}, Kind={kind}")
    found = registry.get(served, namespace, name).decoded()
    runs_as = value_at(found, "spec", "serviceAccountName") or ""
    if kind == "Pod" and runs_as != account:
        problem = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        raise bad_request(problem)
    return {kind.lower(): {"name": name, "uid": found["metadata"]["uid"]}}


class TokenError(Exception):
    """A token is not valid."""


def user_of(registry: Registry, token: str, audiences: Sequence[str]) -> tuple[JSONObject, list[str]] | None:
    """Return the user of a token and the audiences that accept it, or None if this server has not created the token.

    Raises:
        TokenError: The token has expired, or it is for other audiences.
    """
    content, _, signature = token.rpartition(".")
    if signature != _signature(content):
        return None
    payload = content.partition(".")[2]
    claims: Any = decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    accepted = [audience for audience in audiences if audience in claims["aud"]]
    if not accepted:
        given, targets = (" ".join(dumps(each).decode() for each in some) for some in (claims["aud"], audiences))
        problem = f"token audiences [{given}] is invalid for the target audiences [{targets}]"
        raise TokenError(f"[invalid bearer token, {problem}]")
    if claims["exp"] < registry.clock().timestamp():
        raise TokenError("[invalid bearer token, service account token has expired]")
    about = claims["kubernetes.io"]
    user: JSONObject = {
        "username": claims["sub"],
        "uid": about["serviceaccount"]["uid"],
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{about['namespace']}",
            "system:authenticated",
        ],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]},
    }
    return user, accepted


def _signed(claims: JSONObject) -> str:
    """Return a JSON Web Token that is signed with a publicly known key."""
    content = ".".join(_encoded(dumps(part)) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{content}.{_signature(content)}"


def _signature(content: str) -> str:
    return _encoded(hmac.new(_KEY, content.encode(), hashlib.sha256).digest())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
