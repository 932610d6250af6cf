"""Tokens of service accounts, on an embedded and on a real server."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import pytest

from trioformer.client import Client
from trioformer.errors import BadRequestError, InvalidError, MethodNotAllowedError, NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import TokenRequest, TokenRequestSpec
from trioformer.models.core_v1 import ConfigMap, Secret, ServiceAccount


def claims_in(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


async def test_a_token_is_created_for_audiences_and_a_time(server_client: Client, namespace: str) -> None:
    accounts = server_client.api(ServiceAccount, namespace)
    robot = await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    granted = await accounts.create_token(robot, audiences=["vault"], expiration_seconds=700)
    claims = claims_in(granted.status.token)
    assert (claims["aud"], claims["sub"]) == (["vault"], f"system:serviceaccount:{namespace}:robot")
    assert claims["exp"] - claims["iat"] == 700
    assert claims["kubernetes.io"]["serviceaccount"] == {"name": "robot", "uid": robot.uid}
    assert (granted.metadata.name, granted.metadata.namespace) == ("robot", namespace)
    assert granted.spec.audiences == ("vault",)
    made, ends = granted.metadata.creation_timestamp, granted.status.expiration_timestamp
    assert made is not None
    assert ends is not None
    assert timedelta(seconds=699) <= ends - made <= timedelta(seconds=701)


async def test_a_token_is_for_the_server_and_an_hour_by_default(server_client: Client, namespace: str) -> None:
    accounts = server_client.api(ServiceAccount, namespace)
    await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    granted = await accounts.create_token("robot")
    assert granted.spec.audiences == ("https://kubernetes.default.svc",)
    assert granted.spec.expiration_seconds == 3600


async def test_a_token_is_bound_to_an_object(server_client: Client, namespace: str) -> None:
    accounts = server_client.api(ServiceAccount, namespace)
    await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    secret = await server_client.api(Secret, namespace).create(Secret(metadata=ObjectMeta(name="s")))
    bound = await accounts.create_token("robot", bound_to=secret)
    assert claims_in(bound.status.token)["kubernetes.io"]["secret"] == {"name": "s", "uid": secret.uid}
    await server_client.api(Secret, namespace).delete("s")
    with pytest.raises(NotFoundError, match='secrets "s" not found'):
        await accounts.create_token("robot", bound_to=secret)
    config = await server_client.api(ConfigMap, namespace).create(ConfigMap(metadata=ObjectMeta(name="c")))
    with pytest.raises(BadRequestError, match="cannot bind token to object of type /v1, Kind=ConfigMap"):
        await accounts.create_token("robot", bound_to=config)


async def test_a_token_that_cannot_be_granted_is_an_error(server_client: Client, namespace: str) -> None:
    accounts = server_client.api(ServiceAccount, namespace)
    await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    with pytest.raises(InvalidError, match="may not specify a duration less than 10 minutes"):
        await accounts.create_token("robot", expiration_seconds=10)
    with pytest.raises(NotFoundError, match='serviceaccounts "nobody" not found'):
        await accounts.create_token("nobody")
    another = TokenRequest(metadata=ObjectMeta(name="another"), spec=TokenRequestSpec(audiences=()))
    with pytest.raises(InvalidError, match="must match the service account name if specified"):
        await accounts.create_subresource("robot", "token", another)
    with pytest.raises(MethodNotAllowedError):
        await accounts.get("robot", subresource="token")
