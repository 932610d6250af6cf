"""Reviews of the embedded API server alone; e2e/contract/test_reviews.py has what kube-apiserver says, too."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trioformer.client import Client
from trioformer.errors import MethodNotAllowedError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import TokenReview, TokenReviewSpec
from trioformer.models.authorization_v1 import SelfSubjectAccessReview
from trioformer.models.core_v1 import ServiceAccount
from trioformer.testing import APIServer


async def review(client: Client, token: str) -> tuple[bool | None, str | None]:
    """Return whether a token is accepted, and the name of its user."""
    made = await client.api(TokenReview).create(TokenReview(spec=TokenReviewSpec(token=token)))
    return made.status.authenticated, made.status.user.username


async def test_a_token_is_accepted_until_it_expires(
    api_server: APIServer, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    accounts = client.api(ServiceAccount, "default")
    await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    token = (await accounts.create_token("robot", expiration_seconds=600)).status.token
    await trio.sleep(590)
    assert await review(client, token) == (True, "system:serviceaccount:default:robot")
    await trio.sleep(20)
    assert await review(client, token) == (None, None)


@pytest.mark.parametrize("token", ["abc", "a.b.c", "..", "ä"])
async def test_any_other_token_belongs_to_the_administrator(client: Client, token: str) -> None:
    assert await review(client, token) == (True, "trioformer-admin")


async def test_reviews_are_not_stored(api_server: APIServer, client: Client) -> None:
    before = api_server.statistics()
    await review(client, "abc")
    assert api_server.statistics().objects == before.objects
    for call in (
        lambda: api_server.create({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}),
        lambda: api_server.list(SelfSubjectAccessReview),
        lambda: api_server.get("bindings", "a"),
    ):
        with pytest.raises(MethodNotAllowedError):
            call()
